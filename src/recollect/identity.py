"""Ids: opaque, unique, and sortable by creation. 10 characters of time in milliseconds, 16 of chance."""

from __future__ import annotations

import os
import threading
import time
from base64 import b32hexencode

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_CHANCE_BITS = 80
_IN_OURS = bytes.maketrans(b"0123456789ABCDEFGHIJKLMNOPQRSTUV", ALPHABET.encode())

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A fresh id, greater than every id this process made before, even within a millisecond or after a clock step."""
    global _last
    with _lock:
        value = (time.time_ns() // 1_000_000) << _CHANCE_BITS | int.from_bytes(os.urandom(_CHANCE_BITS // 8), "big")
        if value <= _last:
            value = _last + 1
        _last = value
    return b32hexencode((value << 6).to_bytes(17, "big"))[:26].translate(_IN_OURS).decode()  # 130 bits of 136
