"""docs/library.md: what is written by hand above the mark, and below it the library's names as the code has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, getdoc, getsource, isclass, isfunction, signature
from pathlib import Path
from textwrap import dedent, fill
from typing import Any, Literal, get_args, get_origin

import recollect
from recollect import engine, ports, upkeep
from recollect.domain import confidence, question, ranking, recall
from recollect.domain.memory import Action
from recollect.recollection import Recollection
from recollect.stages.fusion import Equal
from recollect.upkeep import merging

MARK = "<!-- From here on the page is generated from the code: make docs -->"
HERE = Path(__file__).parent

ERRORS = [
    value for name in recollect.__all__ if isclass(value := getattr(recollect, name)) and issubclass(value, Exception)
]
FAMILIES: dict[str, list[type]] = {
    "What is remembered": [recollect.Memory, recollect.Scope, recollect.Draft, recollect.Receipt, recollect.Link],
    "What is answered": [
        *(recollect.Recall, recollect.RecallHit, recollect.Contribution, recall.Adjustment, ranking.Passage),
        *(recall.Dropped, recall.Trace, recall.Attempt, recall.LegStep, recall.RerankStep),
        *(confidence.Confidence, confidence.Sign, recollect.Expanded, Recollection),
    ],
    "What care reports": [
        *(upkeep.UpkeepReport, upkeep.EmbedReport, upkeep.Consolidation, merging.Merge, upkeep.ExtractReport),
        *(ports.EmbeddingProgress, ports.StoreStats, ports.Finding),
    ],
    "What your own model must offer": [ports.Embedder, ports.Dictionary, ports.Reranker],
}
ALIASES = {
    **{"Time": engine.Time, "Choice": engine.Choice, "Mode": question.Mode, "SortBy": question.SortBy},
    **{"Action": Action, "Equal": Equal, "Progress": upkeep.Progress},
}
NARROW = "\0"
"""Stands for a space at which no line may be broken."""

_WORDS = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def page() -> str:
    """The whole page."""
    text = (HERE / "library.md").read_text(encoding="utf-8")
    written = text[: text.index(MARK) + len(MARK)]
    parts = [
        "## `recollect.open` and the Engine",
        _function("recollect.open", recollect.open),
        *(_function(name, method) for name, method in _methods(recollect.Engine)),
        "## Fusion alone",
        _function("recollect.fuse", recollect.fuse),
        _class(recollect.Fused),
        *(part for title, types in FAMILIES.items() for part in (f"## {title}", *map(_class, types))),
        "## All errors",
        "\n".join(_error(one) for one in ERRORS),
    ]
    return "\n\n".join([written, *parts]) + "\n"


def _methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods in the order of the source."""
    for name, value in vars(owner).items():
        if isfunction(value) and not name.startswith("_"):
            yield name, value


def _function(name: str, function: Callable[..., Any]) -> str:
    prose, words = _said(function)
    taken = signature(function).parameters
    unknown = [one for names in words for one in names.split(", ") if one not in taken]
    assert prose and not unknown, f"{name}: no docstring, or one about {unknown}"
    lines = [f"### `{name}`", "", _call(name, function), "", prose, ""]
    lines += [f"- `{names}`: {said}" for names, said in words.items()]
    return "\n".join(lines).rstrip()


def _said(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The docstring: its prose, and what it says of single arguments (`name: words`, further lines indented)."""
    prose: list[str] = []
    words: dict[str, str] = {}
    names = ""
    for line in (getdoc(function) or "").splitlines():
        if found := _WORDS.match(line):
            names, words[found[1]] = found[1], found[2]
        elif names and line.startswith("    "):
            words[names] += f" {line.strip()}"
        else:
            prose.append(line)
    return "\n".join(prose).strip(), words


def _call(name: str, function: Callable[..., Any]) -> str:
    """The signature as an indented block; a parameter is never cut in two."""
    shape = signature(function)
    given = _parameters(function)
    whole = f"{name}({', '.join(one.replace(' ', NARROW) for one in given)}){NARROW}->{NARROW}"
    whole += _type(shape.return_annotation).replace(" ", NARROW)
    return fill(whole, 116, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False).replace(
        NARROW, " "
    )


def _parameters(function: Callable[..., Any]) -> list[str]:
    found: list[str] = []
    for one in signature(function).parameters.values():
        if one.kind is Parameter.KEYWORD_ONLY and not any(other.startswith("*") for other in found):
            found.append("*")
        stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is Parameter.empty else f" = {_shown(one.default)}"
        if one.name != "self":
            found.append(f"{stars}{one.name}: {_type(one.annotation)}{default}")
    return found


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _type(annotation: Any) -> str:
    """As it is written in the code, with the names of its own spelt out."""
    spelt = re.sub(r"\b(" + "|".join(ALIASES) + r")\b", lambda found: _alias(ALIASES[found[1]]), str(annotation))
    return " | ".join(dict.fromkeys(spelt.replace("writing.", "").replace("upkeep.", "").split(" | ")))


def _alias(meaning: Any) -> str:
    if get_origin(meaning) is Literal:
        return " | ".join(f'"{one}"' for one in get_args(meaning))
    return re.sub(r"\b(?:datetime|collections\.abc)\.", "", str(meaning)).replace("NoneType", "None")


def _class(owner: type) -> str:
    home = "recollect" if owner.__name__ in recollect.__all__ else owner.__module__
    lines = [f"### `{home}.{owner.__name__}`", "", " ".join((getdoc(owner) or "").split()), ""]
    lines += [_field(*one) for one in _fields(owner)]
    lines += [
        _member(name, value)
        for name, value in vars(owner).items()
        if not name.startswith("_") and (isinstance(value, property) or isfunction(value))
    ]
    return "\n".join(lines).rstrip()


def _member(name: str, value: Any) -> str:
    function: Any = value.fget if isinstance(value, property) else value
    call = f"{name}: " if isinstance(value, property) else f"{name}({', '.join(_parameters(function))}) -> "
    said = " ".join((getdoc(function) or "").split())
    return f"- `{call}{_type(signature(function).return_annotation)}`: {said}"


def _fields(owner: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and what the text below the field says."""
    (tree,) = ast.parse(dedent(getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    made = _made(owner)
    for one, after in zip(tree.body, [*tree.body[1:], None]):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            said = after.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
            words = " ".join(str(said.value).split()) if said is not None else ""
            yield one.target.id, _type(ast.unparse(one.annotation)), made.get(one.target.id, ""), words


def _made(owner: type) -> dict[str, str]:
    """The defaults, as far as they are short."""
    if not is_dataclass(owner):
        return {name: _shown(value) for name, value in getattr(owner, "_field_defaults", {}).items()}
    plain = {one.name: one.default for one in fields(owner) if one.default is not MISSING}
    return {name: _shown(value) for name, value in plain.items() if isinstance(value, str | int | float | tuple | None)}


def _field(name: str, kind: str, default: str, words: str) -> str:
    return f"- `{name}: {kind}{f' = {default}' if default else ''}`" + (f": {words}" if words else "")


def _error(kind: type) -> str:
    (base,) = kind.__bases__
    above = f" ({base.__name__})" if base.__name__ in recollect.__all__ else ""
    return f"- `recollect.{kind.__name__}`{above}: {' '.join((getdoc(kind) or '').split())}"
