"""Confidence: signs by hand, the logistic by hand, floors as rates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.domain.confidence import Calibration, ConfidenceRecipe, Point
from recollect.domain.memory import Memory, Scope
from recollect.domain.question import Question, TimeWindow
from recollect.domain.ranking import Hit, Passage, RankedList
from recollect.domain.recall import Candidate
from recollect.domain.scripts import has_unspaced
from recollect.domain.vocabulary import stem
from recollect.stages import confidence
from recollect.stages.confidence import Frequencies

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CURVE = (Point(0.8, 1.0, 0.05), Point(0.9, 0.0, 0.1), Point(0.97, -1.4, 0.3))


def remembered(id: str, content: str, *, speaker: str = "", days: float = 0.0, session: str | None = None) -> Memory:
    at = NOW - timedelta(days=days)
    metadata = {"speaker": speaker} if speaker else {}
    return Memory(
        id=id, content=content, scope=Scope(session=session), created_at=at, updated_at=at, accessed_at=at,
        metadata=metadata,
    )  # fmt: skip


def candidate(id: str, content: str, score: float = 1.0, **more: object) -> Candidate:
    return Candidate(remembered(id, content, **more), score)  # type: ignore[arg-type]


def asked(*words: str, **more: object) -> Question:
    return Question(" ".join(words), NOW, words=words, **more)  # type: ignore[arg-type]


def lists(lexical: dict[str, float], similarity: dict[str, float] | None = None) -> dict[str, RankedList]:
    made = {"lexical": RankedList("lexical", tuple(Hit(id, score) for id, score in lexical.items()))}
    if similarity is not None:
        made["similarity"] = RankedList("similarity", tuple(Hit(id, score) for id, score in similarity.items()))
    return made


def inverse(documents: float, found: float) -> float:
    return log(1 + (documents - found + 0.5) / (found + 0.5))


def rarity(documents: float, found: float) -> float:
    return inverse(documents, found) / inverse(documents, 1)


@pytest.mark.covers("more.abstain")
def test_every_sign_by_hand() -> None:
    frequencies = Frequencies(2000, {"painted": 20, "lighthouse": 1})
    candidates = [candidate("a", "She paints on Sundays."), candidate("b", "An old lighthouse.")]
    found = confidence.signs(
        asked("what", "painted", "lighthouse"),
        lists({"a": 6.0, "b": 3.0}, {"b": 0.8, "a": 0.6, "c": 0.5, "d": 0.1}),
        candidates,
        frequencies,
    )
    common, rare = rarity(2000, 20), rarity(2000, 1)
    assert found == pytest.approx(
        {
            "covered": rare / (common + rare),
            "together": 1.0,
            "by_words": 6.0 / (2.2 * (inverse(2000, 20) + inverse(2000, 1))),
            "dated": 0.0,
            "in_time": 0.8,
            "rarest": 1.0,
            "rarity": (common + 1.0) / 2,
            "unknown": 0.0,
            "close": (0.8 + 0.6 + 0.5) / 3,
            "outstanding": 0.8 - 0.5,
            "agreement": 2 / 5,
        },
        abs=1e-12,
    )


def test_words_that_no_memory_holds_are_told_from_those_that_the_candidates_lack() -> None:
    frequencies = Frequencies(2000, {"painted": 20, "leuchtturm": 0, "lighthouse": 1})
    for words, unknown in ((("painted", "lighthouse"), 0), (("painted", "leuchtturm"), 0.5), (("leuchtturm",), 1)):
        found = confidence.signs(asked("what", *words), lists({}), [candidate("a", "sand")], frequencies)
        assert (found["unknown"], found["covered"]) == (unknown, 0)
    assert confidence.signs(asked(), lists({}), [], frequencies)["unknown"] == 0


def test_the_first_five_cover_the_first_ten_together_and_those_below_are_not_read() -> None:
    sand = [candidate(f"s{place}", "sand") for place in range(10)]
    held = candidate("a", "An old lighthouse.")

    def seen(place: int) -> tuple[float, float]:
        ranked = [*sand[:place], held, *sand[place:]]
        found = confidence.signs(asked("lighthouse"), lists({}), ranked, Frequencies(2000))
        return found["covered"], found["together"]

    assert [seen(place) for place in (4, 5, 9, 10)] == [(1, 1), (0, 1), (0, 1), (0, 0)]


def test_a_word_that_no_memory_holds_is_the_hardest_to_reach_and_no_words_are_not_rare() -> None:
    found = confidence.signs(asked("zeppelin"), lists({"a": 3.0}), [], Frequencies(2000))
    assert found["by_words"] == pytest.approx(3.0 / (2.2 * inverse(2000, 0)))
    found = confidence.signs(asked("what"), lists({"a": 3.0}), [], Frequencies(2000))
    assert (found["by_words"], found["rarest"], found["rarity"]) == (0, 0, 0)


def test_a_named_time_is_no_word_to_find_but_a_nearness() -> None:
    window = TimeWindow(NOW - timedelta(days=14), NOW - timedelta(days=7), "last week")
    question = asked("painted", "last", "week", window=window)
    near = candidate("a", "painted", days=20.0)
    found = confidence.signs(question, lists({"a": 1.0}), [near], Frequencies(2000, {"painted": 1}))
    assert found["dated"] == 1.0 and found["covered"] == 1.0
    assert found["in_time"] == pytest.approx(exp(-6 / (3 + 7 / 4)))
    assert confidence.signs(question, lists({}), [], Frequencies(2000))["in_time"] == 0.0


def test_who_speaks_says_nothing_unless_nothing_else_is_asked() -> None:
    said = [remembered("a", "hello", speaker="Ann Lee")]
    assert confidence.content_words(asked("what", "did", "ann", "paint"), said) == ["paint"]
    assert confidence.content_words(asked("what", "did", "ann", "do"), said) == ["ann"]
    assert confidence.content_words(asked("what", "is", "it"), said) == []


def test_words_count_in_every_form_and_partly_by_their_beginning() -> None:
    assert confidence.held_words(["paints", "photographs", "art"], "He painted; photography, an article.") == [
        1.0, pytest.approx(10 / 11), 0.0,
    ]  # fmt: skip


def test_a_stop_word_of_a_memory_is_no_kin_of_a_word_that_is_asked_for() -> None:
    assert confidence.held_words(["thanks", "theme"], "It takes more than an hour, and then themes.") == [
        0.0,
        1.0,
    ]
    assert confidence.held_words(["thankful"], "He thanked us.") == [pytest.approx(5 / 8)]


def test_only_the_best_passage_of_a_long_memory_is_read() -> None:
    long = "lighthouse " + "sand " * 1000
    late = candidate("a", long + " mill")._replace(passage=Passage(3000, 4000))
    frequencies = Frequencies(2000)
    found = confidence.signs(asked("lighthouse"), lists({}), [late], frequencies)
    assert found["covered"] == 0.0
    assert confidence.signs(asked("mill"), lists({}), [late], frequencies)["covered"] == 0.0, "nor what follows it"
    assert confidence.signs(asked("lighthouse"), lists({}), [late._replace(passage=None)], frequencies)["covered"] == 1


def test_a_short_memory_is_read_whole_whatever_its_best_passage() -> None:
    turn = candidate("a", "We saw the lighthouse. Then the mill.")._replace(passage=Passage(23, 37))
    assert confidence.signs(asked("lighthouse"), lists({}), [turn], Frequencies(2000))["covered"] == 1


def test_tags_and_the_titles_over_a_section_hold_words_too() -> None:
    above = {"headings": ["Timeouts", "Pool"], "front_matter": {"title": "Clients"}, "path": "docs/advanced.md"}
    section = Memory("a", "How long to wait for a connection.", tags=("network",), metadata=above)
    question = asked("timeouts", "pool", "clients", "advanced", "network", "connection")
    found = confidence.signs(question, lists({"a": 1.0}), [Candidate(section, 1.0)], Frequencies())
    assert found["covered"] == 1


def test_a_small_store_does_not_make_its_words_worthless() -> None:
    found = confidence.signs(
        asked("database", "production"), lists({"a": 1.0}), [candidate("a", "production")],
        Frequencies(1, {"production": 1, "database": 0}),
    )  # fmt: skip
    assert found["covered"] == pytest.approx(0.5), "a store of one memory does not know which word is rare"


def test_the_logistic_by_hand() -> None:
    fitted = Calibration("c", 0.5, {"covered": 2.0, "close": -1.0}, {"covered": 0.25}, CURVE)
    found = confidence.weighed({"covered": 0.75, "close": 0.5, "rarity": 9.0}, fitted, 0.9)
    assert found.chance == pytest.approx(1 / (1 + exp(-(0.5 + 2 * 0.5 - 0.5))))
    assert [(one.name, one.adds) for one in found.signs] == [("covered", 1.0), ("close", -0.5)]
    assert found.floor == pytest.approx(0.5) and found.injected == 0.1 and found.enough


@pytest.mark.covers("more.abstain")
def test_a_rate_becomes_a_floor_on_the_line_between_two_points() -> None:
    between = confidence.floor_at(CURVE, 0.935)
    assert between is not None
    assert (between.log_odds, between.injected) == pytest.approx((-0.7, 0.2))
    assert confidence.floor_at(CURVE, 0.97) == CURVE[-1]
    lowest = confidence.floor_at(CURVE, 0.5)
    assert lowest is not None and lowest.log_odds == 1.0
    assert confidence.floor_at(CURVE, 0.98) is None, "beyond the curve nothing was measured, so nothing is left out"
    assert confidence.floor_at(CURVE, 1.0) is None and confidence.floor_at((), 0.9) is None


@given(st.floats(0.5, 1), st.floats(0.5, 1))
def test_who_keeps_more_has_no_higher_floor(one: float, other: float) -> None:
    low, high = (confidence.floor_at(CURVE, keep) for keep in sorted((one, other)))
    floors = [float("-inf") if point is None else point.log_odds for point in (low, high)]
    assert floors[0] >= floors[1]


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_the_chance_rises_with_the_log_odds_and_stays_a_chance(one: float, other: float) -> None:
    low, high = (confidence.logistic(value) for value in sorted((one, other)))
    assert 0 <= low <= high <= 1


@given(st.lists(st.sampled_from(["lighthouse", "paint", "boat", "and", "ann"]), max_size=6), st.text(max_size=60))
def test_shares_stay_shares_whatever_is_asked(words: list[str], text: str) -> None:
    found = confidence.signs(asked(*words), lists({"a": 0.5}), [candidate("a", text)], Frequencies(3, {"boat": 2}))
    assert all(0 <= found[name] <= 1 + 1e-9 for name in ("covered", "together", "rarest", "rarity", "in_time"))
    assert found["covered"] <= found["together"] + 1e-12


def test_a_memory_that_holds_more_of_the_question_never_lowers_coverage() -> None:
    frequencies = Frequencies(2000)
    question = asked("lighthouse", "boat")
    less = confidence.signs(question, lists({}), [candidate("a", "a boat")], frequencies)
    more = confidence.signs(question, lists({}), [candidate("a", "a boat at the lighthouse")], frequencies)
    assert more["covered"] > less["covered"]


def test_the_most_specific_calibration_that_can_be_seen_is_used() -> None:
    words = Calibration("words", 0.0, {"covered": 1.0}, {}, CURVE)
    meaning = Calibration("arctic", 0.0, {"close": 1.0}, {}, CURVE, model="arctic")
    recipe = ConfidenceRecipe(calibrations=(meaning, words))
    candidates, frequencies = [candidate("a", "boat")], Frequencies(10)

    def used(cosines: dict[str, float] | None, model: str | None) -> str | None:
        made = list(lists({"a": 1.0}, cosines).values())
        found = confidence.assess(asked("boat"), made, candidates, frequencies, recipe, model)
        return None if found is None else found.calibration

    assert used({"a": 0.7}, "arctic@1") == "arctic"
    assert used({"a": 0.7}, "other@1") == "words", "an embedder nobody calibrated is as none"
    assert used(None, "arctic@1") == used(None, None) == "words"
    unknown = ConfidenceRecipe(calibrations=(meaning,))
    assert confidence.assess(asked("boat"), [*lists({}).values()], candidates, frequencies, unknown) is None


def test_unknown_where_no_words_were_looked_up() -> None:
    recipe = ConfidenceRecipe(calibrations=(Calibration("words", 0.0, {"covered": 1.0}, {}, CURVE),))
    assert confidence.assess(asked("boat"), [], [], Frequencies(10), recipe) is None
    assert confidence.assess(asked("boat"), [*lists({}).values()], [], Frequencies(), recipe) is None


def test_another_order_of_the_answer_changes_no_confidence() -> None:
    recipe = ConfidenceRecipe(calibrations=(Calibration("words", 0.0, {"covered": 1.0}, {}, CURVE),))
    every = [candidate("a", "boat", 2.0), *(candidate(f"b{place}", "sand", 1.0) for place in range(6))]
    made = list(lists({"a": 1.0}).values())
    plain = confidence.assess(asked("boat"), made, every, Frequencies(10), recipe)
    turned = asked("boat", sort_by="recency")
    assert confidence.assess(turned, made, every[::-1], Frequencies(10), recipe) == plain


@given(st.text(alphabet=st.sampled_from("abcdeghilnorstuxyz"), min_size=1, max_size=9))
def test_a_root_begins_like_its_word(word: str) -> None:
    """`held_words` stems only words that begin like a word of the question."""
    assert stem(word)[0][:2] == word[:2]


def test_pieces_of_runs_without_spaces_are_held_by_the_runs() -> None:
    words = ["总统", "法国", "河流", "พระย"]
    assert confidence.held_words(words, "他是法国总统。 แม่น้ำเจ้าพระยา") == [1.0, 1.0, 0.0, 1.0]


@given(st.text().filter(lambda text: not has_unspaced(text.casefold())))
def test_plain_texts_are_split_like_all_others(text: str) -> None:
    assert confidence._split(text) == [one for one in re.split(r"[\W_]+", text.casefold()) if one]
