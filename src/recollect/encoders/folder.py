"""Reads how to run an ONNX model from the folder it lies in.

recollect-model.toml has the last word; without it the files that sentence-transformers writes are understood.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders.catalogue import CatalogueModel, Recipe
from recollect.encoders.fetch import file_sha256, model_folder
from recollect.encoders.session import ModelFiles

WEIGHTS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
TOKENIZERS = ("tokenizer.json", "onnx/tokenizer.json")
_LONGEST_WINDOW = 8192


def files_of_catalogue(model: CatalogueModel, models_dir: Path) -> ModelFiles:
    """A fetched model's files; nothing is read yet."""
    folder = model_folder(models_dir, model)
    weights, tokenizer = model.files
    return ModelFiles(
        model.name,
        folder / weights.name,
        weights.sha256,
        folder / tokenizer.name,
        tokenizer.sha256,
        model.recipe,
    )


def files_of_folder(folder: Path) -> ModelFiles:
    """The model in a user's folder; its content is read once, because its hash is part of its id."""
    weights = _first(folder, WEIGHTS)
    tokenizer = _first(folder, TOKENIZERS)
    name, recipe = _recipe(folder)
    return ModelFiles(name, weights, file_sha256(weights), tokenizer, file_sha256(tokenizer), recipe)


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ModelUnavailable(
        f"the folder {folder} has no {names[0]}",
        f"a model folder needs {WEIGHTS[0]} and {TOKENIZERS[0]} (also looked for: {', '.join(names[1:])})",
    )


def _recipe(folder: Path) -> tuple[str, Recipe]:
    values = _published_recipe(folder)
    own = folder / "recollect-model.toml"
    if own.is_file():
        values |= _own_recipe(own)
    name = str(values.pop("name", folder.resolve().name))
    recipe = Recipe(**values)
    if recipe.pooling not in ("cls", "mean"):
        raise InvalidInput(f"pooling {recipe.pooling!r} is unknown", 'allowed: "cls", "mean"', "pooling")
    if not 8 <= recipe.max_tokens <= _LONGEST_WINDOW:
        raise InvalidInput(f"max_tokens is {recipe.max_tokens}", f"allowed: 8 to {_LONGEST_WINDOW}", "max_tokens")
    if recipe.template and not ("{query}" in recipe.template and "{text}" in recipe.template):
        raise InvalidInput("the template lacks {query} or {text}", "both must stand in it", "template")
    return name, recipe


def _own_recipe(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}", "correct or remove the file") from error
    kinds: dict[str, type] = {field.name: int if field.name == "max_tokens" else str for field in fields(Recipe)}
    kinds["name"] = str
    for key, value in values.items():
        if key not in kinds:
            raise InvalidInput(f"{path}: unknown key {key!r}", f"allowed: {', '.join(sorted(kinds))}", key)
        if type(value) is not kinds[key]:
            raise InvalidInput(f"{path}: {key} must be of type {kinds[key].__name__}", "correct the value", key)
    return values


def _published_recipe(folder: Path) -> dict[str, Any]:
    """What the model's own configuration files tell, as far as they are there and make sense."""
    values: dict[str, Any] = {}
    if _json(folder / "1_Pooling" / "config.json").get("pooling_mode_cls_token") is True:
        values["pooling"] = "cls"
    window = _whole(_json(folder / "sentence_bert_config.json").get("max_seq_length"), Recipe().max_tokens)
    positions = _whole(_json(folder / "config.json").get("max_position_embeddings"), window)
    values["max_tokens"] = min(window, positions, _LONGEST_WINDOW)
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict):
        given = cast("Mapping[str, object]", prompts)
        for field, keys in (("query_prefix", ("query",)), ("document_prefix", ("document", "passage"))):
            found = next((given[key] for key in keys if isinstance(given.get(key), str)), None)
            if found is not None:
                values[field] = found
    return values


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and value >= 8 else otherwise


def _json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
