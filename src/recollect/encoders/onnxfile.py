"""Writes ONNX files: just the part of the format that a transformer needs, so that the onnx package is not.

An ONNX file is one protocol-buffers message; a message is a row of (field number and wire type, value), and a message
inside a message is its length and its bytes. The field numbers below are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
_IR_VERSION = 8
_OPSET = 17


def _varint(value: int) -> bytes:
    # Negative numbers travel as 64-bit two's complement.
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        typed = _varint(2 << 3 | 5) + np.float32(value).astype("<f4").tobytes() + _whole(20, 1)
    elif isinstance(value, int):
        typed = _whole(3, value) + _whole(20, 2)
    else:
        typed = b"".join(_whole(8, entry) for entry in value) + _whole(20, 7)
    return _bytes(1, name) + typed


def _value_info(name: str, element_type: int, axes: Sequence[str | int]) -> bytes:
    dimensions = b"".join(_bytes(1, _bytes(2, axis) if isinstance(axis, str) else _whole(1, axis)) for axis in axes)
    tensor_type = _whole(1, element_type) + _bytes(2, dimensions)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor_type))


class GraphWriter:
    """Collects operators and constants in order; `finish` gives the file's content. Same calls, same bytes."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []

    def input(self, name: str, axes: Sequence[str | int]) -> str:
        """A whole-number input."""
        self._inputs.append(_value_info(name, 7, axes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """A tensor stored in the file."""
        name = f"c{len(self._constants)}"
        dimensions = b"".join(_whole(1, size) for size in value.shape)
        raw = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes()
        self._constants.append(dimensions + _whole(2, _TYPES[value.dtype]) + _bytes(8, name) + _bytes(9, raw))
        return name

    def whole(self, *values: int) -> str:
        """A list of whole numbers, as shapes and axes are given."""
        return self.constant(np.array(values, dtype=np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, dtype=np.float32))

    def add(self, operator: str, *inputs: str, **attributes: int | float | Sequence[int]) -> str:
        """An operator with one output, whose name is returned."""
        name = f"n{len(self._nodes)}"
        node = b"".join(_bytes(1, given) for given in inputs) + _bytes(2, name)
        settings = b"".join(_bytes(5, _attribute(key, value)) for key, value in sorted(attributes.items()))
        self._nodes.append(node + _bytes(4, operator) + settings)
        return name

    def finish(self, output: str, result: str, axes: Sequence[str | int]) -> bytes:
        """The file, with one output of floats that is called `result`."""
        last = _bytes(1, output) + _bytes(2, result) + _bytes(4, "Identity")
        graph = b"".join(
            [
                *(_bytes(1, node) for node in [*self._nodes, last]),
                _bytes(2, "recollect"),
                *(_bytes(5, constant) for constant in self._constants),
                *(_bytes(11, entry) for entry in self._inputs),
                _bytes(12, _value_info(result, 1, axes)),
            ]
        )
        return _whole(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _bytes(1, "") + _whole(2, _OPSET))
