"""The daemon's life: lock, token, store, sockets; then requests; then finish, drain, close. One daemon per home."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from recollect import __version__, settings
from recollect.domain.errors import RecollectError, StoreUnavailable
from recollect.doors.hook.home import ending
from recollect.doors.http import logs, token
from recollect.doors.http.app import build_app
from recollect.doors.http.door import GRACE_SECONDS, Door
from recollect.doors.http.guard import LOOPBACK
from recollect.doors.http.lanes import Limits
from recollect.doors.http.listening import bind_port, bind_socket, protocol_for, require_local
from recollect.doors.http.mounting import mounts
from recollect.doors.staying import settle_down
from recollect.engine import Engine, open_engine
from recollect.settings import Settings
from recollect.stores.sqlite.gate import Gate

log = logging.getLogger("recollect.http")

DRAIN_SECONDS = 5.0
CLOSE_SECONDS = 20.0
LOOK_SECONDS = 0.25
"""Who asks whether a daemon lives has the home's lock for a moment; one that keeps it longer is a daemon."""
TICKS = 10
"""Of a tenth of a second each: how often the store's file and the settings are looked at."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen, and under which further names others may ask for this server."""

    host: str = token.HOST
    port: int = token.PORT
    socket: Path | None = None
    allow_remote: bool = False
    hosts: tuple[str, ...] = ()
    until_changed: bool = False
    """Whether it ends when a new one would have other settings or models: hooks start the next one."""
    limits: Limits = field(default_factory=Limits)


def serve(store: str | None, place: Place, started: Callable[[token.Address, Path], None]) -> None:
    """Serve until SIGTERM or SIGINT. `started` is told the address and the token's file once requests are taken."""
    require_local(place.host, place.allow_remote)
    chosen = settings.load(store=store)
    secret = token.ensure_token(chosen.home)
    with _alone(chosen.home), _listeners(chosen, place) as (sockets, address):
        engine = open_engine(store)
        try:
            logs.configure()
            server = _server(Door(engine, place.limits), secret, place, _Watched(store, chosen.store, address.serves))
            settle_down()
            token.write_address(chosen.home, address)
            started(address, token.token_path(chosen.home))
            server.run(sockets)
        finally:
            # One that is not ours belongs to the daemon of a home that was made anew in the place of this one.
            if token.read_address(chosen.home) in (address, None):
                token.address_path(chosen.home).unlink(missing_ok=True)
            _close(engine)
    if server.watched.is_gone():
        hint = "`recollect serve` serves what is there now; hooks start it by themselves"
        raise StoreUnavailable("the store's file was moved, deleted or replaced: the daemon has ended", hint)


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """Hold the home's lock; a second daemon is told who holds it."""
    gate = Gate(token.lock_path(home), timeout_s=LOOK_SECONDS)
    try:
        with _taken(home, gate):
            yield
    finally:
        gate.close()


@contextmanager
def _taken(home: Path, gate: Gate) -> Generator[None]:
    passage = gate.passage()
    try:
        passage.__enter__()
    except StoreUnavailable:
        there = token.read_address(home)
        where = f" (process {there.pid}, port {there.port})" if there else ""
        end = f"end it (`{ending(there.pid)}`)" if there else "end it"
        raise RecollectError(
            f"a daemon already serves this home{where}", f"use it, {end}, or set RECOLLECT_HOME to another folder"
        ) from None
    try:
        yield
    finally:
        passage.__exit__(None, None, None)


@contextmanager
def _listeners(chosen: Settings, place: Place) -> Generator[tuple[list[socket.socket], token.Address]]:
    """The sockets, and where they are; the Unix socket's file goes with them."""
    port = bind_port(place.host, place.port)
    path = place.socket or token.socket_path(chosen.home)
    local = None
    try:
        local = bind_socket(path)
        address = token.Address(
            os.getpid(),
            place.host,
            port.getsockname()[1],
            None if local is None else str(path),
            __version__,
            settings.fingerprint(chosen),
            settings.store_name(chosen.store),
            settings.store_name(settings.own_store(chosen.home, os.environ)),
            place.until_changed,
        )
        yield [port] if local is None else [port, local], address
    finally:
        port.close()
        if local is not None:
            local.close()
            path.unlink(missing_ok=True)


class _Watched:
    """What a daemon began with: the store's file, and the settings and models by which it answers."""

    def __init__(self, given: str | None, store: str, serves: str) -> None:
        self._given, self._serves = given, serves
        self._program = _program()
        self._path = None if store == ":memory:" or "://" in store else Path(store).expanduser()
        self._file: os.stat_result | None = None
        if self._path is not None:
            with suppress(OSError):
                self._file = self._path.stat()

    def is_outdated(self) -> bool:
        """Whether a daemon that starts now would be of another version, or answer by other settings or models."""
        try:
            return _program() != self._program or settings.fingerprint(settings.load(store=self._given)) != self._serves
        except (RecollectError, OSError):  # somebody is in the middle of writing them
            return False

    def is_gone(self) -> bool:
        """Whether the store's file is another than the one that was opened. What is no file cannot go like this."""
        if self._path is None or self._file is None:
            return False
        try:
            return not os.path.samestat(self._path.stat(), self._file)
        except FileNotFoundError:
            return True
        except OSError:  # nobody may look at the moment
            return False


def _program() -> tuple[int, int] | None:
    """Which file this program was read from: an upgrade puts another one in its place."""
    try:
        found = Path(settings.__file__).with_name("__init__.py").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


class _Server(uvicorn.Server):
    """uvicorn, which tells the door before it waits for the last requests, and ends when what it serves has gone."""

    def __init__(self, config: uvicorn.Config, door: Door, watched: _Watched, until_changed: bool) -> None:
        super().__init__(config)
        self._door = door
        self._until_changed = until_changed
        self._told = False
        self.watched = watched

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            # Every write would be refused, and every answer come from a file that nobody else sees any more.
            self.should_exit = self.should_exit or self.watched.is_gone()
            if not self._told and self.watched.is_outdated():
                self._told = True
                self.should_exit = self.should_exit or self._until_changed
                then = "the next hook starts another" if self._until_changed else "they count when it is started anew"
                log.warning("the settings, the models or the program have changed: %s", then)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._door.stop()
        await super().shutdown(sockets)
        self._door.close()

    def leave(self, *_: object) -> None:
        self.should_exit = True


def _server(door: Door, secret: str, place: Place, watched: _Watched) -> _Server:
    """The server, which from now on stops in good order when it is told to, even before it has begun."""
    own = () if place.host in ("0.0.0.0", "::") else (place.host.lower(),)
    hosts = (*LOOPBACK, *own, *place.hosts)
    app = build_app(door, secret, hosts=hosts, mounts=mounts(door, hosts))
    config = uvicorn.Config(
        app,
        http=protocol_for(place.limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(GRACE_SECONDS) + 2,
    )
    server = _Server(config, door, watched, place.until_changed)
    # uvicorn takes the signals over while it runs, and raises them again for these handlers when it is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.leave)
    return server


def _close(engine: Engine) -> None:
    """Embed what waits and close, but not for ever: every write is durable already, the rest is done next time."""

    def work() -> None:
        try:
            engine.upkeep(budget_seconds=DRAIN_SECONDS)
        except RecollectError as error:
            log.warning("not drained: %s", type(error).__name__)
        engine.close()

    closing = threading.Thread(target=work, name="recollect-close", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)
    if closing.is_alive():
        log.warning("closing took too long and was cut off")
        logging.shutdown()
        os._exit(0)
