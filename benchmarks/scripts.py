"""Copies of a data set in other letters, so that scripts can be measured of which there is no set.

`python -m benchmarks.scripts SET FOLDER`: the words of the set stay as telling as they are, but no model knows them. In
Cyrillic, Arabic and Devanagari every letter has another; in Thai the spaces go too; in Han a word becomes one or two
signs, chosen by its hash, without spaces.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

LATIN = "abcdefghijklmnopqrstuvwxyzäöüß"
ALPHABETS: Mapping[str, str] = {
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةء",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "devanagari": "कखगघङचछजझञटठडढणतथदधनपफबभमयरलवश",
    "thai": "กขคงจฉชซญฎฏฐฑฒณดตถทธนบปผฝพฟภมยร",
}
HAN = range(0x4E00, 0x59B8)
_WORD = re.compile(r"[A-Za-zäöüßÄÖÜ]+")
_SPACES = re.compile(r"(?<=[\u0e00-\u0eff\u4e00-\u9fff])\s+(?=[\u0e00-\u0eff\u4e00-\u9fff])")

Writing = Callable[[str], str]


def in_letters(alphabet: str) -> Writing:
    """Letter for letter."""
    table = str.maketrans(dict(zip(LATIN, alphabet, strict=False)))
    return lambda text: text.lower().translate(table)


def in_han(text: str) -> str:
    """Word for word; what begins with the same six letters becomes the same signs, as a stem would."""

    def signs(match: re.Match[str]) -> str:
        word = match.group().lower()[:6]
        drawn = hashlib.sha256(word.encode()).digest()
        count = 1 if len(word) <= 3 else 2
        return "".join(chr(HAN[int.from_bytes(drawn[2 * n : 2 * n + 2], "big") % len(HAN)]) for n in range(count))

    return unspaced(_WORD.sub(signs, text))


def unspaced(text: str) -> str:
    """Without the spaces between letters of a script that has none."""
    return _SPACES.sub("", text)


WRITINGS: Mapping[str, Writing] = {
    "arabic": in_letters(ALPHABETS["arabic"]),
    "cyrillic": in_letters(ALPHABETS["cyrillic"]),
    "devanagari": in_letters(ALPHABETS["devanagari"]),
    "han": in_han,
    "thai": lambda text: unspaced(in_letters(ALPHABETS["thai"])(text)),
}


def copy(source: Path, folder: Path, name: str) -> Path:
    """One copy: titles and texts in other letters, everything else as it is."""
    target = folder / f"{source.name}_{name}"
    shutil.copytree(source / "qrels", target / "qrels")
    for file in ("corpus.jsonl", "queries.jsonl"):
        lines: list[str] = []
        for line in (source / file).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            entry |= {field: WRITINGS[name](entry[field]) for field in ("title", "text") if entry.get(field)}
            lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
        (target / file).write_text("".join(lines), encoding="utf-8")
    return target


if __name__ == "__main__":
    for one in WRITINGS:
        print(copy(Path(sys.argv[1]), Path(sys.argv[2]), one))
