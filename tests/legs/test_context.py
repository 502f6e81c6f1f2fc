"""Turns found by the words around them, second steps, and what conversations tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from recollect.domain.memory import Scope
from recollect.domain.query import Term
from recollect.domain.question import Filter, Question, TimeWindow
from recollect.domain.ranking import Passage
from recollect.domain.subjects import fold, subject
from recollect.encoders.fake import FakeEmbedder
from recollect.legs.context import NEIGHBOUR_TOKENS, in_context
from recollect.legs.lexical import lexical
from recollect.ports import Matrix
from recollect.stages.concepts import concepts, names
from recollect.stages.parse import parse
from recollect.stages.priors import role, speaker, temporal
from recollect.upkeep.conversations import View, conversation_views
from recollect.upkeep.embedding import embed_backlog
from recollect.writing import WritePolicy
from tests.world import NOW, World, counted, ids

TALK = ("did you ever repair the roof?", "yes, in march", "great, and who helped?", "my cousin", "nice weather today")


def conversation(world: World, *texts: str, session: str = "s1", **fields: Any) -> None:
    for place, text in enumerate(texts):
        scope = Scope(session=session)
        world.remember(f"{session}-{place}", text, days=1 - place / 1000, type="episode", scope=scope, **fields)


def context(**weights: Any) -> dict[str, Any]:
    return {"legs.lexical.before": [0.6, 0.4], "legs.lexical.after": [0.4], "fusion.kind": "rrf", **weights}


def test_an_answer_is_found_by_the_words_of_the_question_it_answers() -> None:
    world = World(embedder=None)
    conversation(world, *TALK)
    conversation(world, "roof repair in general", "unrelated words here", session="s2")
    plain = world.ask("token-budget-lexical", "repair roof", options={"select.floor.minimum": 0})
    assert "s1-1" not in ids(plain)
    lists = world.ask(
        "importance-prior", "repair roof", options={"legs.lexical.before": [0.6, 0.4], "legs.lexical.after": [0.4]}
    ).trace.lists
    assert "s1-1" in lists["lexical"] and lists["lexical"].index("s1-1") < lists["lexical"].index("s1-2")
    assert "s1-4" not in lists["lexical"], "only so far as the weights reach"


def test_by_default_what_was_told_stands_before_what_was_asked() -> None:
    world = World(embedder=None)
    conversation(world, "where did you go on holiday last summer?", session="s1")
    conversation(world, "we spent the holiday on an island and hiked every day, it rained only once", session="s2")
    question = "where was the holiday"
    assert ids(world.ask("balanced", question)) == ["s2-0", "s1-0"]
    assert ids(world.ask("balanced", question, options={"priors.thin.penalty": 0})) == ["s1-0", "s2-0"]


def test_facts_and_other_sessions_lend_nothing() -> None:
    world = World(embedder=None)
    scope = Scope(session="s1")
    world.remember("a", "repair the roof", scope=scope, type="fact")
    world.remember("b", "yes in march", scope=scope, type="fact")
    conversation(world, "repair the roof", session="s2")
    conversation(world, "somebody else entirely", session="s3")
    lists = world.ask("importance-prior", "roof", options={"legs.lexical.before": [0.6]}).trace.lists
    assert set(lists["lexical"]) == {"a", "s2-0"}


def test_of_equal_matches_the_lower_ids_stay_whatever_order_the_store_has() -> None:
    world = World(embedder=None)
    for number in (7, 3, 9, 1, 5):
        world.remember(f"m{number}", f"roof number{number}")
    question = parse("roof", now=NOW, filter=Filter(), limit=5, mode="auto", sort_by="relevance")
    assert world.store.text is not None
    found = lexical(world.store.text, question, world.store.links, limit=3, before=(0.6,))
    assert [hit.id for hit in found.hits] == ["m1", "m3", "m5"]


def test_a_turn_is_embedded_with_what_was_said_before_it() -> None:
    world = World()
    conversation(world, "where is the key?", "under the mat", metadata={"speaker": "Ann"})
    assert world.store.vectors is not None and world.embedder is not None
    waiting = world.store.vectors.missing(world.embedder.id, 10)
    views = conversation_views(world.store, waiting)
    first, second = "Ann: where is the key?", "Ann: under the mat"
    assert views == {
        "s1-0": View(f"[31 May 2026]\n{first}", by_user=False),
        "s1-1": View(f"[31 May 2026]\n{first}\n{second}", by_user=False),
    }


@pytest.mark.covers("prior.sensitive")
def test_what_is_sensitive_reaches_no_model_by_way_of_the_turn_after_it() -> None:
    world, given = World(), list[str]()

    class Listening(FakeEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Matrix:
            given.extend(texts)
            return super().embed_documents(texts)

    conversation(world, "how is she?")
    conversation(world, "Emma is in hospital", "I see", session="s2", sensitive=True)
    world.remember("s2-2", "and now?", type="episode", scope=Scope(session="s2"))
    embed_backlog(world.store, Listening(), now=NOW, policy=WritePolicy())
    assert given == ["how is she?", "and now?", "[31 May 2026]\nhow is she?", "[1 June 2026]\nand now?"]


def test_the_vector_of_a_turn_is_the_mean_of_turn_and_view() -> None:
    world, embedder = World(), FakeEmbedder()
    conversation(world, "where is the key?", "under the mat")
    world.remember("alone", "a fact of its own")
    embed_backlog(world.store, embedder, now=NOW, policy=WritePolicy())
    assert world.store.vectors is not None
    view = "[31 May 2026]\nwhere is the key?\nunder the mat"
    turn, seen = embedder.embed_documents(["under the mat", view])
    question = embedder.embed_query("the key")
    (hit,) = world.store.vectors.similarities(embedder.id, question, ["s1-1"]).values()
    assert hit.score == pytest.approx((turn @ question + seen @ question) / 2, abs=1e-5)
    lone = embedder.embed_documents(["a fact of its own"])[0]
    (hit,) = world.store.vectors.similarities(embedder.id, lone, ["alone"]).values()
    assert hit.score == pytest.approx(1.0, abs=1e-5)


ASIDE = "I keep the key of the shed under the old doormat."
TWO_THOUGHTS = f"Can you recommend a rack that holds two bicycles? {ASIDE}"


@pytest.mark.parametrize("metadata", [{"speaker": "user"}, {"role": "human"}])
def test_what_a_user_says_beside_the_point_has_a_vector_of_its_own(metadata: dict[str, str]) -> None:
    world, embedder = World(), FakeEmbedder()
    conversation(world, TWO_THOUGHTS, metadata=metadata)
    embed_backlog(world.store, embedder, now=NOW, policy=WritePolicy())
    assert world.store.vectors is not None
    aside, other = embedder.embed_documents([ASIDE, "Can you recommend a rack that holds two bicycles?"])
    (hit,) = world.store.vectors.similarities(embedder.id, aside, ["s1-0"]).values()
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert hit.passage == Passage(TWO_THOUGHTS.index(ASIDE), len(TWO_THOUGHTS))
    (hit,) = world.store.vectors.similarities(embedder.id, other, ["s1-0"]).values()
    assert hit.passage == Passage(0, TWO_THOUGHTS.index(" " + ASIDE))
    (entry,) = world.store.vectors.stored(embedder.id, ["s1-0"])
    turn, seen = embedder.embed_documents(
        [TWO_THOUGHTS, f"[31 May 2026]\n{next(iter(metadata.values()))}: {TWO_THOUGHTS}"]
    )
    assert entry.vectors is not None and entry.vectors[0] == pytest.approx((turn + seen) / 2, abs=1e-6)
    assert entry.passages[0] == (0, len(TWO_THOUGHTS)), "the turn as a whole stays beside its thoughts"


@pytest.mark.parametrize("metadata", [{"speaker": "assistant"}, {"speaker": "Ann"}, {}])
def test_what_others_say_in_one_turn_is_one_thought(metadata: dict[str, str]) -> None:
    world, embedder = World(), FakeEmbedder()
    conversation(world, TWO_THOUGHTS, metadata=metadata)
    embed_backlog(world.store, embedder, now=NOW, policy=WritePolicy())
    assert world.store.vectors is not None
    (entry,) = world.store.vectors.stored(embedder.id, ["s1-0"])
    assert entry.vectors is not None and len(entry.vectors) == 1 and entry.passages == ()


def test_a_long_turn_speaks_for_itself() -> None:
    world = World()
    conversation(world, "where is the key?", "under the mat " * 100)
    assert world.store.vectors is not None and world.embedder is not None
    assert set(conversation_views(world.store, world.store.vectors.missing(world.embedder.id, 10))) == {"s1-0"}


@pytest.mark.covers("prior.graph")
def test_the_bridge_finds_what_the_best_memories_name() -> None:
    world = World(embedder=None)
    world.remember("film", "Northern Lights\nNorthern Lights is a film directed by Greta Halvorsen in winter.")
    world.remember("person", "Greta Halvorsen\nGreta Halvorsen was born in Tromso and studied medicine.")
    world.remember("shared", "The Tromso festival showed a retrospective of Greta Halvorsen last year.")
    for place in range(30):
        world.remember(f"x{place}", f"Filler {place}\nNothing to see about topic{place} here.")
    options = {"legs.lexical.limit": 1, "legs.lexical.factor": 0.1}
    answer = world.ask("balanced", "where was the director of Northern Lights born?", options=options)
    assert ids(answer)[:2] == ["film", "person"]
    person = next(hit for hit in answer if hit.id == "person")
    assert {part.list: part.raw for part in person.contributions} == {"bridge": 1.0}
    without = world.ask(
        "balanced", "where was the director of Northern Lights born?", options={**options, "legs.bridge.weight": 0}
    )
    assert "person" not in ids(without) and without.trace.legs["bridge"].skipped == "weight 0"


def test_a_list_says_when_its_scores_are_flat_by_making() -> None:
    world = World(embedder=None)
    world.remember("note", "the key is under the mat")
    assert world.store.text is not None
    question = parse("where is the key?", now=NOW, filter=Filter(), limit=5, mode="auto", sort_by="relevance")
    alone = lexical(world.store.text, question, world.store.links, before=(0.5,))
    conversation(world, "where is the key?", "under the mat")
    among = lexical(world.store.text, question, world.store.links, before=(0.5,))
    spelled = parse("undwer", now=NOW, filter=Filter(), limit=5, mode="auto", sort_by="relevance")
    likely = lexical(world.store.text, spelled, rungs=("initial", "trigram_fuzzy"))
    assert (alone.flattened, among.flattened) == (False, True), "mixed with the words of the turns around"
    assert likely.hits and likely.flattened and likely.ceiling == 1, "likenesses of spelling"
    assert among.ceiling is None


def test_a_second_step_reads_no_memory_that_is_read_again() -> None:
    world = World(embedder=None)
    world.store, ports = counted(world.store)
    world.remember("film", "Northern Lights\nNorthern Lights is a film directed by Greta Halvorsen in winter.")
    world.remember("person", "Greta Halvorsen\nGreta Halvorsen was born in Tromso and studied medicine.")
    answer = world.ask("balanced", "where was the director of Northern Lights born?")
    fetched = [id for (asked,), _ in ports["records"].named("fetch") for id in asked]
    assert ids(answer) == ["film", "person"] and sorted(fetched) == ["film", "person"]


def test_a_memory_about_what_the_question_names_gains() -> None:
    world = World(embedder=None)
    world.remember("about", "Greta Halvorsen\nBorn in Tromso, studied medicine and later film.")
    world.remember("mentions", "An interview of Greta Halvorsen with Greta Halvorsen about Greta Halvorsen.")
    answer = world.ask("balanced", "what did Greta Halvorsen study?")
    assert next(hit for hit in answer if hit.id == "about").contributions[-1].list == "subject"
    assert "subject" not in {part.list for hit in answer if hit.id == "mentions" for part in hit.contributions}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was founded by Erik Olsen of Oslo.", {"erik olsen of oslo"}),
        ("Then the Bank of Norway moved.", {"bank of norway"}),
        ("Error code FL-4031 in app.config is new", {"fl 4031", "app config"}),
        ('She called it "blue moon" once', {"blue moon"}),
        ("Yesterday was fine. Nothing else.", set[str]()),
        ('The letters "ab" and "..." name nothing, nor does Xi.', set[str]()),
        ("We met One Two Three Four Five Six and Seven there.", set[str]()),
        ("Der Hund jagt die Katze durch den Garten und das Haus.", set[str]()),
    ],
)
def test_concepts_are_names_identifiers_and_quoted_words(text: str, expected: set[str]) -> None:
    assert {" ".join(one) for one in concepts(text)} == expected


def test_a_memory_may_be_about_every_run_of_words_that_begins_with_a_capital_or_a_digit() -> None:
    said = {" ".join(one) for one in names("the old Bank of 3 rivers")}
    assert said == {"bank of", "bank of 3", "bank of 3 rivers", "3 rivers"}


def test_the_subject_is_the_title_or_a_short_first_line() -> None:
    world = World(embedder=None)
    assert subject(world.remember("a", "Oslo\nA city in Norway")) == ("oslo",)
    assert subject(world.remember("b", "One line only")) == ()
    assert subject(world.remember("c", "text", metadata={"title": "The Moon (film)"})) == ("moon",)
    assert fold("Café-Bar, No. 5!") == ("café", "bar", "no", "5")


def test_time_speaker_and_role() -> None:
    world = World(embedder=None)
    memory = world.remember("a", "x", days=10, metadata={"speaker": "Ann Lee", "role": "assistant"})
    asked = Question("q", NOW, words=("what", "did", "ann", "say"), window=TimeWindow(NOW - timedelta(days=4), NOW))
    assert speaker(1.0, memory, asked, bonus=0.1) == pytest.approx(1.1)
    assert speaker(1.0, memory, Question("q", NOW, words=("bob",))) == 1.0
    nobody, somebody = (world.remember(name, "z", metadata={"speaker": name}) for name in (" ", "Weiß"))
    assert speaker(1.0, nobody, asked) == 1.0
    assert speaker(1.0, somebody, Question("q", NOW, words=("weiß",)), bonus=0.1) == pytest.approx(1.1)
    assert role(1.0, memory, asked, penalty=0.1) == pytest.approx(0.9)
    for exempt in (("you", "said"), ("how", "did", "we", "mend", "it"), ("our", "plan")):
        assert role(1.0, memory, Question("q", NOW, words=exempt)) == 1.0
    assert role(1.0, world.remember("b", "y", metadata={"speaker": "assistant"}), asked, penalty=0.1) == 0.9
    # six days outside a window of four: 0.3 · exp(-6 / (3 + 1))
    assert temporal(1.0, memory, asked, bonus=0.3) == pytest.approx(1.0 + 0.3 * 2.718281828459045 ** (-6 / 4))


def test_a_question_is_asked_as_of_its_date() -> None:
    world = World(embedder=None)
    world.remember("then", "the plan was signed", days=2)
    world.remember("later", "the plan was cancelled", days=-30)
    assert ids(world.ask("balanced", "plan")) == ["then"]
    assert set(ids(world.ask("importance-prior", "plan"))) == {"then", "later"}


def test_a_turn_lends_its_words_by_the_weights_of_the_places_and_long_ones_less() -> None:
    world = World(embedder=None)
    conversation(world, "hm", "well", "the roof leaks", "I see", "oh")
    world.remember("fact", "a roof")
    index, links = world.store.text, world.store.links
    assert index is not None and links is not None
    alone = index.match(Term("roof"), Filter(), 10)
    mixed = in_context(alone, links, before=(0.5, 0.3), after=(0.25,))
    assert dict(zip(mixed.ids, mixed.counts.sum(axis=(1, 2)).tolist())) == pytest.approx(
        {"fact": 1.0, "s1-1": 0.25, "s1-2": 1.0, "s1-3": 0.5, "s1-4": 0.3}
    )
    # Whoever takes part is as much longer as a full neighbourhood makes it; of newcomers only the average is known.
    own, added = dict(zip(alone.ids, alone.lengths.tolist())), NEIGHBOUR_TOKENS * (0.5 + 0.3 + 0.25)
    newcomers = dict.fromkeys(("s1-1", "s1-3", "s1-4"), alone.average_length + added)
    assert dict(zip(mixed.ids, mixed.lengths.tolist())) == pytest.approx(
        {"fact": own["fact"], "s1-2": own["s1-2"] + added, **newcomers}
    )
    assert mixed.average_length == pytest.approx(alone.average_length + added)
    conversation(world, "roof " + "word " * 39, "yes", session="s2")
    longer = in_context(index.match(Term("roof"), Filter(), 10), links, before=(0.5,), after=())
    assert dict(zip(longer.ids, longer.counts.sum(axis=(1, 2)).tolist()))["s2-1"] == pytest.approx(
        0.5 * NEIGHBOUR_TOKENS / 40
    )
