"""Whether a file is UTF-8, asked before any of it is stored: half a file, or a text of marks, helps nobody."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE, getincrementaldecoder
from io import SEEK_SET, BufferedIOBase

from recollect.domain.errors import InvalidInput

CHUNK = 2**20
HEAD = 2**16
# The longer ones first: a mark of UTF-32 begins with one of UTF-16.
MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}
USUAL = "LATIN1"


def check_utf8(raw: BufferedIOBase, name: str, conversion: str) -> None:
    """Read it once and go back to its beginning. InvalidInput tells the first byte that is no UTF-8, and its place.

    conversion: what to do about it, with ENCODING where the name of the encoding belongs.
    """
    head = raw.read(CHUNK)
    found = next((encoding for mark, encoding in MARKS.items() if head.startswith(mark)), None)
    if found is not None:
        message = f"{name!r} is not UTF-8 but {found}"
        raise InvalidInput(message, conversion.replace("ENCODING", found), "SOURCE")
    if b"\0" not in head[:HEAD]:  # what is no text at all is told by those who look for its format
        _check(head, raw, name, conversion.replace("ENCODING", USUAL))
    raw.seek(0, SEEK_SET)


def _check(chunk: bytes, raw: BufferedIOBase, name: str, hint: str) -> None:
    decoder = getincrementaldecoder("utf-8")()
    line, place = 1, 1
    while True:
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            # The decoder puts what was left of the chunk before in front of this one.
            line, place = _behind(error.object[: error.start].decode(), line, place)
            bad = error.object[error.start]
            where = f"byte 0x{bad:02x} in line {line}, place {place}"
            raise InvalidInput(f"{name!r} is not UTF-8: {where}", hint, "SOURCE") from error
        if not chunk:
            return
        line, place = _behind(text, line, place)
        chunk = raw.read(CHUNK)


def _behind(text: str, line: int, place: int) -> tuple[int, int]:
    """The line and the place in it behind a text that begins at these."""
    lines = text.count("\n")
    return (line + lines, len(text) - text.rfind("\n")) if lines else (line, place + len(text))
