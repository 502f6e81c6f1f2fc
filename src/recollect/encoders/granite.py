"""Turns the granite package's own container into an ONNX file and a tokenizer, so that it runs like every other model.

The container is: magic, length of a JSON header, the header, the tokenizer's JSON, the tensors. Matrices are int8 with
one scale per group of columns, all weights of a tensor first, then its scales. The network is RoBERTa's.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.onnxfile import GraphWriter

_MAGIC = b"HMSEMB01"
_MASKED = -1e4
"""Added to the attention scores of padding: after the softmax nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Container:
    """The container taken apart. A quantised tensor is (int8 in groups, one scale per group), any other (values,)."""

    arch: dict[str, Any]
    tokenizer: bytes
    tensors: dict[str, tuple[Any, ...]]


def convert(contents: Sequence[bytes], name: str) -> tuple[bytes, bytes]:
    """The model as an ONNX file (token ids and mask in, last_hidden_state out) and its tokenizer.json."""
    (content,) = contents
    try:
        container = read_container(content)
        return write_graph(container), container.tokenizer
    except (KeyError, ValueError, TypeError, struct.error) as error:
        raise ModelUnavailable(f"the file of {name} cannot be read: {error}", "choose another model") from error


def read_container(content: bytes) -> Container:
    """Take the container apart; ValueError and its kin when it is not one."""
    if content[:8] != _MAGIC:
        raise ValueError("it is not a model pack")
    (length,) = struct.unpack_from("<Q", content, 8)
    start = 16 + length
    header: dict[str, Any] = json.loads(content[16:start])
    end = start + header["tokenizer_len"]
    return Container(header["arch"], content[start:end], _tensors(content, header["tensors"], end))


def _tensors(content: bytes, described: Sequence[dict[str, Any]], start: int) -> dict[str, tuple[Any, ...]]:
    tensors: dict[str, tuple[Any, ...]] = {}
    for entry in described:
        shape, raw = entry["shape"], content[start : start + entry["len"]]
        start += entry["len"]
        if entry["dtype"] == "f32":
            tensors[entry["name"]] = (np.frombuffer(raw, "<f4").reshape(shape),)
        else:
            count = math.prod(shape)
            grouped = np.frombuffer(raw[:count], np.int8).reshape(shape[0], -1, entry["group"])
            tensors[entry["name"]] = (grouped, np.frombuffer(raw[count:], "<f4").reshape(shape[0], -1, 1))
    return tensors


def write_graph(container: Container) -> bytes:
    """Words and positions, then per layer: attention, add and norm, feed forward, add and norm."""
    graph, width = GraphWriter(), container.arch["hidden"]
    ids = graph.input("input_ids", ("batch", "tokens"))
    mask = graph.input("attention_mask", ("batch", "tokens"))
    kept = graph.add("Cast", mask, to=1)
    hidden = graph.add("Mul", graph.add("Sub", graph.scalar(1.0), kept), graph.scalar(_MASKED))
    bias = graph.add("Unsqueeze", hidden, graph.whole(1, 2))
    blocks = _Blocks(graph, container)
    x = blocks.norm("emb_ln", blocks.embed(ids))
    for layer in range(container.arch["layers"]):
        name = f"l{layer}."
        attended = blocks.linear(name + "ao", blocks.attend(name + "qkv", x, bias))
        x = blocks.norm(name + "aln", graph.add("Add", x, attended))
        fed = blocks.linear(name + "f2", blocks.gelu(blocks.linear(name + "f1", x)))
        x = blocks.norm(name + "fln", graph.add("Add", x, fed))
    return graph.finish(x, "last_hidden_state", ("batch", "tokens", width))


class _Blocks:
    """The parts a RoBERTa layer is made of, written with the container's tensors."""

    def __init__(self, graph: GraphWriter, container: Container) -> None:
        self._graph, self._tensors, self._arch = graph, container.tensors, container.arch

    def embed(self, ids: str) -> str:
        """The words' rows, scaled here because the table stays in int8, plus the positions and the one segment."""
        graph, arch = self._graph, self._arch
        words, scales = (graph.constant(part) for part in self._tensors["word_emb"])
        rows = graph.add("Cast", graph.add("Gather", words, ids), to=1)
        scaled = graph.add("Mul", rows, graph.add("Gather", scales, ids))
        flat = graph.add("Reshape", scaled, graph.whole(0, 0, arch["hidden"]))
        table = self._tensors["pos_emb"][0][arch["position_offset"] :] + self._tensors["type_emb"][0][0]
        tokens = graph.add("Gather", graph.add("Shape", ids), graph.whole(1))
        positions = graph.add("Slice", graph.constant(table), graph.whole(0), tokens, graph.whole(0))
        return graph.add("Add", flat, positions)

    def norm(self, name: str, x: str) -> str:
        weight, bias = (self._graph.constant(self._tensors[f"{name}.{part}"][0]) for part in "wb")
        epsilon = float(self._arch["layer_norm_eps"])
        return self._graph.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=epsilon)

    def linear(self, name: str, x: str) -> str:
        grouped, scales = self._tensors[f"{name}.w"]
        matrix = np.ascontiguousarray((grouped * scales).reshape(len(grouped), -1).T)
        product = self._graph.add("MatMul", x, self._graph.constant(matrix))
        return self._graph.add("Add", product, self._graph.constant(self._tensors[f"{name}.b"][0]))

    def gelu(self, x: str) -> str:
        """x · (1 + erf(x/√2)) / 2"""
        graph = self._graph
        erf = graph.add("Erf", graph.add("Div", x, graph.scalar(math.sqrt(2))))
        return graph.add("Mul", graph.add("Mul", x, graph.add("Add", erf, graph.scalar(1.0))), graph.scalar(0.5))

    def attend(self, name: str, x: str, bias: str) -> str:
        """softmax(q·kᵀ / √d + bias)·v for each head, side by side."""
        graph, heads = self._graph, self._arch["heads"]
        size = self._arch["hidden"] // heads
        joined = graph.add("Reshape", self.linear(name, x), graph.whole(0, 0, 3, heads, size))
        apart = graph.add("Transpose", joined, perm=(2, 0, 3, 1, 4))
        q, k, v = (graph.add("Gather", apart, graph.constant(np.array(part)), axis=0) for part in range(3))
        scores = graph.add("MatMul", q, graph.add("Transpose", k, perm=(0, 1, 3, 2)))
        scaled = graph.add("Add", graph.add("Mul", scores, graph.scalar(size**-0.5)), bias)
        mixed = graph.add("MatMul", graph.add("Softmax", scaled, axis=-1), v)
        return graph.add(
            "Reshape", graph.add("Transpose", mixed, perm=(0, 2, 1, 3)), graph.whole(0, 0, self._arch["hidden"])
        )
