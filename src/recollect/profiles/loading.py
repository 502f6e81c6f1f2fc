"""From a TOML file to a Profile. A wrong file gets an error with its line and what is allowed there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

from recollect.domain.errors import InvalidInput, InvalidProfile
from recollect.domain.profile import ListSpec, LiveSetting, Part, Profile
from recollect.domain.question import MAX_LIMIT
from recollect.legs import LEGS
from recollect.legs.spelling import meant
from recollect.profiles import certainty
from recollect.profiles.checking import Wrong, checked, converted
from recollect.stages.fusion import FUSIONS
from recollect.stages.ladder import RUNGS
from recollect.stages.parse import parse
from recollect.stages.priors import PRIORS
from recollect.stages.rendering import RENDERERS
from recollect.stages.reranking import RerankOptions
from recollect.stages.selection import SELECTORS
from recollect.stages.signals import SIGNALS

PACKAGE = "recollect.profiles"

Table = dict[str, Any]
Accepts = Mapping[str, Callable[..., Any]]

TOP_LEVEL = (
    "description", "extends", "limit", "scope", "without_dense",
    "query", "spelling", "legs", "signals", "ladder", "fusion", "priors", "rerank", "select", "confidence", "render",
    "settings",
)  # fmt: skip

# Parameters that a stage gets from the request or the pipeline, not from a profile.
ASKED = ("now", "filter", "limit", "mode", "sort_by", "budget_tokens", "aliases", "unasked", "prose", "rungs")
# Parts of which a profile has one, of one of several kinds.
CHOSEN: Mapping[str, Accepts] = {"fusion": FUSIONS, "render": RENDERERS}
MAX_PARENTS = 5
MAX_WEIGHT = 100.0


def builtin_names() -> list[str]:
    """The profiles that come with recollect."""
    return sorted(_builtin())


@cache
def _builtin() -> Mapping[str, str]:
    """The texts of the profiles in the package, which do not change while it runs."""
    files = [one for one in resources.files(PACKAGE).iterdir() if one.name.endswith(".toml")]
    return {one.name.removesuffix(".toml"): one.read_text(encoding="utf-8") for one in files}


def names(folder: Path | None = None) -> list[str]:
    """All profiles that can be asked for by name: the built-in ones and the user's own."""
    own = {path.stem for path in folder.glob("*.toml")} if folder is not None and folder.is_dir() else set[str]()
    return sorted({*builtin_names(), *own})


def read(profile: str | Path, folder: Path | None = None) -> tuple[str, str]:
    """The text of a profile and where it came from: a path ending in .toml, the user's own, or a built-in name."""
    if not isinstance(profile, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("profile must be a name or a path", f"known: {', '.join(names(folder))}", "profile")
    profile, path = str(profile), Path(profile)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return _read_file(path), str(path)
    if folder is not None and _is_file(own := folder / f"{profile}.toml"):
        return _read_file(own), str(own)
    if profile in _builtin():
        return _builtin()[profile], f"{profile}.toml"
    raise InvalidInput(
        f"there is no profile {profile[:80]!r}",
        f"known: {', '.join(names(folder))}",
        "profile",
    )


def load(profile: str | Path, folder: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Profile:
    """The profile, with single options replaced: {"fusion.k": 10, "legs.dense.weight": 2}."""
    text, source = read(profile, folder)
    profile = str(profile)
    # What a profile builds on may be a file that changes.
    base = (_built if "extends" in _parsed_once(text, source) else _cached)(profile, text, source, folder)
    if not overrides:
        return base
    table = _with_parents(_parsed(text, source), folder, 0)
    try:
        # Kinds first: what is asked for beside another kind is meant for that one.
        for path, value in sorted(overrides.items(), key=lambda one: not one[0].endswith(".kind")):
            _set(table, path, value)
        return build(base.name, table, source)
    except Wrong as wrong:
        # The profile itself was fine, so what is wrong came with the request.
        raise InvalidInput(
            f"{wrong.path}: {wrong.message}", f"see `recollect profiles show {base.name}`", wrong.path
        ) from None


def require(chosen: Mapping[str, str], folder: Path | None = None) -> None:
    """Refuse a setting that names no profile, or a wrong file. The built-in ones are not read: most who open a store
    ask nothing."""
    for setting, profile in chosen.items():
        if profile in _builtin():
            continue
        try:
            load(profile, folder)
        except InvalidInput as error:
            raise type(error)(f"{setting}: {error.message}", error.hint, setting) from error


def _built(profile: str, text: str, source: str, folder: Path | None) -> Profile:
    name = Path(profile).stem if profile.endswith(".toml") else profile
    try:
        return build(name, _with_parents(_parsed(text, source), folder, 0), source)
    except Wrong as wrong:
        place = f"{source}:{line_of(text, wrong.path)}"
        raise InvalidProfile(f"{place}: {wrong.path}: {wrong.message}", "see docs/profiles.md", wrong.path) from None


_cached = lru_cache(maxsize=64)(_built)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than any file may have
        return False


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # not there, not text, or no path at all
        raise InvalidInput(f"the profile {path} cannot be read: {error}", "check the path", "profile") from error


def _parsed(text: str, source: str) -> Table:
    """The profile's table, for the caller to change."""
    return deepcopy(_parsed_once(text, source))


@lru_cache(maxsize=64)
def _parsed_once(text: str, source: str) -> Table:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProfile(f"{source}: not valid TOML: {error}", "correct the line named") from error


def _with_parents(table: Table, folder: Path | None, depth: int) -> Table:
    """`extends` names a profile to start from: tables are merged, lists and values replaced."""
    parent = table.get("extends")
    if parent is None:
        return table
    if depth >= MAX_PARENTS:
        raise Wrong("extends", f"more than {MAX_PARENTS} profiles build on one another, or one on itself")
    text, source = read(str(parent), folder)
    return _merged(_with_parents(_parsed(text, source), folder, depth + 1), table)


def _merged(under: Table, over: Table) -> Table:
    result = deepcopy(under)
    for name, value in over.items():
        inner = result.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            beneath = _fitting(name, cast(Table, inner), cast(Table, value).get("kind"))
            result[name] = _merged(beneath, cast(Table, value))
        else:
            result[name] = deepcopy(cast(Any, value))
    result.pop("extends", None)
    return result


def _fitting(name: str, table: Table, kind: Any) -> Table:
    """What another kind of fusion or rendering takes over from the one that was chosen before: what it knows itself."""
    kinds = CHOSEN.get(name, {})
    if not isinstance(kind, str) or kind not in kinds or kind == table.get("kind"):
        return table
    known = signature(kinds[kind]).parameters
    return {option: value for option, value in table.items() if option in known}


def _set(table: Table, path: str, value: Any) -> None:
    """Replace one option by its dotted name; lists of parts are addressed by kind: select.floor.minimum."""
    current: Any = table
    *parents, last = path.split(".")
    for step in parents:
        if isinstance(current, list):
            parts = cast(list[Table], current)
            current = next((one for one in parts if one.get("kind") == step), None)
        elif isinstance(current, dict):
            current = cast(Table, current).setdefault(step, {})
        if not isinstance(current, dict | list):
            raise Wrong(path, "this profile has no such part")
    if not isinstance(current, dict):
        raise Wrong(path, "names a part, not an option of it")
    if last == "kind" and len(parents) == 1:
        current = table[parents[0]] = _fitting(parents[0], cast(Table, current), value)
    current[last] = value


def build(name: str, table: Table, source: str = "") -> Profile:
    """Check every option against the function it is meant for."""
    for key in table:
        if key not in TOP_LEVEL:
            raise Wrong(key, f"unknown; allowed: {', '.join(TOP_LEVEL)}")
    without = table.get("without_dense")
    return Profile(
        name=name,
        description=converted(table.get("description", ""), str, "description"),
        limit=_whole(table.get("limit", 5), "limit", 1, MAX_LIMIT),
        scope=converted(table.get("scope", "exact"), Literal["exact", "project"], "scope"),
        without_dense=None if without is None else converted(without, str, "without_dense"),
        query=Part("query", checked(_table(table, "query"), parse, "query", ASKED)),
        spelling=_optional(table, "spelling", meant),
        legs=_lists(table, "legs", LEGS),
        signals=_lists(table, "signals", SIGNALS),
        ladder=_rungs(table),
        fusion=_part(_table(table, "fusion"), FUSIONS, "fusion", "rrf"),
        priors=_parts(table, "priors", PRIORS),
        rerank=_optional(table, "rerank", RerankOptions),
        select=_parts(table, "select", SELECTORS),
        confidence=certainty.recipe(_table(table, "confidence")) if "confidence" in table else None,
        render=_part(_table(table, "render"), RENDERERS, "render", "section"),
        settings=_settings(table),
        source=source,
    )


def _table(table: Table, key: str) -> Table:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise Wrong(key, "must be a table")
    return cast(Table, value)


def _whole(value: Any, path: str, minimum: int, maximum: int) -> int:
    number: int = converted(value, int, path)
    if not minimum <= number <= maximum:
        raise Wrong(path, f"must lie between {minimum} and {maximum}, not {number}")
    return number


def _lists(table: Table, key: str, kinds: Accepts) -> tuple[ListSpec, ...]:
    specs: list[ListSpec] = []
    for name, given in _table(table, key).items():
        path = f"{key}.{name}"
        if not isinstance(given, dict):
            raise Wrong(path, "must be a table")
        options = dict(cast(Table, given))
        kind = _kind(options.pop("kind", name), kinds, f"{path}.kind" if "kind" in given else path)
        weight: float = converted(options.pop("weight", 1.0), float, f"{path}.weight")
        if not 0 <= weight <= MAX_WEIGHT:
            raise Wrong(f"{path}.weight", f"must lie between 0 and {MAX_WEIGHT:g}, not {weight!r}")
        votes: bool = converted(options.pop("votes", True), bool, f"{path}.votes")
        accepted = checked(options, kinds[kind], path, tuple(one for one in ASKED if one != "limit"))
        specs.append(ListSpec(name, kind, weight, votes, accepted))
    return tuple(specs)


def _parts(table: Table, key: str, kinds: Accepts) -> tuple[Part, ...]:
    given = table.get(key, [])
    if not isinstance(given, list):
        raise Wrong(key, f"must be a list of tables: [[{key}]]")
    return tuple(_part(one, kinds, f"{key}.{place}", None) for place, one in enumerate(cast(list[Table], given)))


def _part(given: Table, kinds: Accepts, path: str, default: str | None) -> Part:
    if not isinstance(given, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Wrong(path, "must be a table")
    options = dict(given)
    kind = _kind(options.pop("kind", default), kinds, f"{path}.kind")
    return Part(kind, checked(options, kinds[kind], path))


def _kind(given: Any, kinds: Accepts, path: str) -> str:
    if not isinstance(given, str) or given not in kinds:
        raise Wrong(path, f"unknown kind {given!r}; allowed: {', '.join(sorted(kinds))}")
    return given


def _optional(table: Table, key: str, function: Callable[..., Any]) -> Part | None:
    """A step that is only taken where the profile has a table for it."""
    return Part(key, checked(_table(table, key), function, key)) if key in table else None


def _rungs(table: Table) -> tuple[str, ...]:
    ladder = _table(table, "ladder")
    for key in ladder:
        if key != "rungs":
            raise Wrong(f"ladder.{key}", "unknown option; allowed: rungs")
    rungs: tuple[str, ...] = converted(ladder.get("rungs", ["initial"]), tuple[str, ...], "ladder.rungs")
    for rung in rungs:
        if rung not in RUNGS:
            raise Wrong("ladder.rungs", f"unknown rung {rung!r}; allowed: {', '.join(RUNGS)}")
    return rungs


def _settings(table: Table) -> tuple[LiveSetting, ...]:
    found: list[LiveSetting] = []
    for name, given in _table(table, "settings").items():
        path = f"settings.{name}"
        knob = cast(Table, given) if isinstance(given, dict) else {}
        if set(knob) != {"sets", "minimum", "maximum"}:
            raise Wrong(path, 'must be a table with sets = "legs.dense.weight", minimum and maximum')
        sets: str = converted(knob["sets"], str, f"{path}.sets")
        low: float = converted(knob["minimum"], float, f"{path}.minimum")
        high: float = converted(knob["maximum"], float, f"{path}.maximum")
        found.append(LiveSetting(name, sets, low, high))
    return tuple(found)


def line_of(text: str, path: str) -> int:
    """The line of a TOML text where a dotted path stands (priors.1.kind: the second [[priors]]), else 1."""
    steps = path.split(".")
    here: list[str] = []
    counts: dict[str, int] = {}
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line)
        if header:
            here = [one.strip().strip("\"'") for one in header[2].split(".")]
            if header[1] == "[[":
                place = counts.get(header[2], -1) + 1
                counts[header[2]] = place
                here.append(str(place))
            where = here
        else:
            key = re.match(r"\s*([A-Za-z0-9_\"'.-]+)\s*=", line)
            if not key:
                continue
            where = [*here, *(one.strip("\"'") for one in key[1].split("."))]
        common = _common(where, steps)
        if common == len(where) and common > depth:
            best, depth = number, common
    return best


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def withholding(profile: Profile) -> Profile:
    """The profile with what is sensitive left out before anything is counted, but behind the redirects: what a
    sensitive memory supersedes must not be shown in its place."""
    place = max((at for at, part in enumerate(profile.select, start=1) if part.kind == "redirect"), default=0)
    return replace(profile, select=(*profile.select[:place], Part("withhold"), *profile.select[place:]))
