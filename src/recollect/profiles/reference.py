"""docs/profiles.md, made from the stage functions themselves: their options, what each allows, and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, getdoc, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from recollect.domain.profile import Range
from recollect.legs import LEGS
from recollect.legs.spelling import meant
from recollect.profiles import certainty
from recollect.profiles.checking import options_of, takes_function
from recollect.profiles.loading import ASKED, builtin_names, load
from recollect.stages.fusion import FUSIONS
from recollect.stages.ladder import RUNGS
from recollect.stages.parse import parse
from recollect.stages.priors import PRIORS
from recollect.stages.rendering import RENDERERS
from recollect.stages.reranking import RerankOptions
from recollect.stages.selection import SELECTORS
from recollect.stages.signals import SIGNALS

INTRODUCTION = """\
# Profiles

This page is generated from the code (`make docs`).

A profile is a ranking recipe: a TOML file that says which lists are made, how they are fused, what adjusts the scores
and what is returned. No code knows a profile by name. Ask for one with `recall(..., profile="two-stage")`,
`recollect recall --profile two-stage`, or make it the default with `profile = "two-stage"` in `config.toml`.

## Built in

{builtin}

`recollect profiles show NAME` prints the file, `recollect profiles diff A B` compares two, and
`recollect profiles check NAME` tells whether every list can make a difference at its weight.

## Your own

Put `my-team.toml` into the `profiles` folder of the home folder (`recollect doctor` prints where that is), or pass the
path of a file. Start from another profile and change what you need:

```toml
extends = "balanced"
description = "Our gotchas first, and nothing older than it must be."
limit = 8

[legs.lexical]
weight = 1.5

[[priors]]
kind = "types"
weights = {{ gotcha = 1.4, episode = 0.8 }}

[[priors]]
kind = "decay"
half_life_days = 90
```

Tables are merged with those of the parent, lists (`[[priors]]`, `[[select]]`) replace its lists. A wrong name or value
is refused with the file, the line and what is allowed. Single options can be changed for one request:
`recall(..., profile="token-budget", options={{"fusion.k": 10, "select.floor.minimum": 0.02}})`, on the command line
`--profile token-budget --set fusion.k=10`.

## At the top of the file

- `description`: one line, shown by `recollect profiles list`
- `extends`: the profile to start from
- `limit`: how many memories are returned unless the request says otherwise (1 to 200)
- `scope`: `"exact"`, or `"project"`: a session widens to all sessions of its project
- `without_dense`: the profile that ranks instead while the store holds no vectors
"""

SETTINGS = """\
## `[settings.NAME]`: knobs for people

A live setting gives an option a public name and a range. It is changed while the system runs (`recollect settings set`)
and kept in the store.

- `sets`: the option, for example `"legs.dense.weight"`
- `minimum`, `maximum`: the range
"""


CALIBRATIONS = """\
Every answer carries a confidence (`trace.confidence`): the chance that something relevant is here, were half of all
questions answerable. A rate of 0.97 returns nothing where the confidence is so low that only 3 % of the answerable
questions of the calibration lie below; 1 never returns nothing. `keep` is for recalls that somebody asked for,
`keep_unasked` for what hooks put before a model by themselves, where there are at least `unasked_from` memories to
choose from: with fewer the confidence is unknown, as no other memory shows how far is far. Other rates for one request:
`options={"confidence.keep": 0.9}`, or `--set confidence.keep=0.9`.
A calibration is used where its `model` is the beginning of the embedder's id and all its signs can be seen; of several
the most specific, and without a `model` it rests on words alone. Where none fits, the confidence is unknown and nothing
is withheld. `recollect eval abstain --data SET` fits and prints calibrations for a profile of your own; what the signs
mean stands in `docs/decisions/0012-abstention.md`.
"""


def page() -> str:
    """The whole page."""
    builtin = "\n".join(f"- `{name}`: {load(name).description}" for name in builtin_names())
    parts = [
        INTRODUCTION.format(builtin=builtin),
        _single("`[query]`: how the text is read", parse, ASKED),
        _single("`[spelling]`: words that nobody wrote, read as the ones that were meant", meant),
        _family("`[legs.NAME]`: lists that find", LEGS, _LIST_NOTE, ASKED_BY_LEGS),
        _family("`[signals.NAME]`: lists that only order the pool", SIGNALS, _LIST_NOTE),
        "## `[ladder]`: retries when words find nothing\n\n`rungs` is a list of these, tried in order until one finds"
        f" something:\n\n{_rungs()}\n",
        _family("`[fusion]`: several lists into one", FUSIONS, "`kind` chooses one of:"),
        _family("`[[priors]]`: adjustments after fusion, in order", PRIORS, "`kind` chooses one of:"),
        _single("`[rerank]`: a model that judges the head", RerankOptions),
        _family("`[[select]]`: what is returned, in order", SELECTORS, "`kind` chooses one of:"),
        _single("`[confidence]`: when nothing is better than something", certainty.rates),
        CALIBRATIONS,
        _single("`[[confidence.calibrations]]`: what a rate means", certainty.calibration),
        _family("`[render]`: the text for a prompt", RENDERERS, "`kind` chooses one of:"),
        SETTINGS,
    ]
    return "\n".join(parts)


_LIST_NOTE = (
    "NAME is the name of the list; `kind` says which of these makes it and defaults to NAME. Every list also takes"
    " `weight` (0 to 100, default 1; 0 means it is not made at all) and `votes` (default true; false: it widens the"
    " pool and has no say)."
)
ASKED_BY_LEGS = ("rungs",)


def _family(title: str, table: Mapping[str, Callable[..., Any]], note: str, hidden: tuple[str, ...] = ()) -> str:
    lines = [f"## {title}", "", note, ""]
    for name, function in table.items():
        lines += [f"**`{name}`**: {_summary(function)}", "", *_options(function, hidden), ""]
    return "\n".join(lines)


def _single(title: str, accepts: Callable[..., Any] | type, hidden: tuple[str, ...] = ()) -> str:
    return "\n".join([f"## {title}", "", *_options(accepts, hidden), ""])


def _rungs() -> str:
    return "\n".join(f"- `{name}`: {_summary(rung)}" for name, rung in RUNGS.items())


def _summary(function: Callable[..., Any]) -> str:
    return " ".join((getdoc(function) or "").split("\n\n")[0].split())


def _options(accepts: Callable[..., Any] | type, hidden: tuple[str, ...]) -> list[str]:
    defaults = _defaults(accepts)
    return [
        f"- `{name}`: {_allowed(hint)}; default {_shown(defaults.get(name))}"
        for name, hint in options_of(accepts).items()
        if name not in hidden
    ]


def _defaults(accepts: Callable[..., Any] | type) -> dict[str, Any]:
    if is_dataclass(accepts):
        return {one.name: one.default for one in fields(accepts) if one.default is not MISSING}
    parameters = signature(cast(Callable[..., Any], accepts)).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not Parameter.empty}


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{list(cast(tuple[Any, ...], value))}`" if isinstance(value, tuple) else f"`{value}`"


def _allowed(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        limits = next((note for note in notes if isinstance(note, Range)), None)
        return _allowed(inner) + (f", {limits.minimum:g} to {limits.maximum:g}" if limits else "")
    if origin in (Union, UnionType):
        allowed = _allowed(next(one for one in get_args(hint) if one is not NoneType))
        return f"{allowed}, or a function in `options` of the library's `recall`" if takes_function(hint) else allowed
    if origin is Literal:
        return " or ".join(f'`"{one}"`' for one in get_args(hint))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    if isinstance(origin, type):
        return "a list"
    return {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}.get(hint, str(hint))
