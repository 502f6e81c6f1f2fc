"""The number by which a store finds what may say the same: nothing that says the same has another one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from writing_pairs import DIFFERENT, REWORDED, SAME

from recollect.domain.gist import LONGEST, gist
from recollect.domain.memory import same_text
from recollect.stages.similarity import compare

VOCABULARY = """
deploy deployment deployments server servers database db config configs configuration folder directory remove deleted
cached caching flies fly boxes keys teams Teams DNS API_KEY foo_bar v1.2 k8s kubernetes postgres pg plan plans planned
builds crucial important matters mode always never instead make sure order notes decision 1,000 1000 10ms 10 ten two 2
req/s 30s 30 sec seconds min minutes minimum day days $5 5% percent percentage 16GB C++ e.g. and/or don't dont can't
cannot won't we'll user's let's lets write-ahead merges agreed used café ＦＵＬＬ ﬁle 東京 データ the a of for is are we
you just currently before not Note: Remember that can would wouldn't isn't doesn't hasn't they're I've
"""
WORDS = VOCABULARY.split()
sentences = st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join)
turns = st.sampled_from(
    ["{}", "The {}.", "Note: {}", "please remember that {}", "{} now", '"{}"', "make sure to {}", "we just {}!"]
)


@pytest.mark.parametrize(("left", "right"), [pair[:2] for pair in (*SAME, *REWORDED)])
def test_repetitions_have_one_gist(left: str, right: str) -> None:
    assert gist(left) == gist(right) or not compare(left, right).same


@example("Keep the cached boxes", "we keep caching the boxes", "{}")
@given(sentences, sentences, turns)
def test_what_says_the_same_has_one_gist(left: str, right: str, turn: str) -> None:
    for one, other in ((left, right), (left, turn.format(left)), (left, turn.format(right)), (left, left.upper())):
        if compare(one, other).same and _tells(one):
            assert gist(one) == gist(other)


def _tells(text: str) -> bool:
    """Whether a word is left that no text of the same meaning can do without."""
    return gist(text) == gist(f"the {text}")


@given(st.text(max_size=300))
def test_the_same_text_has_one_gist(text: str) -> None:
    assert gist(text) == gist(same_text(text)) == gist(f"  {text}\n")
    assert 0 <= gist(text) < 2**63


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The port is 8080", "The port is 9090"),
        ("Alice owns billing", "Bob owns billing"),
        ("Use tabs", "Use spaces"),
        ("用户喜欢深色模式", "用户喜欢咖啡"),
        ("now", "mode"),
        ("You are", "I am"),
    ],
)
def test_other_texts_mostly_have_another_gist(left: str, right: str) -> None:
    assert gist(left) != gist(right)


def test_few_of_the_pairs_that_only_look_alike_are_told_apart_too_late() -> None:
    """They were written to be as near as can be; most texts have other words."""
    assert sum(gist(pair[0]) == gist(pair[1]) for pair in DIFFERENT) < len(DIFFERENT) / 2


def test_a_long_text_has_the_gist_of_its_very_words() -> None:
    long = "word " * (LONGEST // 5 + 1)
    assert gist(long) != gist(f"the {long}") and gist(long) == gist(long.upper())
    assert gist("word " * 100) == gist("the " + "word " * 100)


def test_gists_are_what_files_hold() -> None:
    """A change here is a new format of every store: a step that numbers all memories anew."""
    assert [gist(text) for text in ("SQLite WAL mode matters", "Tests need a running db, 2 times", "now")] == [
        8132855997946378347,
        1830329912046918832,
        7612100293471341663,
    ]
