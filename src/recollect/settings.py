"""Where things are: the user's folders, the store, the models. How to rank lives in profiles, not here.

Precedence: what the caller passes, then RECOLLECT_* variables, then config.toml in the home folder, then defaults.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import platformdirs

from recollect.domain.errors import InvalidInput

APP = "recollect"
RANGES = {"recollect_limit": (1, 50), "consolidate_hours": (0, 8760)}
"""A year: what is to happen more rarely is not regular."""
PLACES = ("store", "models", "qdrant")
"""The settings that are a path, or an address."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One value per question of the form "where" or "which one"."""

    home: Path
    store: str
    models: Path
    embedder: str = "default"
    """default (the fallback chain) · none · fake · a catalogue name · a folder with an ONNX model · an http(s) URL"""
    embedder_model: str = ""
    embedder_key: str = ""
    reranker: str = "default"
    reranker_model: str = ""
    reranker_key: str = ""
    language_model: str = ""
    """URL of an OpenAI-shaped endpoint for judging, answering and, where asked for, concepts."""
    language_model_name: str = ""
    language_model_key: str = ""
    extract_concepts: bool = False
    """Whether that model reads memories in the background and links those that name what others are about."""
    qdrant: str = ""
    """Where vectors are searched: URL of a Qdrant server or a folder for its embedded form; empty: in the store."""
    qdrant_key: str = ""
    qdrant_collection: str = "recollect"
    """How the names of this store's collections begin."""
    profile: str = "balanced"
    recollect_profile: str = "balanced"
    """How a prompt is answered for the hooks (POST /recollect)."""
    recollect_limit: int = 3
    """With how many memories at most."""
    episodes_profile: str = "live-weights"
    """How GET /episodes/search ranks."""
    topic_gate: bool = True
    """While a session's prompts stay on their topic, its recollection stands."""
    consolidate_hours: float = 0.0
    """How often the daemon merges memories that say the same; 0: only when asked."""

    @property
    def profiles(self) -> Path:
        """The user's own profiles."""
        return self.home / "profiles"

    @property
    def profile_names(self) -> dict[str, str]:
        """The settings that choose a profile, by their names."""
        names = ("profile", "recollect_profile", "episodes_profile")
        return {name: getattr(self, name) for name in names}

    @property
    def recollections(self) -> Path:
        """The last recollection of each session."""
        return self.home / "recollections"


def default_home(environment: Mapping[str, str]) -> Path:
    """The user's data folder, or RECOLLECT_HOME."""
    given = environment.get("RECOLLECT_HOME")
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir(APP, appauthor=False))


def load(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from the environment and config.toml; keyword arguments that are not None win over both."""
    environment = os.environ if environment is None else environment
    # Absolute: a process may go elsewhere, and a daemon runs in its home.
    home = Path(overrides.pop("home", None) or default_home(environment)).expanduser().absolute()
    cache = environment.get("RECOLLECT_MODELS")
    models = Path(cache).expanduser() if cache else _models_folder(environment)
    settings = Settings(home=home, store=str(home / "memories.db"), models=models)
    known = {field.name for field in fields(Settings)} - {"home"}
    values: dict[str, Any] = _read_config(home / "config.toml", known)
    for name in known:
        given = environment.get(f"RECOLLECT_{name.upper()}")
        if given:
            values[name] = given
    values.update({name: value for name, value in overrides.items() if value is not None})
    return replace(settings, **{name: converted(name, value) for name, value in values.items()})


def fingerprint(chosen: Settings) -> str:
    """What decides an answer, as a digest: two processes of one fingerprint answer alike. It gives no key away."""
    named = {field.name: str(getattr(chosen, field.name)) for field in fields(chosen)}
    named["store"] = _identity(chosen.store)
    if "default" in (chosen.embedder, chosen.reranker):  # whichever is there
        named["installed"] = " ".join(_installed(chosen.models))
    return _digest("\n".join(f"{name}={value}" for name, value in sorted(named.items()) if name != "home"))


def store_name(store: str) -> str:
    """A store's name for comparing: the same for every way to write its path, and no password can be read in it."""
    return _digest(_identity(store))


def own_store(home: Path, environment: Mapping[str, str]) -> str:
    """The store of a home for those who name none."""
    return load({name: value for name, value in environment.items() if name != "RECOLLECT_STORE"}, home=home).store


def _installed(models: Path) -> list[str]:
    """The folders of models that are there; those that begin with a dot are still being fetched."""
    try:
        return sorted(name for name in os.listdir(models) if not name.startswith("."))  # noqa: PTH208 (quicker)
    except OSError:
        return []


def _identity(store: str) -> str:
    if store == ":memory:" or "://" in store:
        return store
    return os.path.realpath(os.path.expanduser(store))  # noqa: PTH111 (as paths are opened)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def converted(name: str, value: Any) -> Any:
    """Variables and `settings set` give text; what should be a number, a switch or a folder becomes one."""
    wanted = next(field.type for field in fields(Settings) if field.name == name)
    if wanted in ("str", "Path"):
        text = _text(name, value)
        return text if wanted == "str" else Path(text).expanduser()
    try:
        if wanted in ("int", "float"):
            return _number(name, value, whole=wanted == "int")
        if wanted == "bool" and not isinstance(value, bool):
            return {"true": True, "1": True, "false": False, "0": False}[str(value).strip().lower()]
    except (ValueError, TypeError, KeyError):
        kind = "true or false"
        if name in RANGES:
            low, high = RANGES[name]
            kind = f"a {'whole ' if wanted == 'int' else ''}number from {low} to {high}"
        hint = f"allowed: {kind}, in config.toml, in RECOLLECT_{name.upper()} or by `recollect settings set`"
        raise InvalidInput(f"{name} cannot be {str(value)[:40]!r}", hint, name) from None
    return value


def _text(name: str, value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str) or "\0" in value or (name == "store" and not value.strip()):
        kind = "the path of a file, :memory: or a postgresql:// address" if name == "store" else "a text"
        hint = f"allowed: {kind}, where it is given, in config.toml or in RECOLLECT_{name.upper()}"
        raise InvalidInput(f"{name} cannot be {str(value)[:40]!r}", hint, name)
    return value


def _number(name: str, value: Any, *, whole: bool) -> float:
    found = math.nan if isinstance(value, bool) else float(value)
    low, high = RANGES[name]
    if not low <= found <= high or (whole and not found.is_integer()):
        raise ValueError(value)
    return int(found) if whole else found


def _models_folder(environment: Mapping[str, str]) -> Path:
    """Models are caches: shared by all stores of the user, unless a home was set on purpose."""
    if environment.get("RECOLLECT_HOME"):
        return Path(environment["RECOLLECT_HOME"]).expanduser() / "models"
    return Path(platformdirs.user_cache_dir(APP, appauthor=False)) / "models"


def _read_config(path: Path, known: set[str]) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8", "correct or remove the file") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read", "check its permissions, or set RECOLLECT_HOME") from error
    import tomllib  # here, because most homes have no such file and every command would load it

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}", "correct or remove the file") from error
    unknown = sorted(set(values) - known)
    if unknown:
        raise InvalidInput(
            f"{path}: unknown setting {unknown[0]!r}", f"allowed: {', '.join(sorted(known))}", unknown[0]
        )
    return {name: _from_home(path.parent, value) if name in PLACES else value for name, value in values.items()}


def _from_home(home: Path, value: Any) -> Any:
    """A relative path in config.toml counts from the file's own folder, because commands and daemons run anywhere."""
    if not isinstance(value, str) or not value.strip() or value == ":memory:" or "://" in value:
        return value
    return str(home / Path(value).expanduser())
