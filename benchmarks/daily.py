"""What a session does beside plain recalls, in a store of every size: none of it may cost more the more there is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from benchmarks import corpus
from benchmarks.meaning import Meaning
from benchmarks.reading import KnownQuestions
from benchmarks.timing import each
from recollect.engine import Engine
from recollect.ports import Store
from recollect.settings import Settings


def measure_daily(
    store: Store, settings: Settings, meaning: Meaning, asked: Sequence[str], size: int
) -> dict[str, dict[str, float]]:
    """Recalls under filters that name few memories or leave few out, and remembering, which looks for duplicates."""
    engine = Engine(store, settings, KnownQuestions(asked, meaning.questions), background=False)
    for question in asked:  # what follows is measured warm
        engine.recall(question)
    shown = [hit.id for hit in engine.recall(asked[0])]
    day = corpus.START + timedelta(seconds=20 * size) - timedelta(days=1)
    filters: dict[str, dict[str, Any]] = {
        "recall without what was shown": {"exclude": shown},
        "recall of the last day": {"after": day},
        "recall of all but the last day": {"before": day},
    }
    found = {
        name: each(lambda question, filter=filter: engine.recall(question, **filter), asked)[0].as_dict()
        for name, filter in filters.items()
    }
    for name, refused in (("recall without a type", "-type:episode"), ("recall without a word", "-unsaid")):
        found[name] = each(lambda question, refused=refused: engine.recall(f"{refused} {question}"), asked)[0].as_dict()
    found["remember"] = each(lambda question: engine.remember(f"{question}, noted again"), asked)[0].as_dict()
    return found
