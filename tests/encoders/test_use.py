"""The multilingual encoder's packed weights: what the written files compute is checked against plain loops."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.folder import files_of_folder
from recollect.encoders.onnx import OnnxEmbedder
from recollect.encoders.session import OnnxModel
from recollect.encoders.use import convert

CHUNKS, WIDE, NARROW, DEEP, EPSILON = 3, 6, 4, 5, 1e-3
WINDOWS = ((2, 0), (3, 1), (5, 2))
PIECES = ("<unk>", "<s>", "</s>", "▁red", "▁blue", "▁", "green", "ish", "▁s", "<", ">")
UNKNOWN, CONTROL, NORMAL = 2, 3, 1


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def piece_model() -> bytes:
    """A SentencePiece file: pieces, some settings that nobody needs, and a normaliser without a table."""
    pieces = b""
    for place, text in enumerate(PIECES):
        kind = UNKNOWN if place == 0 else CONTROL if place < 3 else NORMAL
        score = varint(2 << 3 | 5) + struct.pack("<f", 0.0 if place < 3 else -float(place))
        pieces += field(1, field(1, text.encode()) + score + varint(3 << 3) + varint(kind))
    return pieces + field(2, b"settings") + field(3, field(1, b"identity"))


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {"scale": (CHUNKS,), "lo": (CHUNKS,)}
    for size, _ in WINDOWS:
        shapes |= {f"proj{size}": (WIDE, NARROW), f"w1_{size}": (size * NARROW, NARROW)}
        shapes |= {f"w2_{size}": (size * NARROW, NARROW)}
        shapes |= {f"{name}{size}": (NARROW,) for name in ("proj_b", "ln_g", "ln_b", "b1_", "b2_")}
    joined = WIDE + len(WINDOWS) * NARROW
    shapes |= {"ln_g": (joined,), "ln_b": (joined,), "cnn_W": (joined, WIDE), "cnn_b": (WIDE,)}
    shapes |= {"d0": (WIDE, DEEP), "p1": (WIDE, DEEP), "d1": (DEEP, DEEP)}
    shapes |= {"d2": (DEEP, WIDE), "p3": (DEEP, WIDE), "d3": (WIDE, WIDE)}
    found = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    rows = math.ceil(len(PIECES) / CHUNKS)
    tables = random.integers(0, 64, size=(CHUNKS, rows, WIDE)).astype(np.uint8)
    return found | {f"q{place + 1}": table for place, table in enumerate(tables)} | {"eps": np.array(EPSILON)}


def packed(values: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **values)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def norm(row: Sequence[float], weight: np.ndarray, bias: np.ndarray) -> list[float]:
    mean = sum(row) / len(row)
    variance = sum((x - mean) ** 2 for x in row) / len(row)
    return [(x - mean) / math.sqrt(variance + EPSILON) * w + b for x, w, b in zip(row, weight, bias, strict=True)]


def times(row: Sequence[float], matrix: np.ndarray) -> list[float]:
    return [sum(x * w for x, w in zip(row, column, strict=True)) for column in matrix.T]


def plus(row: Sequence[float], other: Sequence[float] | np.ndarray) -> list[float]:
    return [a + b for a, b in zip(row, other, strict=True)]


def relu(row: Sequence[float]) -> list[float]:
    return [max(0.0, x) for x in row]


def spelt_out(t: dict[str, np.ndarray], ids: Sequence[int]) -> list[float]:
    """The forward pass for one text, one number at a time."""
    words = [[*(t[f"q{i % CHUNKS + 1}"][i // CHUNKS] * t["scale"][i % CHUNKS] + t["lo"][i % CHUNKS])] for i in ids]
    weights, biases = ([t[f"{part}{size}"] for size, _ in WINDOWS] for part in ("ln_g", "ln_b"))
    stretches = [
        norm(
            [x for size, _ in WINDOWS for x in plus(times(word, t[f"proj{size}"]), t[f"proj_b{size}"])],
            np.concatenate(weights),
            np.concatenate(biases),
        )
        for word in words
    ]
    joined = [list(word) for word in words]
    for place, (size, before) in enumerate(WINDOWS):
        rows = [row[place * NARROW : (place + 1) * NARROW] for row in stretches]
        for layer in ("1", "2"):
            padded = [[0.0] * NARROW] * before + rows + [[0.0] * NARROW] * (size - 1 - before)
            seen = [[x for row in padded[at : at + size] for x in row] for at in range(len(rows))]
            views = [relu(plus(times(one, t[f"w{layer}_{size}"]), t[f"b{layer}_{size}"])) for one in seen]
            rows = [plus(view, row) for view, row in zip(views, rows, strict=True)]
        joined = [have + row for have, row in zip(joined, rows, strict=True)]
    normed = [norm(row, t["ln_g"], t["ln_b"]) for row in joined]
    total = [sum(column) for column in zip(*normed, strict=True)]
    mean = [x / math.sqrt(len(ids)) for x in plus(times(total, t["cnn_W"]), len(ids) * t["cnn_b"])]
    first = relu(times(mean, t["d0"]))
    second = relu(plus(times(mean, t["p1"]), times(first, t["d1"])))
    third = relu(times(second, t["d2"]))
    return [math.tanh(x) for x in plus(times(second, t["p3"]), times(third, t["d3"]))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = convert([packed(tensors()), piece_model()], "tiny")
    (tmp_path / "model.onnx").write_bytes(model)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer)
    return tmp_path


def test_the_written_file_computes_the_encoder_also_in_a_batch(folder: Path) -> None:
    onnx = OnnxModel(files_of_folder(folder))
    texts = ["red blue green", "blue", "greenish red unheard red blue", ""]
    encoded = [onnx.encode(text) for text in texts]
    output, _ = onnx.run(encoded)
    assert onnx.batches_freely and onnx.output_width == WIDE
    for row, (ids, _) in enumerate(encoded):
        np.testing.assert_allclose(output[row], spelt_out(tensors(), ids), atol=2e-5)
    assert OnnxEmbedder(files_of_folder(folder)).embed_documents(texts).shape == (4, WIDE)


def test_texts_are_cut_into_the_pieces_of_the_best_score(folder: Path) -> None:
    onnx = OnnxModel(files_of_folder(folder))

    def pieces(text: str) -> list[str]:
        return [PIECES[id] for id in onnx.encode(text)[0]]

    assert pieces("  red   blue ") == ["<s>", "▁red", "▁blue", "</s>"]
    assert pieces("greenish") == ["<s>", "▁", "green", "ish", "</s>"]
    assert pieces("red ж") == ["<s>", "▁red", "▁", "<unk>", "</s>"]
    assert pieces("<s>")[1:-1] == ["▁", "<", "<unk>", ">"], "a text cannot hold a control piece"


def test_the_same_files_give_the_same_bytes() -> None:
    given = [packed(tensors()), piece_model()]
    assert convert(given, "tiny") == convert(given, "tiny")


@pytest.mark.parametrize("missing", ["q2", "scale", "w1_3", "d3", "eps"])
def test_weights_without_a_tensor_are_refused(missing: str) -> None:
    held = {name: value for name, value in tensors().items() if name != missing}
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        convert([packed(held), piece_model()], "tiny")


@pytest.mark.parametrize("length", [0, 1, 5, 17, 80, -1])
def test_files_cut_short_are_refused(length: int) -> None:
    whole = [packed(tensors()), piece_model()]
    for place in range(2):
        torn = [content[:length] if place == at else content for at, content in enumerate(whole)]
        with pytest.raises(ModelUnavailable, match="cannot be read"):
            convert(torn, "tiny")
