"""What the user's choice opens, what it costs to ask, and what is said when it is not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders import open_embedder, open_reranker
from recollect.encoders.catalogue import MODELS
from recollect.encoders.fake import FakeEmbedder, FakeReranker
from recollect.encoders.fetch import model_folder
from recollect.encoders.http import HttpEmbedder
from recollect.encoders.onnx import OnnxEmbedder
from recollect.encoders.rerankers import HttpReranker, JudgeReranker, LocalCrossEncoder
from recollect.encoders.static import StaticEmbedder


def pretend_installed(cache: Path, *names: str) -> None:
    """Files of the right names and sizes: all that opening looks at."""
    for name in names:
        folder = model_folder(cache, MODELS[name])
        folder.mkdir(parents=True)
        for file in MODELS[name].files:
            with (folder / file.name).open("wb") as sparse:
                sparse.truncate(file.size)


@pytest.mark.parametrize("choice", ["none", "", "default"])
def test_nothing_there_is_none(tmp_path: Path, choice: str) -> None:
    assert open_embedder(choice, tmp_path) is None and open_reranker(choice, tmp_path) is None
    assert open_embedder(choice, tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("here", "first"),
    [
        (("minilm-l6", "granite-30m", "arctic-embed-s"), "arctic-embed-s"),
        (("minilm-l6", "granite-30m"), "granite-30m"),
        (("minilm-l6", "potion-8m"), "minilm-l6"),
    ],
)
def test_default_is_the_first_of_the_chain_that_is_here(tmp_path: Path, here: tuple[str, ...], first: str) -> None:
    pretend_installed(tmp_path, *here)
    embedder = open_embedder("default", tmp_path)
    assert isinstance(embedder, OnnxEmbedder) and embedder.id.startswith(
        f"{first}@{MODELS[first].files[0].sha256[:12]}"
    )


def test_a_model_outside_the_chain_must_be_named(tmp_path: Path) -> None:
    pretend_installed(tmp_path, "potion-8m", "bert-mini-reranker")
    assert open_embedder("default", tmp_path) is None
    assert isinstance(open_embedder("potion-8m", tmp_path), StaticEmbedder)
    assert isinstance(open_reranker("default", tmp_path), LocalCrossEncoder)
    assert isinstance(open_reranker("bert-mini-reranker", tmp_path), LocalCrossEncoder)


def test_a_damaged_model_is_found_at_first_use(tmp_path: Path) -> None:
    pretend_installed(tmp_path, "arctic-embed-s", "potion-8m")
    for name in ("arctic-embed-s", "potion-8m"):
        embedder = open_embedder(name, tmp_path)
        assert embedder is not None and embedder.dimension == MODELS[name].dimension
        with pytest.raises(ModelUnavailable, match="damaged"):
            embedder.embed_query("red")


def test_a_named_model_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        open_embedder("granite-30m", tmp_path)
    assert caught.value.hint == "run `recollect models fetch granite-30m`"
    with pytest.raises(ModelUnavailable):
        open_reranker("bert-mini-reranker", tmp_path)


def test_unknown_choices_list_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_embedder("bert-mini-reranker", tmp_path)
    assert "arctic-embed-s" in caught.value.hint and "bert-mini-reranker" not in caught.value.hint
    with pytest.raises(InvalidInput) as caught:
        open_reranker("arctic-embed-s", tmp_path)
    assert "bert-mini-reranker" in caught.value.hint and "judge" in caught.value.hint


def test_a_folder_opens_its_model(
    tiny_folder: Callable[..., Path], cross_folder: Callable[..., Path], tmp_path: Path
) -> None:
    embedder = open_embedder(str(tiny_folder()), tmp_path)
    assert isinstance(embedder, OnnxEmbedder) and embedder.dimension == 3
    assert isinstance(open_reranker(str(cross_folder()), tmp_path), LocalCrossEncoder)


def test_addresses_and_doubles(tmp_path: Path) -> None:
    assert isinstance(open_embedder("fake", tmp_path), FakeEmbedder)
    assert isinstance(open_reranker("fake", tmp_path), FakeReranker)
    remote = open_embedder("http://localhost:11434/v1#max_tokens=2048", tmp_path, model="nomic", key="k")
    assert isinstance(remote, HttpEmbedder) and remote.id == "nomic@localhost:11434" and remote.max_tokens == 2048
    assert isinstance(open_reranker("https://api.jina.ai/v1/rerank", tmp_path, model="j", key="k"), HttpReranker)
    assert isinstance(open_reranker("https://h/v1/chat/completions", tmp_path, model="g"), JudgeReranker)
    judge = open_reranker("judge", tmp_path, judge_url="http://localhost/v1", judge_model="llama")
    assert isinstance(judge, JudgeReranker) and judge.id == "judge:llama@localhost"
    with pytest.raises(InvalidInput, match="no language model"):
        open_reranker("judge", tmp_path)


def test_opening_loads_no_numerical_library_until_it_is_needed() -> None:
    code = (
        "import sys; from pathlib import Path; from recollect.encoders import open_embedder, fetch, catalogue\n"
        "open_embedder('default', Path('missing')); fetch.is_installed(Path('missing'), catalogue.ARCTIC)\n"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers', 'ssl', 'http.client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
