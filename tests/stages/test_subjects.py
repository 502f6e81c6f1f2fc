"""What a memory is about by its own word."""

from __future__ import annotations

from recollect.domain.subjects import name


def test_a_name_is_its_plain_words_without_article_and_what_is_added_in_brackets() -> None:
    assert name("The Moon (film)") == name("Moon   (film) ") == name("moon") == ("moon",)
    assert name("Moon (film) landing") == ("moon", "film", "landing")


def test_white_space_inside_a_title_is_read_once() -> None:
    assert name("the" + " " * 1_000_000 + "moon") == ("moon",)
