"""Prompts as people type and paste them into coding agents."""

from __future__ import annotations

import pytest

from recollect.domain.errors import InvalidInput
from recollect.engine import Engine
from tests.engine.conftest import Open

REGISTERS = "The register map is generated from registers.yaml; never edit the header."
WORKER = "The worker stopped taking jobs because the visibility timeout was too short."
STATEMENTS = "asyncpg raises InvalidSQLStatementNameError behind pgbouncer."
RETRIES = "Outgoing calls have the retryPolicy of core/http.py."
SERIES = "Numbers come from number_series, which is locked."


@pytest.fixture
def project(opened: Open) -> Engine:
    engine = opened(embedder="none")
    for text in (REGISTERS, WORKER, STATEMENTS, RETRIES, SERIES):
        engine.remember(text)
    for number in range(40):
        engine.remember(f"Invoice {number} was paid in time, see line {number} of the file.", dedupe=False)
    return engine


def told(engine: Engine, prompt: str) -> list[str]:
    found, _ = engine.recollect(prompt, "s1", profile="balanced", limit=3)
    return [engine.get(id).content for id in found.ids]


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("add {name: brine, type:int16} to registers.yaml", REGISTERS),
        ("the worker does NOT take any jobs", WORKER),
        ("worker stopped -timeout too short?", WORKER),
    ],
)
def test_a_prompt_is_no_query(project: Engine, prompt: str, wanted: str) -> None:
    assert told(project, prompt)[0] == wanted


def test_the_telling_words_of_a_long_prompt_are_found_wherever_they_stand(project: Engine) -> None:
    frames = "\n".join(f'  File "/app/lib/package{n}/module{n}.py", line {n}, in function{n}' for n in range(300))
    ending = "asyncpg.exceptions.InvalidSQLStatementNameError: no such statement"
    for prompt in (f"{frames}\n{ending}", f"{ending}\n{frames}", f"{frames[:5000]}\n{ending}\n{frames[:2000]}"):
        answer = project.recall(prompt, prose=True)
        assert answer[0].content == STATEMENTS
        assert any("rarest" in note for note in answer.trace.notes)


def test_a_long_prompt_without_a_known_word_or_without_spaces_keeps_its_first_words(project: Engine) -> None:
    unknown = project.recall(" ".join(f"zz{number}x" for number in range(100)), prose=True)
    unspaced = project.recall("".join(map(chr, range(0x4E00, 0x5000))) + " pgbouncer", prose=True)
    assert all(any("first 64 words" in note for note in answer.trace.notes) for answer in (unknown, unspaced))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("retryPolicy", RETRIES),
        ("RetryPolicy", RETRIES),
        ("retry_policy", RETRIES),
        ("RETRY_POLICY", RETRIES),
        ("src/core/http.py", RETRIES),
        ("asyncpg.exceptions.InvalidSQLStatementNameError", STATEMENTS),
        ("number_series", SERIES),
        ("numberSeries", SERIES),
        ("NumberSeries.lock()", SERIES),
        ("number series", SERIES),
    ],
)
def test_names_are_found_however_they_are_spelt(project: Engine, name: str, wanted: str) -> None:
    assert told(project, f"is {name} paid in time?")[0] == wanted


def test_who_only_nods_is_told_nothing(project: Engine, opened: Open) -> None:
    project.remember("Ok means that the pump runs, thanks to the new relay.")
    assert told(project, "ok thanks") == []
    assert project.recall("ok thanks"), "who asks gets an answer"
    few = opened(embedder="none")
    few.remember("Ok means that the pump runs, thanks to the new relay.")
    assert told(few, "ok thanks") == [] and told(few, "is the pump ok?")


def test_whether_something_is_a_prompt_is_no_matter_of_profiles(project: Engine) -> None:
    with pytest.raises(InvalidInput, match="prose"):
        project.recall("the worker", options={"query.prose": True})
