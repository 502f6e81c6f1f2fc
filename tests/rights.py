"""Rights that bind the superuser too, for tests of what may not be written."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager

VERSION = 0x20080522
OVERRIDES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: to write and read whatever the rights say."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Powers(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def bound_by_rights() -> Generator[None]:
    """As any user for this thread and those that it starts, whoever runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    assert hasattr(libc, "capset"), "this superuser cannot be bound: run the tests as an ordinary user"
    header, powers = _Header(VERSION, 0), (_Powers * 2)()
    assert libc.capget(ctypes.byref(header), powers) == 0
    held = powers[0].effective
    powers[0].effective = held & ~OVERRIDES
    assert libc.capset(ctypes.byref(header), powers) == 0
    try:
        yield
    finally:
        powers[0].effective = held
        assert libc.capset(ctypes.byref(header), powers) == 0
