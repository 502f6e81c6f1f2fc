"""What agent output asks to be remembered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.stages.markers import MAX_MARKERS, Marker, markers
from recollect.stages.rendering import FENCE_CLOSE, FENCE_OPEN, HEADING

pytestmark = pytest.mark.covers("budget.marker")

WAL = "SQLite stalls: close readers"

EXPLICIT = {
    "[MEMORY] type=gotcha tags=a,b: text": Marker("text", "gotcha", ("a", "b"), 0.8),
    f"[MEMORY] type=gotcha tags=a,b: {WAL}": Marker(WAL, "gotcha", ("a", "b")),
    f"[MEMORY] tags=a, b type=Gotcha: {WAL}": Marker(WAL, "gotcha", ("a", "b")),
    f"[MEMORY] type=gotcha: {WAL}": Marker(WAL, "gotcha"),
    f"[MEMORY]: {WAL}": Marker(WAL),
    f"[MEMORY] {WAL}": Marker(WAL),
    f"[MEMORY] confidence=0.95 type=decision: {WAL}": Marker(WAL, "decision", (), 0.95),
    f"[MEMORY] confidence=7 type=decision: {WAL}": Marker(WAL, "decision"),
    f"[MEMORY] type=gotcha tags=a importance=high: {WAL}": Marker(WAL, "gotcha", ("a",), importance=0.9),
    f"[MEMORY] importance=0.3 tags=a, b: {WAL}": Marker(WAL, tags=("a", "b"), importance=0.3),
    f"[MEMORY] type=gotcha importance=urgent: {WAL}": Marker(WAL, "gotcha"),
    f"[MEMORY] type=gotcha importance=7: {WAL}": Marker(WAL, "gotcha"),
    f"  - [MEMORY] type=gotcha tags=a: {WAL}": Marker(WAL, "gotcha", ("a",)),
    f"* **[MEMORY]** type=gotcha tags=a: {WAL}": Marker(WAL, "gotcha", ("a",)),
    f"**[MEMORY] type=gotcha tags=a: {WAL}**": Marker(WAL, "gotcha", ("a",)),
    f"`[MEMORY] type=gotcha tags=a: {WAL}`": Marker(WAL, "gotcha", ("a",)),
    f"3. [MEMORY] type=gotcha tags=a,a,#b: {WAL}": Marker(WAL, "gotcha", ("a", "b")),
    "[MEMORY] type=gotcha tags=: use `x` and **y**": Marker("use `x` and **y**", "gotcha"),
    "[MEMORY] type=gotcha tags=: 2 * 3 is six": Marker("2 * 3 is six", "gotcha"),
}

IMPLICIT = {
    "Decision: use WAL mode everywhere": Marker("use WAL mode everywhere", "decision", (), 0.6),
    "Decision: use SQLite": Marker("use SQLite", "decision", (), 0.6),
    "Gotcha: WAL resets.": Marker("WAL resets.", "gotcha", (), 0.6),
    "**Decision:** use WAL mode everywhere": Marker("use WAL mode everywhere", "decision", (), 0.6),
    "- **Gotcha**: never fork after threads": Marker("never fork after threads", "gotcha", (), 0.6),
    "I learned that FTS5 folds case.": Marker("I learned that FTS5 folds case.", "lesson", (), 0.6),
    "Done. I’ve learned that FTS5 folds.": Marker("I’ve learned that FTS5 folds.", "lesson", (), 0.6),
    "It works. The fix was to close the cursor. Bye.": Marker("The fix was to close the cursor.", "lesson", (), 0.6),
}

NOTHING = [
    "",
    "Nothing to see here.",
    "we talked about [MEMORY] type=gotcha: markers in the middle of a line",
    "[memory] usage: 80 percent of the heap",
    "[MEMORY]",
    "[MEMORY] type=gotcha tags=a:",
    "[MEMORY] type=<type> tags=<a,b>: <text>",
    "[MEMORY] type=gotcha tags=a,b: ...",
    "Decision: should we use WAL mode?",
    "Decision: yes",
    "Decision: postponed",
    "Decision: go ahead",
    "I learned.",
    "Decisions: use WAL mode everywhere",
    "The decision: use WAL mode everywhere",
    "As I learned that FTS5 folds case we went on.",
    f"```\n[MEMORY] type=gotcha: {WAL}\n```",
    f"~~~text\n```\n[MEMORY] {WAL}\n```\nDecision: use WAL mode everywhere\n~~~",
    f"````\n```\n[MEMORY] {WAL}\n````",
    f"```\n[MEMORY] {WAL}",
    f"{HEADING}\n- [gotcha] I learned that FTS5 folds (confidence: 0.8, age: 3d)\n\n[MEMORY] {WAL}",
    f"{FENCE_OPEN}\nNote\n{HEADING}\n[MEMORY] {WAL}\n# Heading\nDecision: use WAL mode everywhere\n{FENCE_CLOSE}",
]


@pytest.mark.parametrize("line", EXPLICIT)
def test_explicit_markers(line: str) -> None:
    assert markers(f"Hello.\n{line}\nBye.") == (EXPLICIT[line],)


@pytest.mark.parametrize("line", IMPLICIT)
def test_implicit_phrasings(line: str) -> None:
    assert markers(f"Hello.\n{line}\nBye.") == (IMPLICIT[line],)


@pytest.mark.parametrize("text", NOTHING)
def test_what_asks_for_nothing(text: str) -> None:
    assert markers(text) == ()


@pytest.mark.parametrize(
    "block",
    [
        f"```\n[MEMORY] {WAL}\n```",
        f"{HEADING}\n- [x] y\n## Next",
        f"{FENCE_OPEN}\n{HEADING}\n- [x] y\n{FENCE_CLOSE}",
        f"{FENCE_OPEN} {FENCE_CLOSE}",
    ],
)
def test_after_a_block_the_text_is_read_again(block: str) -> None:
    assert markers(f"{block}\n[MEMORY] type=fact: the port is 4777") == (Marker("the port is 4777"),)


def test_order_and_doubles() -> None:
    text = f"Decision: use WAL mode\n[MEMORY] {WAL}\n[MEMORY] type=decision: Use  WAL mode\n[MEMORY] type=x: {WAL}"
    assert markers(text) == (Marker("Use  WAL mode", "decision"), Marker(WAL))


def test_markers_stay_within_the_limits_of_a_memory() -> None:
    long = "t" * 200
    (found,) = markers(
        f"[MEMORY] type={long} tags={long}," + ",".join(f"t{n}" for n in range(90)) + ": " + "é" * 600_000
    )
    assert found.type == "fact"
    assert found.tags == tuple(f"t{n}" for n in range(64))
    assert len(found.content.encode()) <= 1024 * 1024


def test_output_is_bounded_and_clean() -> None:
    found = markers("\n".join(f"[MEMORY] fact number {number}\x00\ud800" for number in range(1000)))
    assert len(found) == MAX_MARKERS
    assert found[7] == Marker("fact number 7")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "[MEMORY]",
                " type=",
                "tags=",
                "a,",
                ":",
                "\n",
                "```",
                "Decision:",
                HEADING,
                "x y z",
                "**",
                "I learned ",
                "<",
                " ",
            ]
        )
    ).map("".join)
    | st.text()
)
def test_anything_can_be_read(text: str) -> None:
    for marker in markers(text):
        assert marker.content.strip() == marker.content != ""
        assert marker.type and all(marker.tags)
        assert 0.0 <= marker.confidence <= 1.0


@pytest.mark.parametrize(
    "text",
    [
        "[MEMORY] tags=" + "a, " * 3_000_000,
        "[MEMORY] tags=" + "a," * 300_000,
        "- " * 300_000,
        "[MEMORY] tags=a, " + "x" * 500_000 + "=",
        "." * 500_000,
    ],
)
def test_long_lines_are_harmless(text: str) -> None:
    assert len(markers(text)) <= 1
