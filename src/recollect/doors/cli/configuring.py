"""What may stand in config.toml: a value is tried before it is written, so that a wrong one is found at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recollect import encoders, profiles, settings
from recollect.adapters import open_extractor
from recollect.domain.errors import InvalidInput
from recollect.encoders.catalogue import MODELS
from recollect.encoders.transport import check_address
from recollect.settings import Settings
from recollect.stores.postgres.address import is_address, parsed

COLLECTION = re.compile(r"[A-Za-z0-9_-]{1,64}")
WORDS = frozenset({"default", "none", "fake", "judge"})


def checked(name: str, value: str, chosen: Settings) -> str:
    """The value as it is to be written, or an error that names the setting and what it may be."""
    given = PLACES[name](value) if name in PLACES else value
    try:
        changed = replace(chosen, **{name: settings.converted(name, given)})
        if name in CHECKS:
            CHECKS[name](given, changed)
        elif name.endswith(("_model", "_name", "_key")):
            _require_one_line(given)
            _require_usable_key(name, changed)
    except InvalidInput as error:
        raise InvalidInput(error.message, error.hint, name) from error
    return given


def _absolute(value: str) -> str:
    """A relative path means the folder it was typed in, not the one that a daemon will run in."""
    return value if value == ":memory:" or "://" in value else str(Path(value).expanduser().absolute())


def model_choice(value: str) -> str:
    """A model as it is to be written: a folder by its whole path, a name, a URL or what is none of them as it is."""
    return _absolute(value) if value not in (*MODELS, *WORDS) and Path(value).expanduser().exists() else value


def _check_store(value: str, _: Settings) -> None:
    if is_address(value):
        parsed(value)
    elif "://" in value or Path(value).is_dir():
        # Not the whole of an address: it may hold a password.
        shown = f"{value.partition('://')[0]}://" if "://" in value else value
        raise InvalidInput(f"{shown} cannot be a store", "allowed: the path of a file, :memory:, or postgresql://…")


def _check_models(value: str, _: Settings) -> None:
    if "://" in value or value == ":memory:" or Path(value).is_file():
        raise InvalidInput(f"{value} cannot hold models", "allowed: the path of a folder")


def _check_qdrant(value: str, changed: Settings) -> None:
    if "://" in value:
        check_address(value, changed.qdrant_key)
    elif Path(value).is_file():
        raise InvalidInput(
            f"{value} cannot hold vectors", "allowed: the URL of a Qdrant server, or the path of a folder"
        )


def _check_collection(value: str, _: Settings) -> None:
    if not COLLECTION.fullmatch(value):
        raise InvalidInput(f"{value!r} cannot begin a name", "allowed: letters, digits, - and _, at most 64 of them")


def _check_profile(value: str, changed: Settings) -> None:
    profiles.load(value, changed.profiles)


def _check_embedder(value: str, changed: Settings) -> None:
    encoders.open_embedder(value, changed.models, model=changed.embedder_model, key=changed.embedder_key)


def _check_reranker(value: str, changed: Settings) -> None:
    encoders.open_reranker(
        value,
        changed.models,
        model=changed.reranker_model,
        key=changed.reranker_key,
        judge_url=changed.language_model,
        judge_model=changed.language_model_name,
        judge_key=changed.language_model_key,
    )


def _check_language_model(value: str, changed: Settings) -> None:
    check_address(value, changed.language_model_key)


def _check_extraction(_: str, changed: Settings) -> None:
    open_extractor(changed)


def _require_one_line(value: str) -> None:
    if not value.strip() or not value.isprintable():
        raise InvalidInput(f"{value!r} cannot be used", "allowed: one line of text")


def _require_usable_key(name: str, changed: Settings) -> None:
    """A key is tried with the address it is for; any address will do while there is none."""
    if name.endswith("_key"):
        address: str = getattr(changed, name.removesuffix("_key"))
        check_address(address if "://" in address else "https://localhost", getattr(changed, name))


PLACES: dict[str, Callable[[str], str]] = {
    "store": _absolute,
    "models": _absolute,
    "qdrant": _absolute,
    "embedder": model_choice,
    "reranker": model_choice,
}
CHECKS: dict[str, Callable[[str, Settings], None]] = {
    "store": _check_store,
    "models": _check_models,
    "qdrant": _check_qdrant,
    "qdrant_collection": _check_collection,
    "profile": _check_profile,
    "recollect_profile": _check_profile,
    "episodes_profile": _check_profile,
    "embedder": _check_embedder,
    "reranker": _check_reranker,
    "language_model": _check_language_model,
    "extract_concepts": _check_extraction,
}
