"""Text made safe to look at: composed, without characters that nobody sees and no index can keep."""

from __future__ import annotations

import re
import unicodedata

# Zero-width and direction marks, soft hyphen, byte order mark, tag characters: they hide in pasted text, carry no
# meaning for a search, and would make two words that look alike differ.
_INVISIBLE = (
    *(0x00AD, 0x061C, 0x180E, 0xFEFF),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xE0000, 0xE0080),
)
# Models read tag characters as letters, and nobody else sees them; between a black flag and their end they are a flag.
_TAGS = re.compile("(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f)|[\U000e0000-\U000e007f]+")
_SPACING = frozenset(map(ord, "\t\n\r"))

_TABLE: dict[int, str | None] = {
    **dict.fromkeys(_INVISIBLE, None),
    # Half of a character: cannot be encoded, so no index could store it.
    **dict.fromkeys(range(0xD800, 0xE000), None),
    # Control characters part words, as they do on a screen. NUL is removed: it would cut a query short in C code.
    **{code: " " for code in (*range(1, 32), *range(0x7F, 0xA0)) if code not in _SPACING},
    0: None,
}


def clean(text: str) -> str:
    """NFC text without NUL, lone surrogates, control or zero-width characters; linear, and idempotent."""
    return unicodedata.normalize("NFC", text.translate(_TABLE))


def told_tags(text: str) -> str:
    """The text with a sign in the place of what tag characters hide."""
    return text if text.isascii() else _TAGS.sub(lambda found: found[1] or "\ufffd", text)
