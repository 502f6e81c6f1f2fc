"""A file that is not UTF-8 is refused as a whole, with the place and the way out; nothing of it is stored."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

GOOD = "# Harbour\n\nThe harbour opens at six.\n\n"


def stored(cli: Any) -> list[str]:
    return [one["content"] for one in cli("list", "--json").document["memories"]]


@pytest.mark.parametrize("name", ["notes.md", "notes.txt", "notes.jsonl"])
def test_latin_1_is_refused_with_its_place_and_nothing_is_stored(cli: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    before = GOOD if name != "notes.jsonl" else '{"content": "The harbour opens at six"}\n' * 3 + "\n"
    file.write_bytes(before.encode() + "Grüße aus Köln\n".encode("latin-1"))
    ran = cli("import", str(file), "--json")
    error = ran.document["error"]
    assert (ran.code, error["type"]) == (2, "InvalidInput")
    assert error["message"] == f"{name!r} is not UTF-8: byte 0xfc in line 5, place 3"
    assert f"iconv -f LATIN1 -t UTF-8 {file} > " in error["hint"]
    assert stored(cli) == []


def test_a_bad_byte_behind_thousands_of_good_entries_stores_none_of_them(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    lines = "".join(f'{{"content": "berth {place} is taken by the boat {place}é"}}\n' for place in range(30_000))
    file.write_bytes(lines.encode() + b'{"content": "caf\xe9"}\n')
    ran = cli("import", str(file))
    assert ran.code == 2 and "byte 0xe9 in line 30001, place 17" in ran.err
    assert stored(cli) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_and_32_are_named(cli: Any, tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "notes.md"
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    file.write_bytes((mark + GOOD).encode(encoding))
    error = cli("import", str(file), "--json").document["error"]
    named = encoding[:6].upper()
    assert error["message"] == f"'notes.md' is not UTF-8 but {named}"
    assert f"iconv -f {named} -t UTF-8" in error["hint"]
    assert stored(cli) == []


def test_a_text_that_ends_within_a_letter_is_refused_too(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "cut.md"
    file.write_bytes(GOOD.encode() + "Köln".encode()[:2])
    assert "byte 0xc3 in line 5, place 2" in cli("import", str(file)).err


def test_standard_input_and_archives_are_told_apart(cli: Any, process: Any, tmp_path: Path) -> None:
    ran = process("import", "-", input=b"a line\nGr\xfc\xdfe\n")
    assert ran.returncode == 2 and b"'standard input' is not UTF-8: byte 0xfc in line 2, place 3" in ran.stderr
    assert b"iconv -f LATIN1 -t UTF-8 | recollect import -" in ran.stderr
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("conversations.json", b'[{"name": "Gr\xfc\xdfe"}]')
    error = cli("import", str(archive), "--json").document["error"]
    assert "byte 0xfc in line 1" in error["message"] and "unpack" in error["hint"]


def test_a_byte_order_mark_and_every_letter_of_utf_8_are_read(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes("\ufeffThe mark of Bodø is ⚓, in 東京 it is 🗼".encode())
    assert cli("import", str(file)).code == 0
    assert stored(cli) == ["The mark of Bodø is ⚓, in 東京 it is 🗼"]
