"""The quick ways of cutting and folding texts give what the slow ones give."""

from __future__ import annotations

import unicodedata

import apsw
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.domain.memory import same_text
from recollect.stores.tokens import BOUNDARY, Tokenizer, piece, token_hash

OWN = apsw.Connection(":memory:")
TOKENIZER = Tokenizer(OWN)  # type: ignore[arg-type]
UNICODE61 = OWN.fts5_tokenizer("unicode61", [])

ascii_text = st.text(st.characters(max_codepoint=127), max_size=40)


@given(ascii_text)
@example("".join(map(chr, range(128))))
@example("a" * 200 + " B_c-d\x00e\x1ff\x7fg")
def test_words_of_ascii_are_those_of_the_full_text_index(text: str) -> None:
    expected = UNICODE61(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    assert TOKENIZER.words(text) == expected


@given(st.lists(st.one_of(ascii_text, st.text(max_size=10)), max_size=6))
@example([])
@example(["", "a b", BOUNDARY, f"c{BOUNDARY}d"])
@example(["one two", "", "Three_four"])
def test_columns_that_are_cut_together_are_cut_as_each_alone(texts: list[str]) -> None:
    assert TOKENIZER.columns(texts) == [word for text in texts for word in [*TOKENIZER.words(text), BOUNDARY]]


@given(st.one_of(st.text(max_size=40), ascii_text))
@example(" A  b\tc\n\x1fd ")
@example("A b")
@example("Straße\u00a0A\u0301")
def test_the_same_text_has_one_form(text: str) -> None:
    assert same_text(text) == " ".join(unicodedata.normalize("NFC", text).casefold().split())


@given(st.text(max_size=10))
def test_a_piece_is_the_hash_in_bytes(token: str) -> None:
    assert int.from_bytes(piece(token), "little") == token_hash(token) > 0
