"""Full text: the tokens, the matches and the numbers of FTS5 itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from contract_cases import ALL, at, bm25, fts5, note, parted, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.domain.changes import Erase, Put, Touch
from recollect.domain.memory import EPOCH, Memory
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term, Unit, units
from recollect.domain.question import Filter
from recollect.ports import Store, TextIndex

TEXTS = [
    "Running runs: the runner ran to École 42, naïve café",
    "foo-bar foo_bar FOO.BAR o'clock e-mail",
    "deploy deploys deployed deploying deployment",
    "日本語 текст ελληνικά Straße ﬁne",
    "a a a b a a",
    "I'm C++ & C#; x² ½ — “quoted” 3.14",
    "zero\u200bwidth soft\u00adhyphen cafe\u0301",
    "",
    "!!! ... ---",
]


class Bare:
    """A bare FTS5 table with the text columns: the judge."""

    def __init__(self, memories: list[Memory]) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("CREATE VIRTUAL TABLE t USING fts5 (content, tags, tokenize = 'porter unicode61')")
        self.ids = [memory.id for memory in memories]
        for memory in memories:
            columns = (parted(memory.content), parted(" ".join(memory.tags)))
            self.connection.execute("INSERT INTO t VALUES (?, ?)", columns)

    def scores(self, query: str, weights: tuple[float, float] = (1.0, 1.0)) -> dict[str, float]:
        sql = "SELECT rowid, -bm25(t, ?, ?) FROM t WHERE t MATCH ?"
        return {self.ids[int(row) - 1]: float(score) for row, score in self.connection.execute(sql, (*weights, query))}

    def frequencies(self) -> dict[str, int]:
        self.connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, 'row')")
        return dict(self.connection.execute("SELECT term, doc FROM v"))


def fill(store: Store, texts: list[str]) -> list[Memory]:
    memories = [note(f"m{number:03}", content) for number, content in enumerate(texts)]
    put(store, *memories)
    return memories


def found(text: TextIndex, query: Node, filter: Filter = ALL) -> list[str]:
    return sorted(text.match(query, filter, 100).ids)


def judged(memories: list[Memory], query: str) -> list[str]:
    return sorted(Bare(memories).scores(query))


def test_tokens_are_those_of_porter_unicode61(text: TextIndex) -> None:
    expected = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
    for content in TEXTS:
        tokens = expected(parted(content).encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
        assert text.tokens(content) == [token[0] for token in tokens]
    assert text.tokens("Running the Écoles") == ["run", "the", "ecol"]


UNSPACED = {
    "東京タワーは高さ333メートルです。": ["東京", "タワー", "高", "333"],
    "长江是中国最长的河流。": ["长江", "河流", "中国最长"],
    "แม่น้ำเจ้าพระยาไหลผ่านกรุงเทพมหานคร": ["เจ้าพระยา", "กรุงเทพ", "น้ำ"],
    "서울에서 부산까지는 기차로 갑니다.": ["서울", "부산", "기차"],
    "iPhone手机坏了": ["iphone", "手机"],
}


@pytest.mark.parametrize("content", UNSPACED)
def test_words_are_found_inside_runs_of_scripts_without_spaces(store: Store, text: TextIndex, content: str) -> None:
    put(store, note("it", content), note("another", "Nothing 何もない 什么 ไม่มี 없다"))
    for word in UNSPACED[content]:
        assert found(text, Term(word)) == ["it"], word
    assert found(text, Term(UNSPACED[content][0][::-1])) == []
    store.records.write([Erase("it", tombstone=False)])
    assert found(text, Term(UNSPACED[content][0])) == [] and store.care.check() == []


def test_frequencies_count_memories_not_occurrences(store: Store, text: TextIndex) -> None:
    memories = fill(store, [*TEXTS, "running", "nothing here"])
    tagged = note("tagged", "unrelated", tags=("running", "run"), namespace="elsewhere")
    put(store, tagged)
    expected = Bare([*memories, tagged]).frequencies()
    terms = [*expected, "running", "absent"]
    assert text.frequencies(terms) == [expected.get(term, 0) for term in terms]
    assert text.frequencies(["run", "run"]) == [3, 3]
    assert text.frequencies([]) == []


QUERIES: list[Node] = [
    Term("Running"),
    Term("ecole"),
    Term("foo-bar"),
    Term("bar foo"),
    Term("o'clock"),
    Term('"'),
    Term('fo"o'),
    Phrase(("foo", "bar")),
    Phrase(("foo-bar", "foo_bar")),
    Phrase(("a", "a")),
    Phrase(("the", "runner", "ran")),
    Phrase(("runner", "the", "ran")),
    Prefix("deploy"),
    Prefix("deploye"),
    Prefix("deployment"),
    Prefix("run"),
    Prefix("foo-ba"),
    Prefix("日本"),
    Prefix("cl"),
    Prefix("caf"),
    And((Term("foo"), Term("email"))),
    And((Term("foo"), Term("mail"))),
    Or((Term("foo"), Term("naive"))),
    Not(Term("deploy"), Term("absent")),
    Not(Or((Term("a"), Term("foo"))), Term("b")),
    Not(Term("foo"), Not(Term("bar"), Term("email"))),
    Or((And((Term("a"), Term("b"))), And((Term("foo"), Term("absent"))))),
    Term("AND"),
    Term("content"),
    Prefix("content:foo"),
]


@pytest.mark.parametrize("query", QUERIES, ids=fts5)
@pytest.mark.covers("ladder.dsl")
def test_queries_match_what_fts5_matches(store: Store, text: TextIndex, query: Node) -> None:
    memories = fill(store, TEXTS)
    assert found(text, query) == judged(memories, fts5(query))


def test_prefixes_are_stemmed_before_they_are_looked_for(store: Store, text: TextIndex) -> None:
    fill(store, ["deploy", "deployment", "deploys"])
    assert found(text, Prefix("deploy")) == ["m000", "m002"]
    assert found(text, Prefix("deplo")) == ["m000", "m001", "m002"]


NOTHING = [Term("..."), Term(""), Phrase(()), Phrase(("-", "!")), Prefix("*"), And(()), Or(())]


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_what_has_no_tokens_is_left_out(store: Store, text: TextIndex, nothing: Node) -> None:
    fill(store, ["foo bar", "foo", "baz"])
    foo = Term("foo")
    for empty in (nothing, And((nothing, nothing)), Or((nothing,)), Not(nothing, Term("baz"))):
        assert found(text, empty) == []
        assert found(text, And((foo, empty))) == ["m000", "m001"]
        assert found(text, Or((empty, foo))) == ["m000", "m001"]
        assert found(text, Not(foo, empty)) == ["m000", "m001"]
        assert found(text, And((foo, Or((empty, Term("bar")))))) == ["m000"]


@pytest.mark.parametrize("separator", ["\0", "\ud800"])
def test_what_a_query_cannot_carry_separates_words(store: Store, text: TextIndex, separator: str) -> None:
    fill(store, ["foo bar", "bar foo", "foobar"])
    assert found(text, Term(f"foo{separator}bar")) == ["m000"]
    assert found(text, Phrase((f"foo{separator}", "bar"))) == ["m000"]
    assert found(text, Prefix(f"foo{separator}ba")) == ["m000"]
    assert text.tokens(f"foo{separator}bar") == ["foo", "bar"]
    assert text.similar(f"foo{separator}bar", 0.99, 5) == [("foobar", 1.0)]


def test_phrases_stay_within_a_column_but_cross_tags(store: Store, text: TextIndex) -> None:
    put(store, note("a", "one two", tags=("three", "four five")))
    for words, expected in {("two", "three"): [], ("three", "four"): ["a"], ("four", "five"): ["a"]}.items():
        assert found(text, Phrase(words)) == expected


def test_matches_carry_the_numbers_of_the_whole_index(store: Store, text: TextIndex) -> None:
    put(
        store,
        note("a", "Running the run: runs", tags=("run", "fast lane")),
        note("b", "a run in another namespace", namespace="n"),
        note("c", "no match at all"),
    )
    query = Not(Or((Term("run"), Phrase(("fast", "lane")), Term("..."), Term("run"))), Term("zebra"))
    matches = text.match(query, ALL, 10)
    assert matches.units == (Term("run"), Phrase(("fast", "lane")), Term("...")) == units(query)
    assert matches.ids == ("a",)
    assert matches.lengths.tolist() == [7]
    assert matches.counts.tolist() == [[[3, 1], [0, 1], [0, 0]]]
    assert matches.frequencies.tolist() == [2, 1, 0]
    assert (matches.documents, matches.average_length) == (3, 16 / 3)
    assert isinstance(matches.compiled, str)


def test_counts_are_plain_occurrences_in_every_branch(store: Store, text: TextIndex) -> None:
    fill(store, ["a c c", "a b", "b a a a"])
    matches = text.match(Or((And((Term("a"), Term("b"))), Term("c"), Phrase(("a", "a")))), ALL, 10)
    counts = dict(zip(matches.ids, matches.counts[:, :, 0].tolist(), strict=True))
    assert counts == {"m000": [1, 0, 2, 0], "m001": [1, 1, 0, 0], "m002": [3, 1, 0, 2]}


@pytest.mark.parametrize("query", [Term("absent"), Term("...")])
def test_no_match_still_has_its_shape(store: Store, text: TextIndex, query: Unit) -> None:
    for documents, length in ((0, 0.0), (1, 2.0)):
        matches = text.match(query, ALL, 10)
        assert (matches.ids, matches.units) == ((), (query,))
        assert matches.counts.shape == (0, 1, 2)
        assert matches.lengths.shape == (0,)
        assert matches.frequencies.tolist() == [0]
        assert (matches.documents, matches.average_length) == (documents, length)
        if not documents:
            put(store, note("a", "two words"))


WORDS = ["run", "running", "runs", "fast", "lane", "the", "deploy", "deployment", "foo-bar", "café", "zebra", "日本"]
contents = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
corpora = st.lists(
    st.tuples(contents, st.lists(st.sampled_from(WORDS), max_size=3).map(tuple)), min_size=1, max_size=12
)
single = st.one_of(
    st.sampled_from(WORDS).map(Term),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: Phrase(tuple(words))),
    st.sampled_from(["ru", "run", "de", "deploym", "foo-ba", "caf", "ze", "日本"]).map(Prefix),
)
flat = st.tuples(st.sampled_from([And, Or]), st.lists(single, min_size=1, max_size=4, unique=True)).map(
    lambda pair: pair[0](tuple(pair[1]))
)
scored = st.one_of(single, flat, st.tuples(flat, single).map(lambda pair: Not(*pair)))
column_weights = st.tuples(st.sampled_from([1.0, 0.0, 2.5]), st.sampled_from([1.0, 0.5, 3.0]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=corpora, query=scored, weights=column_weights)
@pytest.mark.covers("two-stage.bm25")
def test_scores_are_those_of_fts5s_bm25(
    store: Store, text: TextIndex, corpus: list[tuple[str, tuple[str, ...]]], query: Node, weights: tuple[float, float]
) -> None:
    memories = [note(f"m{number:02}", content, tags=tags) for number, (content, tags) in enumerate(corpus)]
    put(store, *memories)
    try:
        expected = Bare(memories).scores(fts5(query), weights)
        assert bm25(text.match(query, ALL, 100, weights), weights) == pytest.approx(expected, abs=1e-9, rel=0)
    finally:
        store.records.write([Erase(memory.id, tombstone=False) for memory in memories])


def crowd() -> list[Memory]:
    """Common and rare words, long and short texts, many and few tags, and many equal scores."""
    return [
        note(
            f"m{number * 611 % 1100:04}",
            " ".join(["common"] * (1 + number % 4) + ["filler"] * (number % 7) + ["rare"] * (number % 50 == 3))
            + (" middling" if number % 5 == 0 else ""),
            tags=("common",) * (number % 9 == 0) + tuple(f"t{tag}" for tag in range(number % 31)),
            project="pq"[number % 2],
        )
        for number in range(1100)
    ]


CROWDED = [
    Term("common"),
    Or((Term("common"), Term("rare"))),
    Or((Term("common"), Term("middling"), Term("rare"), Term("filler"))),
    And((Term("common"), Term("filler"))),
    Prefix("com"),
    Phrase(("common", "common")),
]


@pytest.mark.covers("two-stage.bm25")
def test_the_best_are_among_the_candidates_however_small_the_limit(store: Store, text: TextIndex) -> None:
    memories = crowd()
    put(store, *memories)
    in_project = {memory.id for memory in memories if memory.scope.project == "p"}
    bare = Bare(memories)
    for query, weights in itertools.product(CROWDED, [(1.0, 1.0), (1.0, 10.0)]):
        everything = bare.scores(fts5(query), weights)
        scoped = {id: score for id, score in everything.items() if id in in_project}
        for filter, scores in ((ALL, everything), (Filter(project="p"), scoped)):
            best = sorted(scores, key=lambda id: (-round(scores[id], 12), id))
            for limit in (1, 10):
                candidates = text.match(query, filter, limit, weights).ids
                assert set(best[:limit]) <= set(candidates) <= set(scores), (query, filter, weights, limit)
                assert len(candidates) == len(set(candidates))


@pytest.mark.covers("two-stage.bm25")
def test_a_question_may_have_very_many_words(store: Store, text: TextIndex) -> None:
    """Every one of them counts, also the last."""
    words = [f"word{number}" for number in range(254)]
    memories = fill(store, [" ".join(words[start : start + 1 + start % 7]) for start in range(0, 254, 3)])
    query = Or((*map(Term, words), Term("never"), Term("read-only")))
    found = text.match(query, ALL, 200)
    expected = Bare(memories).scores(fts5(query))
    assert len(expected) == len(memories)
    assert bm25(found, (1.0, 1.0)) == pytest.approx(expected, abs=1e-9, rel=0)


def test_the_index_follows_every_change(store: Store, text: TextIndex) -> None:
    memories = fill(store, ["alpha beta", "alpha", "alpha alpha gamma"])
    changed = [note("m000", "delta", tags=("alpha", "new")), note("m001", "alpha", type="decision")]
    store.records.write(
        [*(Put(memory, expected_version=1) for memory in changed), Erase("m002"), Touch(("m001",), EPOCH, count=1)]
    )
    now = [changed[0], changed[1]]
    assert memories[2] not in now
    for query in (Term("alpha"), Term("beta"), Term("gamma"), Or((Term("delta"), Term("new")))):
        matches = text.match(query, ALL, 10)
        assert bm25(matches) == pytest.approx(Bare(now).scores(fts5(query)), abs=1e-9, rel=0)
        assert (matches.documents, matches.average_length) == (2, 2.0)
    assert text.frequencies(text.tokens("alpha beta gamma delta")) == [2, 0, 0, 1]
    assert text.similar("gamma", 0.9, 5) == []
    assert text.similar("beta", 0.9, 5) == []
    assert text.similar("alpha", 0.9, 5) == [("alpha", 1.0)]


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_means_no_candidates(store: Store, text: TextIndex, limit: int) -> None:
    put(store, note("a", "word words"), note("b", "word sword"))
    assert text.match(Term("word"), ALL, limit).ids == ()
    assert text.similar("word", 0.1, limit) == []


@pytest.mark.covers("ladder.fuzzy")
def test_similar_is_the_jaccard_of_padded_trigrams_over_unstemmed_words(store: Store, text: TextIndex) -> None:
    put(
        store,
        note("a", "Deployment DEPLOYMENT deploying", tags=("Deploy-ments",)),
        note("b", "a ab abc Écoles running", namespace="elsewhere"),
    )
    assert text.similar("deploiment", 0.3, 10) == [("deployment", 7 / 13), ("deploy", 4 / 12)]
    assert text.similar("DÉPLOYMENT", 0.99, 10) == [("deployment", 1.0)]
    assert text.similar("a", 0.0, 10) == [("a", 1.0)]
    assert text.similar("ab", 0.0, 10) == [("ab", 1.0), ("abc", 1 / 4)]
    assert text.similar("ecole", 0.5, 10) == [("ecoles", 4 / 7)]
    assert text.similar("run ning", 0.5, 10) == [("running", 1.0)]
    assert text.similar("run", 0.99, 10) == []
    assert text.similar("zzz", 0.0, 10) == []
    assert text.similar("...", 0.0, 10) == []


def test_similar_words_tie_by_word_and_the_minimum_counts(store: Store, text: TextIndex) -> None:
    put(store, note("a", "catz catb cata dog"))
    third = 2 / 6
    assert text.similar("catx", 0.0, 10) == [("cata", third), ("catb", third), ("catz", third)]
    assert text.similar("catx", third, 2) == [("cata", third), ("catb", third)]
    assert text.similar("catx", third + 1e-9, 10) == []


def test_a_word_leaves_the_vocabulary_with_its_last_memory(store: Store, text: TextIndex) -> None:
    put(store, note("a", "unique word"), note("b", "shared word"))
    store.records.write([Erase("a")])
    assert text.similar("unique", 0.9, 10) == []
    assert text.similar("word", 0.9, 10) == [("word", 1.0)]


def test_full_text_outlives_a_reopening(lasting_backend, tmp_path: Path) -> None:
    path = tmp_path / "lasting.db"
    first = lasting_backend.open(path)
    put(first, note("a", "one two", tags=("three",)), note("b", "four"))
    first.close()
    again = lasting_backend.open(path)
    matches = again.text.match(Or((Term("two"), Term("three"))), ALL, 10)
    assert (matches.ids, matches.documents, matches.average_length) == (("a",), 2, 2.0)
    assert again.text.similar("fourr", 0.3, 10) == [("four", 3 / 6)]
    again.close()


def test_what_memories_are_about_can_be_looked_up(store: Store, text: TextIndex) -> None:
    put(
        store,
        note("b", "The Moon (film)\nA film of 1950."),
        note("a", "seen last night", metadata={"title": "moon"}),
        note("c", "the moon is no subject here"),
        note("d", "Mars\nA planet.", project="p"),
    )
    assert text.about([("moon",), ("mars",), ("film",), ()], ALL, 5) == {("moon",): ["a", "b"], ("mars",): ["d"]}
    assert text.about([("moon",), ("mars",)], replace(ALL, project="p"), 5) == {("mars",): ["d"]}
    assert text.about([("moon",)], ALL, 1) == {}
    store.records.write([Erase("a"), Put(note("b", "Venus\nA planet."), expected_version=1)])
    assert text.about([("moon",), ("venus",)], ALL, 5) == {("venus",): ["b"]}


def test_a_scope_knows_its_own_counts(store: Store, text: TextIndex) -> None:
    put(store, *(note(f"p{place}", "apple pie", project="p") for place in range(3)))
    put(store, note("q", "plum pie", project="p"), note("x", "apple"))
    inside = text.match(Or((Term("apple"), Term("plum"), Term("pear"))), replace(ALL, project="p"), 1).scope
    assert inside is not None
    assert (inside.documents, inside.frequencies.tolist()) == (4, [3.0, 1.0, 0.0])


@pytest.mark.parametrize("left_out", [{"exclude": frozenset({"x"})}, {"without_types": ("rule",)}, {"before": at(9)}])
def test_what_was_forgotten_counts_in_no_scope(store: Store, text: TextIndex, left_out: dict[str, Any]) -> None:
    put(store, *(note(f"p{place}", "apple pie", created_at=at(place)) for place in range(4)))
    put(store, note("x", "apple", type="rule", created_at=at(9)))
    store.records.write([Erase("p0"), Erase("p2")])
    inside = text.match(Term("apple"), replace(ALL, **left_out), 5).scope
    assert inside is not None
    assert (inside.documents, inside.frequencies.tolist()) == (2, [2.0])
