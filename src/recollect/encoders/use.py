"""Turns the weights of the Universal Sentence Encoder (multilingual, the convolutional one) into an ONNX file.

The words' table comes in chunks of 6 bits a number, word n in chunk n mod 17; all other tensors are floats. Words are
narrowed to three stretches, each of which looks at windows of 2, 3 or 5 words twice; all that is summed over the text
and goes through four dense layers.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.onnxfile import GraphWriter
from recollect.encoders.sentencepiece import tokenizer_json

_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""How many words each kind of window holds, and how many of them stand before the word itself."""
_FAR = (1 << 31) - 1

Tensors = dict[str, np.ndarray[Any, Any]]


def convert(contents: Sequence[bytes], name: str) -> tuple[bytes, bytes]:
    """The model as an ONNX file (token ids and mask in, sentence_embedding out) and its tokenizer.json."""
    weights, pieces = contents
    try:
        with np.load(io.BytesIO(weights), allow_pickle=False) as archive:
            tensors: Tensors = {key: archive[key] for key in archive.files}
        return write_graph(tensors), tokenizer_json(pieces)
    except (KeyError, ValueError, TypeError, IndexError, EOFError, struct.error, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"the files of {name} cannot be read: {error}", "choose another model") from error


def write_graph(tensors: Tensors) -> bytes:
    """Words, windows of words, their sum, and the layers above it."""
    graph = GraphWriter()
    ids = graph.input("input_ids", ("batch", "tokens"))
    mask = graph.input("attention_mask", ("batch", "tokens"))
    net = _Net(graph, tensors, graph.add("Unsqueeze", graph.add("Cast", mask, to=1), graph.whole(2)))
    words = net.embed(ids)
    narrow = net.narrowed(words)
    seen = [net.look(narrow, place, *window) for place, window in enumerate(_WINDOWS)]
    joined = graph.add("Concat", words, *seen, axis=2)
    total = net.summed(net.norm("ln_g", "ln_b", joined))
    first = net.relu(net.times(total, "d0"))
    second = net.relu(graph.add("Add", net.times(total, "p1"), net.times(first, "d1")))
    third = net.relu(net.times(second, "d2"))
    last = graph.add("Tanh", graph.add("Add", net.times(second, "p3"), net.times(third, "d3")))
    return graph.finish(last, "sentence_embedding", ("batch", tensors["d3"].shape[1]))


class _Net:
    """The parts of the network, written with its tensors. `kept` is 1 for words and 0 for padding."""

    def __init__(self, graph: GraphWriter, tensors: Tensors, kept: str) -> None:
        self._graph, self._tensors, self._kept = graph, tensors, kept

    def embed(self, ids: str) -> str:
        """The words' rows, scaled here because the table stays in bytes."""
        graph, chunks = self._graph, len(self._tensors["scale"])
        parts = [self._tensors[f"q{number + 1}"] for number in range(chunks)]
        table = np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])
        if table.dtype != np.uint8 or table.max() > 127:
            raise ValueError("the words' table is not in 7 bits")
        rows = graph.add("Cast", graph.add("Gather", graph.constant(table.astype(np.int8)), ids), to=1)
        chunk = graph.add("Mod", ids, graph.whole(chunks))
        scale, lowest = (
            graph.add("Gather", graph.constant(self._tensors[name].reshape(-1, 1)), chunk) for name in ("scale", "lo")
        )
        return graph.add("Add", graph.add("Mul", rows, scale), lowest)

    def narrowed(self, words: str) -> str:
        """The stretches of all windows side by side, normed together."""
        graph = self._graph
        joined = {
            part: np.concatenate([self._tensors[f"{part}{size}"] for size, _ in _WINDOWS], axis=-1)
            for part in ("proj", "proj_b", "ln_g", "ln_b")
        }
        product = graph.add("MatMul", words, graph.constant(joined["proj"]))
        biased = graph.add("Add", product, graph.constant(joined["proj_b"]))
        return self._kept_only(self._norm(biased, joined["ln_g"], joined["ln_b"]))

    def look(self, narrow: str, place: int, size: int, before: int) -> str:
        """What windows of one size see, each word's own stretch added, twice."""
        graph, width = self._graph, self._tensors[f"b1_{size}"].shape[0]
        ends = (graph.whole(place * width), graph.whole((place + 1) * width))
        own = graph.add("Slice", narrow, *ends, graph.whole(2))
        for weights, bias in ((f"w1_{size}", f"b1_{size}"), (f"w2_{size}", f"b2_{size}")):
            view = self.relu(self._plus(self.times(self._windows(own, size, before), weights), bias))
            own = self._kept_only(graph.add("Add", view, own))
        return own

    def _windows(self, x: str, size: int, before: int) -> str:
        """Every word with its neighbours side by side; beyond the ends is nothing."""
        graph, after = self._graph, size - 1 - before
        padded = graph.add("Pad", x, graph.whole(0, before, 0, 0, after, 0))
        ends = [*range(1 - size, 0), _FAR]
        shifted = [
            graph.add("Slice", padded, graph.whole(step), graph.whole(end), graph.whole(1))
            for step, end in enumerate(ends)
        ]
        return graph.add("Concat", *shifted, axis=2)

    def summed(self, x: str) -> str:
        """The sum over the words through one layer, divided by the root of their number."""
        graph = self._graph
        total, count = (
            graph.add("ReduceSum", values, graph.whole(1), keepdims=0) for values in (self._kept_only(x), self._kept)
        )
        bias = graph.add("Mul", count, graph.constant(self._tensors["cnn_b"]))
        return graph.add("Div", graph.add("Add", self.times(total, "cnn_W"), bias), graph.add("Sqrt", count))

    def norm(self, weight: str, bias: str, x: str) -> str:
        return self._norm(x, self._tensors[weight], self._tensors[bias])

    def _norm(self, x: str, weight: Any, bias: Any) -> str:
        constants = (self._graph.constant(weight), self._graph.constant(bias))
        return self._graph.add("LayerNormalization", x, *constants, axis=-1, epsilon=float(self._tensors["eps"]))

    def times(self, x: str, name: str) -> str:
        return self._graph.add("MatMul", x, self._graph.constant(self._tensors[name]))

    def relu(self, x: str) -> str:
        return self._graph.add("Relu", x)

    def _plus(self, x: str, name: str) -> str:
        return self._graph.add("Add", x, self._graph.constant(self._tensors[name]))

    def _kept_only(self, x: str) -> str:
        return self._graph.add("Mul", x, self._kept)
