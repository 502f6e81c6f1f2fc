"""The demo's questions: what each one shows, and which profiles answer it side by side. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Contender:
    """A profile that answers, with what is changed for this scene."""

    profile: str
    label: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return self.label or self.profile


@dataclass(frozen=True, slots=True)
class Scene:
    """One question. `wanted` is the memory it is about; `point` says what to look at."""

    name: str
    query: str
    point: str
    wanted: str
    contenders: tuple[Contender, ...]
    shown: int = 2
    render: bool = False
    needs_model: bool = False


SCENES = (
    Scene(
        name="an exact term",
        query="55 seconds",
        point="To a model one duration is like another. Words know the difference as soon as they have a say.",
        wanted="demo-59",
        contenders=(
            Contender("live-weights", "live-weights, by meaning alone"),
            Contender("live-weights", "live-weights, keywordWeight 2", {"options": {"legs.lexical.weight": 2.0}}),
            Contender("balanced"),
        ),
    ),
    Scene(
        name="a paraphrase",
        query="somebody paid twice",
        point="The lesson says “charged 14 customers twice”. By words a rumour wins; meaning knows better.",
        wanted="demo-25",
        contenders=(Contender("token-budget-lexical"), Contender("live-weights"), Contender("balanced")),
        needs_model=True,
    ),
    Scene(
        name="typing mistakes",
        query="conection pol exausted",
        point="No word matches. Without a ladder that is the end; with one, words that look alike are tried.",
        wanted="demo-20",
        contenders=(
            Contender("importance-prior", "importance-prior, by words alone", {"mode": "bm25"}),
            Contender("retry-ladder", "retry-ladder, by words alone", {"mode": "bm25"}),
            Contender("balanced"),
        ),
    ),
    Scene(
        name="old but still true",
        query="why do we keep sessions in redis?",
        point="The decision is six months old, talk of Redis is new. Decay buries it; two-stage likes the new.",
        wanted="demo-02",
        contenders=(Contender("token-budget"), Contender("two-stage"), Contender("balanced")),
    ),
    Scene(
        name="superseded",
        query="which broker do the celery workers use for background jobs?",
        point="The words fit a decision of November that was replaced twice. Its rank goes to what holds today.",
        wanted="demo-38",
        contenders=(Contender("retry-ladder"), Contender("balanced")),
    ),
    Scene(
        name="a preference",
        query="what do I prefer in pull requests?",
        point="Intent sees that a preference is asked for and lifts it; importance lifts a decision instead.",
        wanted="demo-04",
        contenders=(Contender("importance-prior"), Contender("retry-ladder")),
    ),
    Scene(
        name="a word that fits many",
        query="bookings",
        point="The text alone decides little. Two-stage asks what is fresh and used; importance decides too.",
        wanted="",
        contenders=(Contender("two-stage"), Contender("importance-prior"), Contender("balanced")),
    ),
    Scene(
        name="a budget",
        query="a deploy failed, how do I roll back?",
        point="The runbook is longer than 120 tokens: it is cut to a passage. What does not fit says so.",
        wanted="demo-51",
        contenders=(Contender("balanced", "balanced, 120 tokens", {"budget_tokens": 120, "limit": 4}),),
        shown=4,
        render=True,
    ),
)

NEXT = (
    ("recollect remember 'We deploy on Tuesdays' --type decision", "your own first memory"),
    ("recollect recall 'when do we deploy?' --explain", "every rank with its reason"),
    ("recollect profiles diff balanced retry-ladder", "what makes two profiles differ"),
)
