"""Whether the options in a profile are what the functions they are meant for accept.

The truth is the functions' own signatures: keyword-only parameters are options, their annotations say what is
allowed. A new option needs no second declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from recollect.domain.profile import Range


class Wrong(Exception):
    """An option is wrong: where it stands in the profile, and what is allowed."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


@cache
def options_of(accepts: Callable[..., Any] | type) -> Mapping[str, Any]:
    """The options of a stage function (keyword-only parameters) or of an options dataclass: name → annotation."""
    hints = get_type_hints(accepts, include_extras=True)
    if is_dataclass(accepts):
        return {field.name: hints[field.name] for field in fields(accepts)}
    parameters = signature(cast(Callable[..., Any], accepts)).parameters.values()
    return {one.name: hints[one.name] for one in parameters if one.kind is Parameter.KEYWORD_ONLY}


def checked(
    given: Mapping[str, Any], accepts: Callable[..., Any] | type, path: str, reserved: Sequence[str] = ()
) -> dict[str, Any]:
    """The given options, converted, or Wrong. `reserved` names belong to the caller and are not options."""
    known = {name: hint for name, hint in options_of(accepts).items() if name not in reserved}
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise Wrong(f"{path}.{name}", f"unknown option {name!r}; allowed: {', '.join(sorted(known)) or 'none'}")
        result[name] = converted(value, known[name], f"{path}.{name}")
    return result


def converted(value: Any, hint: Any, path: str) -> Any:
    """The value as the annotation wants it (an int where a float is due, a list as tuple), or Wrong."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        value = converted(value, inner, path)
        for note in notes:
            if isinstance(note, Range) and not note.minimum <= value <= note.maximum:
                raise Wrong(path, f"must lie between {note.minimum:g} and {note.maximum:g}, not {value!r}")
        return value
    if origin in (Union, UnionType):
        if callable(value) and takes_function(hint):
            return value
        return converted(value, next(one for one in get_args(hint) if one is not NoneType), path)
    if origin is Literal:
        if value not in get_args(hint):
            raise Wrong(path, f"must be one of {', '.join(map(repr, get_args(hint)))}, not {value!r}")
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _converted_table(value, get_args(hint)[1], path)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _converted_list(value, get_args(hint), path)
    return _plain(value, hint, path)


def takes_function(hint: Any) -> bool:
    """Whether an option may be a function, which only a request can bring."""
    return any(get_origin(one) is Callable for one in get_args(hint))


def _converted_table(value: Any, inner: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Wrong(path, f"must be a table such as {{ name = 1.0 }}, not {value!r}")
    return {name: converted(one, inner, f"{path}.{name}") for name, one in cast(Mapping[str, Any], value).items()}


def _converted_list(value: Any, inner: Sequence[Any], path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise Wrong(path, f"must be a list, not {value!r}")
    items = cast(Sequence[Any], value)
    fixed = len(inner) > 1 and inner[1] is not Ellipsis
    if fixed and len(items) != len(inner):
        raise Wrong(path, f"must hold {len(inner)} values, not {len(items)}")
    return tuple(converted(one, inner[0], path) for one in items)


def _plain(value: Any, hint: type, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise Wrong(path, "is larger than any number can be") from None
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
        raise Wrong(path, f"must be {names.get(hint, hint.__name__)}, not {value!r}")
    return value
