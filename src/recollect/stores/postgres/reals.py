"""Many numbers as one parameter, in the server's own binary form: as text they would cost more than all the rest."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format

REAL = 700
REAL_ARRAY = 1021


@dataclass(frozen=True, slots=True)
class Reals:
    """The rows of a matrix, one behind the other, as a real[]."""

    matrix: NDArray[np.float32]


class RealsDumper(Dumper):
    """One dimension, no nulls, from 1; each number behind its length."""

    format = Format.BINARY
    oid = REAL_ARRAY

    def dump(self, obj: Reals) -> bytes:
        numbers = np.empty(obj.matrix.size, dtype=[("length", ">i4"), ("number", ">f4")])
        numbers["length"] = 4
        numbers["number"] = obj.matrix.ravel()
        return struct.pack(">iiIii", 1, 0, REAL, len(numbers), 1) + numbers.tobytes()


psycopg.adapters.register_dumper(Reals, RealsDumper)
