"""Embedders and rerankers, opened by the user's choice. Importing this loads no model and no numerical library.

Nothing here downloads: `fetch` does, when somebody asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders.catalogue import EMBEDDER_CHAIN, MODELS, RERANKER_CHAIN, CatalogueModel
from recollect.encoders.fetch import is_installed

if TYPE_CHECKING:
    from recollect.ports import Embedder, Reranker

__all__ = ["open_embedder", "open_reranker"]


def open_embedder(
    choice: str, models_dir: Path, *, model: str = "", key: str = "", workers: int | None = None
) -> Embedder | None:
    """The embedder for "default", "none", "fake", a catalogue name, a folder or a URL (there with `model` and `key`).

    None for "none", and for "default" when no model has been fetched. A choice that names a model which is not there is
    a ModelUnavailable, one that names nothing known an InvalidInput. Models load at first use.
    """
    if choice in ("", "none"):
        return None
    if choice == "default":
        first = next((known for known in EMBEDDER_CHAIN if is_installed(models_dir, known)), None)
        return _catalogue_embedder(first, models_dir, workers) if first else None
    if choice == "fake":
        from recollect.encoders.fake import FakeEmbedder

        return FakeEmbedder()
    if choice.startswith(("http://", "https://")):
        from recollect.encoders.endpoint import Endpoint
        from recollect.encoders.http import HttpEmbedder, split_options

        address, remote = split_options(choice)
        return HttpEmbedder(Endpoint(address, key, suffix="/embeddings"), model, remote)
    named = _named(choice, models_dir, embedder=True)
    if named is not None:
        return _catalogue_embedder(named, models_dir, workers)
    from recollect.encoders.folder import files_of_folder
    from recollect.encoders.onnx import OnnxEmbedder

    return OnnxEmbedder(files_of_folder(_folder(choice, embedder=True)), workers=workers)


def open_reranker(
    choice: str,
    models_dir: Path,
    *,
    model: str = "",
    key: str = "",
    judge_url: str = "",
    judge_model: str = "",
    judge_key: str = "",
) -> Reranker | None:
    """The reranker for "default", "none", "fake", "judge", a catalogue name, a folder or a URL.

    "judge" is the language model at `judge_url`. A URL that ends in /chat/completions is a judge too, any other is
    asked as a rerank endpoint. None and errors as in open_embedder.
    """
    if choice in ("", "none"):
        return None
    if choice == "default":
        first = next((known for known in RERANKER_CHAIN if is_installed(models_dir, known)), None)
        return _catalogue_reranker(first, models_dir) if first else None
    if choice == "fake":
        from recollect.encoders.fake import FakeReranker

        return FakeReranker()
    if choice == "judge":
        if not judge_url:
            raise InvalidInput("no language model is configured", "set language_model to its URL", "language_model")
        return _remote_judge(judge_url, judge_model, judge_key)
    if choice.startswith(("http://", "https://")):
        if choice.rstrip("/").endswith("/chat/completions"):
            return _remote_judge(choice, model, key)
        from recollect.encoders.endpoint import Endpoint
        from recollect.encoders.rerankers import HttpReranker

        return HttpReranker(Endpoint(choice, key), model)
    named = _named(choice, models_dir, embedder=False)
    if named is not None:
        return _catalogue_reranker(named, models_dir)
    from recollect.encoders.folder import files_of_folder
    from recollect.encoders.rerankers import LocalCrossEncoder

    return LocalCrossEncoder(files_of_folder(_folder(choice, embedder=False)))


def _named(choice: str, models_dir: Path, *, embedder: bool) -> CatalogueModel | None:
    """The catalogue's model of this name, which must be installed; None when the choice is no name."""
    named = MODELS.get(choice)
    if named is None or named.is_embedder != embedder:
        return None
    if not is_installed(models_dir, named):
        raise ModelUnavailable(f"the model {choice} is not here yet", f"run `recollect models fetch {choice}`")
    return named


def _folder(choice: str, *, embedder: bool) -> Path:
    folder = Path(choice).expanduser()
    if not folder.is_dir():
        names = [model.name for model in MODELS.values() if model.is_embedder == embedder]
        words = ["default", "none", "fake", *([] if embedder else ["judge"]), *names]
        raise InvalidInput(
            f"{choice!r} is neither a model's name nor a folder nor a URL",
            f"allowed: {', '.join(words)}, a folder with model.onnx and tokenizer.json, an http(s) URL",
            "embedder" if embedder else "reranker",
        )
    return folder


def _catalogue_embedder(model: CatalogueModel, models_dir: Path, workers: int | None) -> Embedder:
    from recollect.encoders.folder import files_of_catalogue

    files = files_of_catalogue(model, models_dir)
    if model.kind == "static":
        from recollect.encoders.static import StaticEmbedder

        return StaticEmbedder(files, model.dimension)
    from recollect.encoders.onnx import OnnxEmbedder

    return OnnxEmbedder(files, model.dimension, workers=workers)


def _catalogue_reranker(model: CatalogueModel, models_dir: Path) -> Reranker:
    from recollect.encoders.folder import files_of_catalogue
    from recollect.encoders.rerankers import LocalCrossEncoder

    return LocalCrossEncoder(files_of_catalogue(model, models_dir))


def _remote_judge(url: str, model: str, key: str) -> Reranker:
    from recollect.encoders.endpoint import Endpoint
    from recollect.encoders.rerankers import JudgeReranker

    return JudgeReranker(Endpoint(url, key, suffix="/chat/completions"), model)
