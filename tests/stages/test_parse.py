"""The query language: each rule of the grammar by example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from asking import NOW, ask

from recollect.domain.query import And, Not, Or, Phrase, Prefix, Term, units
from recollect.domain.question import Filter
from recollect.domain.scripts import letters
from recollect.stages.parse import MAX_CHARACTERS, MAX_PREFIXES, MAX_TERMS, MAX_WORDS, unparse

GRAMMAR = {
    # text: canonical text, under the default operator OR
    "wal checkpoint": "wal OR checkpoint",
    "wal AND checkpoint": "wal AND checkpoint",
    "wal OR checkpoint": "wal OR checkpoint",
    "wal NOT checkpoint": "wal NOT checkpoint",
    "wal AND NOT checkpoint": "wal NOT checkpoint",
    '"write ahead" log': '"write ahead" OR log',
    "“write ahead” log": '"write ahead" OR log',
    '"wal"': '"wal"',
    "deploy*": "deploy*",
    "(a1 OR b1) AND c1": "(a1 OR b1) AND c1",
    "a1 AND b1 c1": "a1 AND b1 OR c1",
    "a1 b1 AND c1": "a1 OR b1 AND c1",
    "a1 NOT b1 c1": "(a1 OR c1) NOT b1",
    "a1 NOT b1 OR c1": "a1 NOT b1 OR c1",
    "a1 NOT b1 NOT c1": "a1 NOT (b1 OR c1)",
    "(a1 NOT b1) NOT c1": "(a1 NOT b1) NOT c1",
    "a1 NOT (b1 AND c1)": "a1 NOT (b1 AND c1)",
    "-wal log": "log NOT wal",
    "log -wal": "log NOT wal",
    'log -"write ahead"': 'log NOT "write ahead"',
    "log -(wal shm)": "log NOT (wal OR shm)",
    "(log -wal) AND disk": "(log NOT wal) AND disk",
    "log -wal*": "log NOT wal*",
    # A leading NOT is dropped, in brackets too, and so is a negation that is a branch of its own.
    "NOT wal": "wal",
    "NOT wal log": "wal OR log",
    "log AND (NOT wal)": "log AND wal",
    "-wal": "",
    "log OR NOT wal": "log OR wal",
    # Doubles count once, in any case; the first writing stays.
    "WAL wal Wal": "WAL",
    "log AND LOG": "log",
    "log AND (log AND disk)": "log AND disk",
    # Malformed: read as plain words.
    '"wal log': "wal OR log",
    'wal" log': "wal OR log",
    "log AND": "log",
    "OR log": "log",
    "log AND OR wal": "log OR and OR wal",
    "AND": "and",
    "NOT": "not",
    "((log": "log",
    "log))": "log",
    ")(": "",
    "log AND ()": "log",
    '""': "",
    "*": "",
    "-": "",
    "- log": "log",
    "log - wal": "log OR wal",
    "and or not log": "log",
    "🎉 party": "party",
}


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("text", GRAMMAR)
def test_every_text_has_a_reading(text: str) -> None:
    assert unparse(ask(text).query) == GRAMMAR[text]


EXCLUSIONS = {
    # text: what is taken out
    "postgres -mysql": "mysql",
    'deploy -staging -"blue green"': 'staging OR "blue green"',
    "docker -kubernetes": "kubernetes",
    "java -kotlin": "kotlin",
    "the plan -budget": "budget",
    "find decisions -kubernetes": "kubernetes",
    "frameworks -js -angular": "angular",
    "the IT -budget": "budget",
    "wal AND -log": "log",
    '"find -name" -windows': "windows",
    # Quotes, brackets and fields stand behind no flag, and NOT is always an operator.
    'how does find work -"old notes"': '"old notes"',
    "how does find work -(windows OR bsd)": "windows OR bsd",
    "how does find -name work NOT windows": "windows",
    "what database do we use -mysql": "mysql",
    "which databases do we run? -mysql -oracle": "mysql OR oracle",
    # Nothing else is there.
    "-wal": "wal",
    "(-wal) -log": "wal OR log",
    "-wal OR -log": "wal OR log",
    "-(wal AND log)": "wal AND log",
    "-(wal AND (log OR dump))": "wal AND (log OR dump)",
    '-"write ahead"': '"write ahead"',
}

FLAGS = {
    # text: the words that a minus stands before, and all that is searched for
    "how does find -name work": "find OR name OR work",
    "which -mysql databases do we run": "mysql OR databases OR run",
    "does it build -release?": "build OR release",
    "add the -release flag": "add OR release OR flag",
    "I ran it -verbose and it failed": "ran OR verbose OR failed",
    "cargo build -release": "cargo OR build OR release",
    "go test -race": "go OR test OR race",
    "find -name": "find OR name",
    "find . -name": "find OR name",
    "sudo /usr/bin/find ~/notes -name": "sudo OR /usr/bin/find OR ~/notes OR name",
    "tar -xzf": "tar OR xzf",
    "rm -rf -force": "rm OR -rf OR force",
    "pytest -x -slow": "pytest OR -x OR slow",
    "git log --oneline -graph": "git OR log OR --oneline OR graph",
    "mvn -Dx=1 -offline": "mvn OR -Dx=1 OR offline",
    "run `app -verbose`": "run OR app OR verbose",
    "find -NOT wal": "find OR wal",
}


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("text", EXCLUSIONS)
def test_a_minus_in_a_query_takes_a_word_out_and_says_so(text: str) -> None:
    question = ask(text)
    assert unparse(question.unwanted) == EXCLUSIONS[text]
    assert f"left out what matches: {EXCLUSIONS[text]}" in question.notes


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("text", FLAGS)
def test_a_minus_in_a_sentence_or_a_command_line_takes_nothing_out_and_says_so(text: str) -> None:
    question = ask(text)
    assert question.unwanted is None and question.plain
    assert unparse(question.query) == FLAGS[text]
    assert "a minus leaves nothing out in a sentence or a command line" in question.notes[0]


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("text", ["-v wal", "git log --oneline", "pytest -x -k slow", "log - wal", "what -tag:old"])
def test_nothing_is_said_where_nothing_could_be_meant(text: str) -> None:
    assert ask(text).unwanted is None and ask(text).notes == ()


def test_a_prompt_knows_no_minus_and_needs_no_word_about_it() -> None:
    for prompt in ("find -name x", "postgres -mysql", "-wal"):
        question = ask(prompt, prose=True)
        assert question.unwanted is None and question.notes == () and question.words


UNSPACED = {
    "谁是法国总统？": "谁是 OR 是法 OR 法国 OR 国总 OR 总统",
    "iPhone手机 price": "iPhone OR 手机 OR price",
    "水": "水",
    "พูดอะไรได้": "พดอะ OR ดอะไ OR อะไร OR ะไรไ OR ไรได",
    "서울에서 가요": "서울 OR 울에 OR 에서 OR 가요",
    "总统府 NOT 法国人": "总统府 NOT 法国人",
    '"总统府" 法国人': '"总统府" OR 法国人',
}


@pytest.mark.parametrize("text", UNSPACED)
def test_runs_without_spaces_ask_for_their_pieces_unless_they_are_meant_as_they_are(text: str) -> None:
    assert unparse(ask(text).query) == UNSPACED[text]


IDENTIFIERS = (
    "foo_bar app.config.ts C++ C# --flag --dry-run=yes v1.2.3 /etc/hosts ~/.bashrc ./run.sh .env user@example.com "
    "issue#12 #12 @octocat $HOME O'Brien R&D a/b 10:30 key=value std::vector main() f(x) -5 -v -rf -O2 -Dx=1 1,000 "
    "naïve x²"
)


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("word", IDENTIFIERS.split())
def test_identifiers_are_single_terms_kept_as_written(word: str) -> None:
    assert ask(f"{word} disk").query == Or((Term(word), Term("disk")))


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("disk?", "disk"),
        ("disk...", "disk"),
        ("...disk", "disk"),
        ("'disk'", "disk"),
        ("disk,log;wal", "disk OR log OR wal"),
        ("[disk]", "disk"),
        ("<disk/>", "disk/"),
        ("disk—log", "disk OR log"),
        ("`disk`", "disk"),
        ("数据库，查询。", "数据 OR 据库 OR 查询"),
        ("**disk**", "disk"),
        ("(disk)", "disk"),
        ("foo(disk", "foo OR disk"),
        ("d*", "d"),
        ("app.d*", "app.d"),
        ("app.di*", "app.di*"),
    ],
)
def test_the_punctuation_of_a_sentence_is_no_part_of_a_word(written: str, read: str) -> None:
    assert unparse(ask(written).query) == read


@pytest.mark.covers("ladder.dsl")
def test_default_operator_and() -> None:
    assert ask("wal log", default="and").query == And((Term("wal"), Term("log")))
    assert ask("wal log OR disk", default="and").query == Or((And((Term("wal"), Term("log"))), Term("disk")))
    assert ask("wal log -disk", default="and").query == Not(And((Term("wal"), Term("log"))), Term("disk"))


@pytest.mark.covers("ladder.dsl")
def test_text_is_composed_and_rid_of_what_nobody_sees() -> None:
    question = ask("cafe\u0301 da\u200bta\ufeff \u202ebase\x00 \ud800x1 tab\x07le")
    assert question.text == "caf\u00e9 data base x1 tab le"
    assert question.words == ("caf\u00e9", "data", "base", "x1", "tab", "le")
    question.text.encode()


@pytest.mark.covers("ladder.dsl")
def test_what_is_plain() -> None:
    for plain in ("wal log", "wal (log)", "deploy*", "log AND", '"wal', "NOT wal"):
        assert ask(plain).plain, plain
    for syntax in ('"wal log"', "wal AND log", "wal -log", "type:fact wal", "a1 NOT b1"):
        assert not ask(syntax).plain, syntax


@pytest.mark.covers("ladder.dsl")
def test_words_are_what_is_asked_for_in_lower_case_with_stop_words() -> None:
    assert ask('What is "the WAL" NOT disk tag:x -(a1 OR b1) Deploy*').words == ("what", "is", "the", "wal", "deploy")
    assert ask("-wal").words == ()


@pytest.mark.covers("ladder.stopwords")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("what is the best database", "best OR database"),
        ("What's the plan?", "plan"),
        ("type:fact what is the plan", "plan"),
        # Quotes or operators: every word was meant.
        ('"what is" the plan', '"what is" OR the OR plan'),
        ("the plan AND budget", "the OR plan AND budget"),
        ("the plan -budget", "(the OR plan) NOT budget"),
        # Nothing would be left.
        ("what is it", "what OR is OR it"),
        ("the", "the"),
        # Names in capitals.
        ("the IT budget", "IT OR budget"),
        ("WHAT IS THE PLAN", "PLAN"),
    ],
)
def test_stop_words(text: str, read: str) -> None:
    assert unparse(ask(text).query) == read


@pytest.mark.covers("ladder.stopwords")
def test_stop_words_can_stay() -> None:
    assert unparse(ask("what is wal", stopwords=False).query) == "what OR is OR wal"


@pytest.mark.covers("ladder.aliases")
def test_aliases_expand_terms_only() -> None:
    aliases = {"K8s": "kubernetes", "db": ["database", "data base"], "two words": "never"}

    def read(text: str, **options: str) -> str:
        return unparse(ask(text, aliases=aliases, **options).query)

    assert read("k8s") == "k8s OR kubernetes"
    assert read("DB disk") == 'DB OR database OR "data base" OR disk'
    assert read("db AND disk") == '(db OR database OR "data base") AND disk'
    assert read('"db disk"') == '"db disk"'
    assert read("db*") == "db*"
    assert read("disk -k8s") == "disk NOT k8s"
    assert unparse(ask("-k8s", aliases=aliases).unwanted) == "k8s"
    assert read("k8s -disk") == "(k8s OR kubernetes) NOT disk"
    assert read("two words") == "two OR words"
    assert ask("k8s", aliases=aliases).aliases == (("k8s", "kubernetes"), ("db", "database"), ("db", "data base"))


@pytest.mark.covers("ladder.aliases")
def test_an_alias_is_words_whatever_it_holds() -> None:
    assert ask("x1", aliases={"x1": '"a b" OR c* (d', "": "y", "z": ""}).query == Or(
        (Term("x1"), Phrase(("a", "b", "c", "d")))
    )
    many = {"x1": [f"word{number}" for number in range(1000)]}
    assert len(units(ask("x1 disk", aliases=many).query)) <= MAX_WORDS


@pytest.mark.covers("ladder.dsl")
def test_a_long_question_is_searched_for_up_to_a_bound_and_says_so() -> None:
    words = [f"word{number}" for number in range(MAX_TERMS + 10)]
    question = ask(" ".join(f"the {word} of" for word in words))
    assert unparse(question.query) == " OR ".join(words[:MAX_TERMS])
    told = f"first {MAX_TERMS} words ({MAX_WORDS} of them in compounds)"
    assert question.cut and any(told in note for note in question.notes)
    whole = ask(" ".join(words[:MAX_TERMS]))
    assert not whole.cut and whole.notes == ()


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("made", ["{} OR x", '"{}"', "{} -x", "(x AND {})"], ids=["or", "quotes", "minus", "and"])
def test_whatever_is_joined_otherwise_keeps_the_smaller_bound(made: str) -> None:
    joined = made.format(" AND ".join(f"word{number}" for number in range(100)))
    question = ask(joined)
    assert sum(len(unit.words) if isinstance(unit, Phrase) else 1 for unit in units(question.query)) <= MAX_WORDS
    assert any(f"first {MAX_WORDS} words" in note for note in question.notes)
    every = ask(" ".join(f"word{number}" for number in range(100)), default="and")
    assert len(units(every.query)) == MAX_WORDS, "all of many words are no alternatives"


@pytest.mark.covers("ladder.dsl")
def test_of_a_long_question_only_so_many_words_may_be_compounds() -> None:
    made = " ".join(f"word{number} left{number}-right{number}" for number in range(60))
    found = [unit.text for unit in units(ask(made).query) if isinstance(unit, Term)]
    assert [one for one in found if "-" not in one] == [f"word{number}" for number in range(60)]
    assert sum("-" in one for one in found) == MAX_WORDS // 2


PASSAGE = (
    "BACKGROUND AND AIMS The committee met again in the spring and talked about what it called "
    '"a matter of habit" for most of the day, although there was NOT one member who could say when the old rule had '
    "come to be, who had asked for it, or what it had been good for in the first place. It was kept all the same, as "
    "so many rules are, -not out of conviction but because nobody had a better one to offer, and the spring was short."
)


@pytest.mark.covers("ladder.dsl")
def test_a_passage_is_no_query() -> None:
    question = ask(PASSAGE)
    found = [unit.text for unit in units(question.query) if isinstance(unit, Term)]
    assert question.plain and question.unwanted is None
    assert {"BACKGROUND", "AIMS", "habit", "conviction", "member"} < set(found)
    assert len(found) == len(units(question.query)), "single words and nothing else"
    assert not {"the", "and", "of"} & set(found), "without stop words, as every plain question"
    assert any("quotes and operators mean nothing" in note for note in question.notes)
    assert question.text == PASSAGE
    assert not any("write:" in note for note in ask(PASSAGE + " See --all -others.").notes), "NOT would be a word too"
    with_field = ask(PASSAGE + " type:decision")
    assert with_field.query == question.query and with_field.filter.types == ("decision",)


@pytest.mark.covers("ladder.dsl")
def test_a_long_query_stays_one() -> None:
    several = " OR ".join(f'"quality of life{number}" AND word{number}' for number in range(30))
    assert any(isinstance(unit, Phrase) for unit in units(ask(several).query))
    quoted = '"' + PASSAGE.replace('"', "") + '" who said that'
    assert isinstance(units(ask(quoted).query)[0], Phrase)
    short = " ".join(PASSAGE.split()[: MAX_WORDS // 2])
    assert any(isinstance(unit, Phrase) for unit in units(ask(short).query)), "a short question is one too"
    assert not any("mean nothing" in note for text in (several, quoted, short) for note in ask(text).notes)


@pytest.mark.covers("ladder.dsl")
def test_doubles_do_not_use_up_the_bounds() -> None:
    assert ask("same " * 200 + "other").query == Or((Term("same"), Term("other")))


@pytest.mark.covers("ladder.dsl")
def test_a_word_in_another_case_is_the_same_word_in_every_branch() -> None:
    words = [f"word{number}" for number in range(MAX_WORDS)]
    again = [f"{word.upper()} AND x" for word in words]
    twice = " OR ".join([*(f"{word} AND {words[0]}" for word in words[1:]), *again])
    assert unparse(ask("(disk AND Wal) OR (log AND WAL)").query) == "disk AND Wal OR log AND Wal"
    assert len(set(units(ask(twice).query))) == MAX_WORDS, "no more units than a store takes"


@pytest.mark.covers("ladder.dsl")
def test_long_queries_are_read_up_to_a_bound() -> None:
    question = ask("start " + "x" * 3 + " " * MAX_CHARACTERS + "end")
    assert unparse(question.query) == "start OR xxx"
    assert any(str(MAX_CHARACTERS) in note for note in question.notes)


@pytest.mark.covers("ladder.dsl")
def test_a_long_phrase_and_a_long_word_cost_what_they_hold() -> None:
    (phrase,) = units(ask('"' + "w " * 1000 + '"').query)
    assert isinstance(phrase, Phrase) and len(phrase.words) == MAX_WORDS
    assert len(units(ask("x-" * 1000 + "y").query)) == 2
    dotted = units(ask(" ".join(f"a{n}.b{n}.c{n}.d{n}" for n in range(100))).query)
    assert len(dotted) == MAX_WORDS // 4


@pytest.mark.covers("ladder.dsl")
def test_prefixes_are_few() -> None:
    found = units(ask("aa* bb* cc* dd* ee* ff* aa*").query)
    assert [unit for unit in found if isinstance(unit, Prefix)] == [Prefix(stem) for stem in ("aa", "bb", "cc", "dd")]
    assert found[MAX_PREFIXES:] == (Term("ee"), Term("ff"))


@pytest.mark.covers("ladder.dsl")
def test_deep_brackets_are_flattened() -> None:
    deep = "(" * 500 + "wal" + ")" * 500
    assert ask(f"{deep} AND log").query == And((Term("wal"), Term("log")))
    nested = "a0" + "".join(f" OR b{n}) AND c{n}" for n in range(30))
    assert ask("(" * 30 + nested).query is not None
    # Six brackets here would be twelve in the canonical text, which could then not be read again.
    text = "x0"
    for level in range(6):
        text = f"({text} y{level} NOT z{level}) AND w{level}"
    tree = ask(text).query
    assert isinstance(tree, Or) and ask(unparse(tree)).query == tree


FIELDS = {
    "type:gotcha wal": Filter(types=("gotcha",)),
    "type:gotcha,fact wal": Filter(types=("gotcha", "fact")),
    "type:gotcha type:fact wal": Filter(types=("gotcha", "fact")),
    "Tag:db tags:wal x1": Filter(tags=("db", "wal")),
    'tag:"two words" x1': Filter(tags=("two words",)),
    "-tag:old -type:fact x1": Filter(without_tags=("old",), without_types=("fact",)),
    "x1 NOT tag:old": Filter(without_tags=("old",)),
    "session:s1 x1": Filter(sessions=("s1",)),
    "project:shop x1": Filter(project="shop"),
    "before:2024-05-01 x1": Filter(before=datetime(2024, 5, 1, tzinfo=UTC)),
    "after:2024-05 x1": Filter(after=datetime(2024, 5, 1, tzinfo=UTC)),
    "after:2024 x1": Filter(after=datetime(2024, 1, 1, tzinfo=UTC)),
    "after:2024-05-01T12:00:00+02:00 x1": Filter(after=datetime(2024, 5, 1, 10, tzinfo=UTC)),
    "(x1 type:fact)": Filter(types=("fact",)),
}


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize("text", FIELDS)
def test_fields_become_the_filter(text: str) -> None:
    question = ask(text)
    assert question.filter == FIELDS[text]
    assert {unit.text for unit in units(question.query) if isinstance(unit, Term)} <= {"wal", "x1"}


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("wal AND type:fact", "wal"),
        ("type:fact AND wal", "wal"),
        ("wal AND type:fact AND log", "wal AND log"),
        ("wal type:fact AND log", "wal AND log"),
        ("type:fact AND (wal OR log)", "wal OR log"),
        ("log OR wal AND type:fact", "log OR wal"),
        ("wal AND NOT tag:old", "wal"),
        ("NOT tag:old AND wal", "wal"),
        ("wal AND -tag:old", "wal"),
        ("(type:fact OR type:lesson) AND wal", "wal"),
        ("wal AND ((type:fact) OR (tag:db AND tag:x)) AND log", "wal AND log"),
        ("(wal OR type:fact) AND log", "wal AND log"),
        ("type:fact OR type:lesson", None),
        ("(type:fact AND tag:db)", None),
        ("wal AND before:soon", "wal AND before OR soon"),
    ],
)
def test_what_joins_a_field_with_something_is_no_word(text: str, read: str | None) -> None:
    question = ask(text, stopwords=False)
    assert (None if question.query is None else unparse(question.query)) == read


@pytest.mark.covers("ladder.dsl")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("after:soon", "after OR soon"),
        ("before:2024-13-01", "before OR 2024 OR 13 OR 01"),
        ("-session:s1 wal", "session OR s1 OR wal"),
        ("-after:2024 wal", "after OR 2024 OR wal"),
        ('tag:"" wal', "tag OR wal"),
        ("tag: wal", "tag OR wal"),
        ("metatag:x", "metatag:x"),
        ("'tag:x'", "tag OR x"),
        ("after:OR", "after"),
    ],
)
def test_a_field_that_means_nothing_is_plain_words(text: str, read: str) -> None:
    question = ask(text)
    assert unparse(question.query) == read
    assert question.filter == Filter() and question.plain


@pytest.mark.covers("ladder.dsl")
def test_fields_only_narrow_what_the_caller_gave() -> None:
    given = Filter(
        namespace="n1",
        project="shop",
        sessions=("s1", "s2"),
        types=("fact", "lesson"),
        tags=("db",),
        without_tags=("old",),
        after=datetime(2024, 1, 1, tzinfo=UTC),
        before=datetime(2024, 6, 1, tzinfo=UTC),
        exclude=frozenset({"m1"}),
    )
    narrowed = ask("session:s2,s3 type:fact tag:wal -tag:x after:2023 before:2024-02 project:shop w1", filter=given)
    assert narrowed.filter == Filter(
        namespace="n1",
        project="shop",
        sessions=("s2",),
        types=("fact",),
        tags=("db", "wal"),
        without_tags=("old", "x"),
        after=datetime(2024, 1, 1, tzinfo=UTC),
        before=datetime(2024, 2, 1, tzinfo=UTC),
        exclude=frozenset({"m1"}),
    )
    for contradiction in ("project:other", "session:s3", "type:episode", "project:shop project:other"):
        denied = ask(f"{contradiction} w1", filter=given).filter
        assert denied.only == frozenset(), contradiction
        assert (denied.namespace, denied.project, denied.sessions) != ("n1", "other", ("s3",))
        assert denied.project == "shop"


@pytest.mark.covers("ladder.dsl", "ladder.temporal", "ladder.intent")
def test_what_a_profile_switches_on() -> None:
    text = "how many commits did I make last week"
    assert (ask(text).window, ask(text).intents) == (None, ())
    question = ask(text, temporal=True, intent=True)
    assert question.window is not None and question.window.words == "last week"
    assert question.intents == ("fact",)


def test_the_rest_of_a_question_is_passed_through() -> None:
    question = ask("wal", limit=7, mode="bm25", sort_by="recency", budget_tokens=90)
    assert (question.limit, question.mode, question.sort_by, question.budget_tokens, question.now) == (
        7,
        "bm25",
        "recency",
        90,
        NOW,
    )


@pytest.mark.parametrize("query", ['"{}"', "{} OR b", "{}*", "b -{}", '"{} {}"', "{} OR {} OR {} OR {} OR {} OR {}"])
def test_a_run_without_spaces_of_any_length_stays_within_the_bounds_of_an_index(query: str) -> None:
    """Every letter of it is a word of the index, and no store looks for hundreds of them at once."""
    runs = ["".join(chr(0x4E00 + (97 * place + 13 * number) % 5_000) for place in range(300)) for number in range(6)]
    read = ask(query.format(*runs)).query
    assert read is not None
    assert 0 < len(letters(unparse(read))) <= 1_024
    assert max(len(letters(unparse(unit))) for unit in units(read)) <= 64


def test_a_question_asked_as_of_the_end_of_time_leaves_nothing_out() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    assert ask("wal", now=last, as_of_days=30.0).filter.before is None
    assert ask("wal", now=last - timedelta(days=31), as_of_days=30.0).filter.before is not None


@pytest.mark.parametrize("text", ["AND wal log", "OR wal log", "wal log AND"])
def test_an_operator_without_a_word_to_join_is_a_word(text: str) -> None:
    question = ask(text)
    assert question.plain and set(question.words) == {*text.lower().split()}
    assert unparse(question.query) == "wal OR log"
