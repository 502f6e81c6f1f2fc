"""Building the demo's store and asking its questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.doors.demo.data import NOW, changes
from recollect.doors.demo.scenes import NEXT, SCENES, Contender, Scene
from recollect.doors.wire import recall_to_dict, time_to_text

if TYPE_CHECKING:
    from recollect.domain.recall import Recall
    from recollect.engine import Engine


@dataclass(frozen=True, slots=True)
class Played:
    """A scene with what each contender answered."""

    scene: Scene
    answers: tuple[tuple[Contender, Recall], ...]


def build(engine: Engine, progress: Callable[[int, int], None]) -> None:
    """Fill an empty store in one transaction, then embed it if a model is there."""
    engine.store.records.write(changes())
    engine.upkeep(progress=progress, now=NOW)


def play(engine: Engine) -> list[Played]:
    """Ask every question of every contender, at the demo's own time."""
    return [
        Played(scene, tuple((one, _ask(engine, scene, one)) for one in scene.contenders))
        for scene in SCENES
        if engine.embedder is not None or not scene.needs_model
    ]


def _ask(engine: Engine, scene: Scene, contender: Contender) -> Recall:
    return engine.recall(scene.query, profile=contender.profile, now=NOW, **contender.asked)


def document(engine: Engine, played: list[Played], kept: Path | None) -> dict[str, Any]:
    """The whole demo as one JSON value."""
    return {
        "now": time_to_text(NOW),
        "memories": engine.stats().memories,
        "embedder": None if engine.embedder is None else engine.embedder.id,
        "store": None if kept is None else str(kept),
        "scenes": [
            {
                "name": one.scene.name,
                "query": one.scene.query,
                "point": one.scene.point,
                "wanted": one.scene.wanted,
                "answers": [
                    {"contender": contender.name, **recall_to_dict(answer, rendered=one.scene.render)}
                    for contender, answer in one.answers
                ],
            }
            for one in played
        ],
        "next": [command for command, _ in NEXT],
    }
