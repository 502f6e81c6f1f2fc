"""The granite container: what the written ONNX file computes is checked against RoBERTa spelt out in plain loops."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.folder import files_of_folder
from recollect.encoders.granite import convert, read_container
from recollect.encoders.session import OnnxModel

from .conftest import WORDS, tiny_tokenizer

HIDDEN, HEADS, WIDE, LAYERS, GROUP, OFFSET = 8, 2, 12, 2, 4, 2


def weights() -> dict[str, np.ndarray]:
    """Random tensors under the container's names; those ending in .w of two axes and the words are quantised."""
    random = np.random.default_rng(7)
    shapes = {"word_emb": (len(WORDS), HIDDEN), "pos_emb": (20, HIDDEN), "type_emb": (2, HIDDEN)}
    shapes |= {"emb_ln.w": (HIDDEN,), "emb_ln.b": (HIDDEN,)}
    for layer in range(LAYERS):
        linear = {"qkv": (3 * HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN), "f1": (WIDE, HIDDEN), "f2": (HIDDEN, WIDE)}
        for name, shape in linear.items():
            shapes |= {f"l{layer}.{name}.w": shape, f"l{layer}.{name}.b": shape[:1]}
        for name in ("aln", "fln"):
            shapes |= {f"l{layer}.{name}.w": (HIDDEN,), f"l{layer}.{name}.b": (HIDDEN,)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def pack(tensors: dict[str, np.ndarray]) -> tuple[bytes, dict[str, np.ndarray]]:
    """The container, and the tensors as they are after quantisation."""
    described, body, exact = [], b"", {}
    for name, value in tensors.items():
        quantised = value.ndim == 2 and name not in ("pos_emb", "type_emb")
        raw = value.tobytes()
        exact[name] = value.astype(np.float64)
        if quantised:
            grouped = value.reshape(len(value), -1, GROUP)
            scales = np.abs(grouped).max(axis=2, keepdims=True) / np.float32(127)
            small = np.round(grouped / scales).astype(np.int8)
            raw = small.tobytes() + scales.tobytes()
            exact[name] = (small.astype(np.float64) * scales.astype(np.float64)).reshape(value.shape)
        described.append(
            {
                "name": name,
                "dtype": "i8" if quantised else "f32",
                "shape": list(value.shape),
                "len": len(raw),
                "group": GROUP if quantised else 0,
            }
        )
        body += raw
    tokenizer = tiny_tokenizer().encode()
    arch = {"hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "layer_norm_eps": 1e-12, "position_offset": OFFSET}
    header = json.dumps({"arch": arch, "tokenizer_len": len(tokenizer), "tensors": described}).encode()
    return b"HMSEMB01" + struct.pack("<Q", len(header)) + header + tokenizer + body, exact


def norm(row: list[float], weight: np.ndarray, bias: np.ndarray) -> list[float]:
    mean = sum(row) / len(row)
    variance = sum((x - mean) ** 2 for x in row) / len(row)
    return [(x - mean) / math.sqrt(variance + 1e-12) * w + b for x, w, b in zip(row, weight, bias)]


def linear(row: list[float], weight: np.ndarray, bias: np.ndarray) -> list[float]:
    return [sum(w * x for w, x in zip(column, row)) + b for column, b in zip(weight, bias)]


def spelt_out(t: dict[str, np.ndarray], ids: list[int]) -> list[list[float]]:
    """RoBERTa's forward pass, one number at a time."""
    rows = [
        norm([*(t["word_emb"][i] + t["pos_emb"][OFFSET + p] + t["type_emb"][0])], t["emb_ln.w"], t["emb_ln.b"])
        for p, i in enumerate(ids)
    ]
    size = HIDDEN // HEADS
    for layer in range(LAYERS):
        part = {name: (t[f"l{layer}.{name}.w"], t[f"l{layer}.{name}.b"]) for name in ("qkv", "ao", "aln", "f1", "f2")}
        last = t[f"l{layer}.fln.w"], t[f"l{layer}.fln.b"]
        qkv = [linear(row, *part["qkv"]) for row in rows]
        result = []
        for here, row in enumerate(rows):
            mixed = [0.0] * HIDDEN
            for head in range(HEADS):
                at = range(head * size, head * size + size)
                scores = [
                    math.exp(sum(qkv[here][i] * other[HIDDEN + i] for i in at) / math.sqrt(size)) for other in qkv
                ]
                for i in at:
                    values = [other[2 * HIDDEN + i] for other in qkv]
                    mixed[i] = sum(s * v for s, v in zip(scores, values)) / sum(scores)
            x = norm([a + b for a, b in zip(row, linear(mixed, *part["ao"]))], *part["aln"])
            wide = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in linear(x, *part["f1"])]
            result.append(norm([a + b for a, b in zip(x, linear(wide, *part["f2"]))], *last))
        rows = result
    return rows


def test_the_written_file_computes_roberta(tmp_path: Path) -> None:
    container, exact = pack(weights())
    model, tokenizer = convert([container], "tiny")
    (tmp_path / "model.onnx").write_bytes(model)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer)
    onnx = OnnxModel(files_of_folder(tmp_path))
    texts = ["red blue green", "blue", "green red query red blue"]
    encoded = [onnx.encode(text) for text in texts]
    output, _ = onnx.run(encoded)
    assert onnx.batches_freely and onnx.output_width == HIDDEN
    for row, (ids, _) in enumerate(encoded):
        np.testing.assert_allclose(output[row, : len(ids)], spelt_out(exact, ids), atol=2e-5)


def test_the_same_container_gives_the_same_bytes() -> None:
    container, _ = pack(weights())
    assert convert([container], "tiny") == convert([container], "tiny")
    assert read_container(container).tokenizer == tiny_tokenizer().encode()


@pytest.mark.parametrize("length", [0, 4, 12, 40, 400, -1])
def test_a_container_cut_short_is_refused(length: int) -> None:
    container, _ = pack(weights())
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        convert([container[:length]], "tiny")


def test_another_format_is_refused() -> None:
    container, _ = pack(weights())
    with pytest.raises(ModelUnavailable, match="not a model pack"):
        convert([b"PK" + container[2:]], "tiny")
