"""The hook's own way to read and write JSON does what the module `json` does."""

from __future__ import annotations

import json
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.hook import documents
from recollect.stages.wishes import wishes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def as_json_has_it(data: bytes) -> Any:
    try:
        found = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@given(JSON)
def test_documents_are_written_as_json_writes_them(value: Any) -> None:
    assert documents.dumped(value) == json.dumps(value)
    assert documents.dumped(value, ascii=False) == json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(st.text(), JSON), st.integers(0, 60), st.text(string.printable))
def test_documents_are_read_as_json_reads_them(value: dict[str, Any], place: int, noise: str) -> None:
    text = json.dumps(value)
    for given_text in (text, f" \n{text}\t", f"{text}{noise}", text[:place] + noise + text[place:], text[:place]):
        data = given_text.encode("utf-8", "surrogatepass")
        assert repr(documents.parsed(data)) == repr(as_json_has_it(data))


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"\xef\xbb\xbf{}", b'\xef\xbb\xbf{"a": 1}', b"[" * 100_000, b'{"a":' * 100_000, b"{} {}", b"[1]", b"1",
     b'{"a": NaN, "b": -Infinity, "c": 1e999}', b'{"a": "\\ud800"}', b'{"a": "\xff"}', b'{"a": "\n"}', b"nul", b'"'],
)  # fmt: skip
def test_odd_documents_are_read_as_json_reads_them(data: bytes) -> None:
    assert repr(documents.parsed(data)) == repr(as_json_has_it(data))


def test_damaged_documents_are_empty_in_a_process_that_never_loaded_json() -> None:
    """There the compiled half finds no error to raise, and Python calls that a SystemError."""
    source = str(Path(documents.__file__).parents[3])
    damaged = [b'{"a": "b', b'{"a', b'{"a": 1 "b"}', b'{"a": "\n"}', b'{"a": "\\q"}', b"[1 2]", b"{1}"]
    check = (
        f"import sys; sys.path.insert(0, {source!r})\n"
        "from recollect.doors.hook.documents import parsed\n"
        f"for data in {damaged!r}:\n"
        "    assert parsed(data) == {}, data\n"
        "assert 'json.decoder' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-S", "-c", check], check=True, timeout=120)


def test_half_an_emoji_does_not_make_a_question_of_a_wish() -> None:
    """JavaScript cuts texts between the halves of a pair; "?" in its place would mean something."""
    prompt = documents.as_text("remember that the lamp is violet \ud83d")
    assert prompt == "remember that the lamp is violet \ufffd"
    assert [one.content for one in wishes(prompt)] != []
    assert documents.as_text("a lamp \U0001f4a1 here") == "a lamp \U0001f4a1 here"
    assert documents.as_text(None) == ""
