"""Live settings: the knobs that profiles offer, their ranges, and their current values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.domain.profile import LiveSetting, Profile
from recollect.profiles.loading import load, names


def values(
    stored: Mapping[str, Any], folder: Path | None, profile: str | None = None, in_use: str = ""
) -> dict[str, float]:
    """Every knob (of one profile, or of all) with its stored value, or the profile's own.

    Where several profiles have a knob, it is that of the profile `in_use`.
    """
    found: dict[str, float] = {}
    profiles = [load(profile, folder)] if profile else _loaded(folder)[0]
    for one in sorted(profiles, key=lambda one: one.name == in_use):
        for knob in one.settings:
            found[knob.name] = float(stored.get(knob.name, _value_at(one, knob.sets)))
    return found


def checked(changes: Mapping[str, Any], folder: Path | None) -> dict[str, float]:
    """The changes, if every one names a knob and lies in its range."""
    profiles, damaged = _loaded(folder)
    knobs: dict[str, LiveSetting] = {knob.name: knob for one in profiles for knob in one.settings}
    for name, value in changes.items():
        knob = knobs.get(name)
        if knob is None and damaged:
            raise damaged[0]  # which may well be the one that has it
        if knob is None:
            raise InvalidInput(f"there is no setting {name!r}", f"known: {', '.join(sorted(knobs))}", name)
        limits = f"between {knob.minimum:g} and {knob.maximum:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{name} must be a number, not {value!r}", f"choose a value {limits}", name)
        if not knob.minimum <= value <= knob.maximum:
            raise InvalidInput(f"{name} must lie {limits}, not {value!r}", f"choose a value {limits}", name)
    return {name: float(value) for name, value in changes.items()}


def overrides(stored: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """The options of a profile that its stored knobs replace."""
    return {knob.sets: stored[knob.name] for knob in profile.settings if knob.name in stored}


def _loaded(folder: Path | None) -> tuple[list[Profile], list[InvalidInput]]:
    """All profiles, and what is wrong with those that are damaged: one that nobody asked for stops no other's knobs."""
    found: list[Profile] = []
    damaged: list[InvalidInput] = []
    for name in names(folder):
        try:
            found.append(load(name, folder))
        except InvalidInput as error:
            damaged.append(error)
    return found, damaged


def _value_at(profile: Profile, path: str) -> float:
    group, name, field = path.split(".")
    specs = profile.legs if group == "legs" else profile.signals
    return float(getattr(next(one for one in specs if one.name == name), field))
