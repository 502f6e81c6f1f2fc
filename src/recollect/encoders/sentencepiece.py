"""Turns a SentencePiece model (unigram) into a tokenizer.json, so that the same library reads every tokenizer.

The file is one protocol-buffers message: its pieces with their scores (field 1), and how a text is normalised before
it is cut (field 3, of which field 2 is a compiled table).
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

SPACE = "▁"
_CONTROL = 3
"""The type of a piece that stands for no text."""


def tokenizer_json(content: bytes) -> bytes:
    """The tokenizer, with the first and the last control piece around every text; ValueError and its kin for others."""
    pieces: list[tuple[str, float]] = []
    controls: list[int] = []
    table: bytes | None = None
    for field, value in _fields(content):
        if field == 1:
            piece = dict(_fields(value))
            text = piece[1].decode("utf-8")
            if piece.get(3) == _CONTROL:
                controls.append(len(pieces))
                text = f"\0{text}"  # whoever writes "<s>" means no control
            pieces.append((text, struct.unpack("<f", piece[2])[0]))
        elif field == 3:
            table = dict(_fields(value)).get(2, b"")
    if table is None:
        raise ValueError("it is cut short")
    first, last = controls
    return json.dumps(_definition(pieces, table, first, last), ensure_ascii=False, separators=(",", ":")).encode()


def _definition(pieces: list[tuple[str, float]], table: bytes, first: int, last: int) -> dict[str, Any]:
    around = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in (("<s>", first), ("</s>", last))}
    sides = [{"SpecialToken": {"id": name, "type_id": 0}} for name in around]
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    compiled = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}] if table else []
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                *compiled,
                {"type": "Strip", "strip_left": True, "strip_right": True},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": metaspace,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [sides[0], texts[0], sides[1]],
            "pair": [sides[0], *texts, sides[1]],
            "special_tokens": around,
        },
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False},
    }


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message: whole numbers, or the bytes of everything else."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a field of kind {kind}")
        length, at = _varint(content, at) if kind == 2 else (4 if kind == 5 else 8, at)
        if at + length > len(content):
            raise ValueError("it is cut short")
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise ValueError("it is cut short")
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
