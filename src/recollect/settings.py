"""Where things are: the user's folders, the store, the models. How to rank lives in profiles, not here.

Precedence: what the caller passes, then RECOLLECT_* variables, then config.toml in the home folder, then defaults.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import platformdirs

from recollect.domain.errors import InvalidInput

APP = "recollect"


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
    """URL of an OpenAI-shaped endpoint for judging and answering."""
    language_model_name: str = ""
    language_model_key: str = ""
    profile: str = "balanced"

    @property
    def profiles(self) -> Path:
        """The user's own profiles."""
        return self.home / "profiles"

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
    home = Path(overrides.pop("home", None) or default_home(environment))
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
    if "models" in values:
        values["models"] = Path(values["models"]).expanduser()
    return replace(settings, **values)


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
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}", "correct or remove the file") from error
    unknown = sorted(set(values) - known)
    if unknown:
        raise InvalidInput(
            f"{path}: unknown setting {unknown[0]!r}", f"allowed: {', '.join(sorted(known))}", unknown[0]
        )
    return values
