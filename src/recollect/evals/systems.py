"""What is measured: profiles with single options replaced, and baselines to hold them against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect import profiles
from recollect.domain.errors import InvalidInput
from recollect.domain.profile import ListSpec, Profile

HERE = Path(__file__).parent
# Profiles of our own for comparison: one leg and nothing else.
LEG_BASELINES = {"dense": HERE / "dense.toml", "lexical": HERE / "lexical.toml"}
PLAIN_BM25 = "bm25"
BASELINES = (PLAIN_BM25, *LEG_BASELINES)


@dataclass(frozen=True, slots=True)
class System:
    """One ranking recipe. Without a profile it is the independent BM25."""

    name: str
    profile: str | None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def varied(self, options: Mapping[str, Any]) -> System:
        """The same with further options replaced."""
        merged = {**self.options, **options}
        base = self.name.partition("@")[0]
        return System(
            "@".join((base, *(f"{path}={shown(value)}" for path, value in merged.items()))), self.profile, merged
        )


def system(name: str, options: Mapping[str, Any], folder: Path | None) -> System:
    """A profile by name or path, or a baseline; a profile of the user's own goes before a baseline of its name."""
    if name in BASELINES and name not in profiles.names(folder):
        if name == PLAIN_BM25:
            if options:
                raise InvalidInput(
                    "the bm25 baseline takes no options", "leave them out, or measure lexical", "profile"
                )
            return System(name, None)
        found = System(name, str(LEG_BASELINES[name]))
    else:
        label = re.sub(r"[@\s]+", "-", Path(name).stem if name.endswith(".toml") else name)
        found = System(label, name)
    chosen = found.varied(options) if options else found
    # A wrong option is told before hours of work.
    profiles.load(str(chosen.profile), folder, chosen.options)
    return chosen


def voting_lists(chosen: System, folder: Path | None) -> tuple[Profile, dict[str, ListSpec]]:
    """The profile of a system, and its lists with a weight, by the path of their options: legs.dense."""
    if chosen.profile is None:
        raise InvalidInput("the bm25 baseline has no lists", "choose a profile", "profile")
    profile = profiles.load(chosen.profile, folder, chosen.options)
    groups = (("legs", profile.legs), ("signals", profile.signals))
    return profile, {f"{group}.{one.name}": one for group, specs in groups for one in specs if one.weight > 0}


def shown(value: Any) -> str:
    """An option's value as it is written on a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
