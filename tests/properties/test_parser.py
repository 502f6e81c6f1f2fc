"""The parser on anything: it never fails, stays within its bounds, and agrees with a second, simpler reading."""

from __future__ import annotations

import itertools
import random
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term, units
from recollect.domain.question import Filter, Question
from recollect.stages.cleaning import clean
from recollect.stages.intent import intents
from recollect.stages.ladder import RUNGS, Lexicon, fuzzy_words, rare_candidates
from recollect.stages.parse import MAX_PREFIXES, MAX_TERMS, MAX_WORDS, parse, unparse
from recollect.stages.temporal import window

pytestmark = pytest.mark.covers("ladder.dsl")

untimed = settings(deadline=None)
NOW = datetime(2024, 5, 15, 12, 30, tzinfo=UTC)
SIGNS = [
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    '"',
    "-",
    "*",
    " ",
    "  ",
    "\n",
    ":",
    "tag:x",
    "-type:y",
    "after:2024",
    "'",
    ",",
    ".",
]
SIGNS += [
    "wal",
    "Log",
    "a",
    "db",
    "the",
    "1",
    "é",
    "数据",
    "\x00",
    "\ud800",
    "\u200b",
    "--flag",
    "f(x)",
    "“",
    "”",
    "?",
    "=",
    "…",
    "/",
]

MOMENTS = (
    "last past this two 3 a few couple of weeks days ago may march 7th 2023 2023-02-30 on in between and since before "
    "after monday sunday summer the week year q3 31 february 9999 0000-00-00 13/2023 recently until . , how many"
)

queries = st.lists(st.sampled_from(SIGNS), max_size=40).map("".join) | st.lists(
    st.sampled_from(SIGNS), max_size=30
).map(" ".join)
texts = queries | st.text(max_size=200)
options = st.fixed_dictionaries({"default": st.sampled_from(["or", "and"]), "stopwords": st.booleans()})


def ask(text: str, **more: Any) -> Question:
    return parse(text, now=NOW, filter=Filter(), limit=5, mode="auto", sort_by="relevance", **more)


def all_units(node: Node) -> list[Any]:
    if isinstance(node, And | Or):
        return [unit for part in node.parts for unit in all_units(part)]
    if isinstance(node, Not):
        return [*all_units(node.keep), *all_units(node.drop)]
    return [node]


def check_shape(question: Question) -> None:
    """What every later stage relies on."""
    assert "\x00" not in question.text
    question.text.encode()
    assert question.text == unicodedata.normalize("NFC", question.text)
    if question.query is None:
        return
    found = all_units(question.query)
    assert len(set(found)) <= (MAX_TERMS if question.bare else MAX_WORDS)
    assert len({unit for unit in found if isinstance(unit, Prefix)}) <= MAX_PREFIXES
    for unit in found:
        written = unit.words if isinstance(unit, Phrase) else (unit.text,)
        assert written and all(word and not any(sign.isspace() or sign == '"' for sign in word) for word in written)
        assert any(sign.isalnum() or unicodedata.category(sign) == "Co" for sign in "".join(written))
        if isinstance(unit, Prefix):
            assert len(unit.text) >= 2


@untimed
@given(texts, options)
def test_any_text_parses_within_bounds(text: str, chosen: dict[str, Any]) -> None:
    check_shape(ask(text, temporal=True, intent=True, aliases={"wal": ["log", "write ahead"]}, **chosen))


@untimed
@given(texts, options)
def test_the_canonical_text_parses_to_the_same_tree(text: str, chosen: dict[str, Any]) -> None:
    tree = ask(text, aliases={"wal": ["log", "write ahead"]}, **chosen).query
    for default in ("or", "and"):
        again = ask(unparse(tree), default=default, stopwords=False)
        assert again.query == tree
        assert unparse(again.query) == unparse(tree)


@untimed
@given(texts)
def test_cleaning_is_idempotent_and_changes_nothing_for_the_parser(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert ask(clean(text)).query == ask(text).query


@untimed
@given(
    st.lists(st.text("abcdé1", min_size=1, max_size=6), min_size=1, max_size=8),
    queries.filter(lambda text: '"' not in text),
)
def test_quotes_are_preserved(words: list[str], rest: str) -> None:
    rest = rest.replace("“", "").replace("”", "").replace(":", "")
    question = ask(f'"{" ".join(words)}" {rest}')
    assert question.query is not None
    normal = tuple(clean(" ".join(words)).split())
    assert Phrase(normal) in all_units(question.query)
    assert not question.plain


@untimed
@given(texts)
def test_rungs_never_fail_and_stay_within_bounds(text: str) -> None:
    question = ask(text, aliases={"wal": ["log", "write ahead"]})
    lexicon = Lexicon(
        {word: len(word) % 3 for word in rare_candidates(question)},
        {word: [(word[::-1], 0.5), (word[1:] or "x", 0.2)] for word in fuzzy_words(question)},
    )
    for rung in RUNGS.values():
        node = rung(question, lexicon)
        assert node is None or 0 < len(units(node)) <= (MAX_TERMS if node is question.query else MAX_WORDS)


@pytest.mark.covers("ladder.temporal", "ladder.intent")
@untimed
@given(
    st.lists(
        st.sampled_from(MOMENTS.split()),
        max_size=12,
    ),
    st.datetimes(timezones=st.timezones() | st.none()),
)
def test_time_expressions_never_fail_and_are_never_empty(words: list[str], now: datetime) -> None:
    found = window(" ".join(words), now)
    assert found is None or (found.start < found.end and found.words)
    assert found is None or (found.start.tzinfo is UTC and found.end.tzinfo is UTC)
    assert isinstance(intents(" ".join(words)), tuple)


# A second reading of bracketed expressions: text and truth table are made together, without the parser.

Expression = tuple[str, Any]
names = st.sampled_from(["wa", "xb", "yc", "zd"])


def both(operator: str, left: Expression, right: Expression) -> Expression:
    meanings = {
        "AND": lambda words: left[1](words) and right[1](words),
        "OR": lambda words: left[1](words) or right[1](words),
        "NOT": lambda words: left[1](words) and not right[1](words),
    }
    return f"({left[0]} {operator} {right[0]})", meanings[operator]


expressions = st.recursive(
    names.map(lambda name: (name, lambda words: name in words)),
    lambda inner: st.builds(both, st.sampled_from(["AND", "OR", "NOT"]), inner, inner),
    max_leaves=7,
)


def holds(node: Node | None, words: frozenset[str]) -> bool:
    if isinstance(node, And):
        return all(holds(part, words) for part in node.parts)
    if isinstance(node, Or):
        return any(holds(part, words) for part in node.parts)
    if isinstance(node, Not):
        return holds(node.keep, words) and not holds(node.drop, words)
    assert isinstance(node, Term)
    return node.text in words


DOCUMENTS = [frozenset(some) for count in range(5) for some in itertools.combinations(["wa", "xb", "yc", "zd"], count)]


@untimed
@given(expressions, st.sampled_from(["or", "and"]))
def test_bracketed_expressions_mean_what_they_say(expression: Expression, default: str) -> None:
    text, meaning = expression
    tree = ask(text, default=default).query
    for document in DOCUMENTS:
        assert holds(tree, document) == bool(meaning(document)), (text, document)


def flat_meaning(tokens: list[str], default: str, words: frozenset[str]) -> bool:
    """An unbracketed query read by splitting: OR parts branches, NOT takes out, AND chains, the default joins."""
    branches = [list(part) for split, part in itertools.groupby(tokens, lambda token: token == "OR") if not split]
    for branch in branches:
        unwanted = [word for before, word in itertools.pairwise(branch) if before == "NOT"]
        chains: list[list[str]] = []
        for place, word in enumerate(branch):
            if word in ("AND", "NOT") or (place and branch[place - 1] == "NOT"):
                continue
            if place and branch[place - 1] == "AND" and chains:
                chains[-1].append(word)
            else:
                chains.append([word])
        truths = [all(word in words for word in chain) for chain in chains]
        if (any(truths) if default == "or" else all(truths)) and not words.intersection(unwanted):
            return True
    return False


@untimed
@given(
    names,
    st.lists(st.tuples(st.sampled_from(["", "AND", "OR", "NOT"]), names), max_size=7),
    st.sampled_from(["or", "and"]),
)
def test_flat_expressions_mean_what_they_say(first: str, rest: list[tuple[str, str]], default: str) -> None:
    tokens = [first, *(token for pair in rest for token in pair if token)]
    tree = ask(" ".join(tokens), default=default).query
    for document in DOCUMENTS:
        assert holds(tree, document) == flat_meaning(tokens, default, document), (tokens, document)


BOMBS = [
    '"' * 100_000,
    "(" * 100_000,
    ")" * 100_000,
    "-" * 100_000,
    "*" * 100_000,
    "a " * 50_000,
    "a* " * 30_000,
    '"a ' * 30_000,
    "NOT " * 25_000,
    "a AND " * 16_000,
    "a OR (" * 16_000,
    "a." * 50_000,
    "'" * 100_000,
    "." * 100_000,
    ":" * 100_000,
    "1" * 100_000 + "a",
    'tag:"' * 20_000,
    "tag:x " * 16_000,
    "-(" * 50_000,
    "\x00" * 100_000,
    "\ud800" * 100_000,
    "e" + "\u0301" * 100_000,
    "数" * 100_000,
    " " * 100_000,
    "what is the " * 9_000,
    "two weeks ago " * 8_000,
    "x" * 100_000,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_bombs_are_harmless(bomb: str) -> None:
    check_shape(ask(bomb, temporal=True, intent=True))


def test_ten_thousand_odd_strings() -> None:
    chance = random.Random(4)
    for _ in range(10_000):
        text = "".join(
            chance.choice(SIGNS) if chance.random() < 0.8 else chr(chance.randrange(0x3000))
            for _ in range(chance.randrange(30))
        )
        check_shape(ask(text, temporal=True, intent=True))
