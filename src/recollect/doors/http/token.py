"""Where a daemon is reached and what opens its door. Hooks read the same files by `doors.hook.home`, to load less."""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.domain.errors import InvalidInput
from recollect.doors.files import replace_file

HOST = "127.0.0.1"
PORT = 4777
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Address:
    """Where the daemon of a home listens, and which store with which settings it serves.

    `socket` is None where there is no Unix socket. `store` and `own_store` are the names (digests) of the store that is
    served and of the one that the home's own configuration means. `until_changed`: it ends when its settings change.
    """

    pid: int
    host: str
    port: int
    socket: str | None
    version: str
    serves: str = ""
    store: str = ""
    own_store: str = ""
    until_changed: bool = False


def token_path(home: Path) -> Path:
    return home / "token"


def socket_path(home: Path) -> Path:
    return home / "daemon.sock"


def lock_path(home: Path) -> Path:
    """Held for as long as a daemon lives; a killed one lets go by itself."""
    return home / "daemon.lock"


def address_path(home: Path) -> Path:
    return home / "daemon.json"


def read_token(home: Path) -> str | None:
    """The token of this home, or None while no daemon has made one."""
    try:
        return token_path(home).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def ensure_token(home: Path) -> str:
    """The token, made at the first start and readable by its owner alone."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = token_path(home)
    if not path.exists():
        made = home / f".token-{secrets.token_hex(8)}"
        replace_file(made, secrets.token_urlsafe(TOKEN_BYTES))
        try:
            with suppress(FileExistsError):  # whoever came first wins
                path.hardlink_to(made)
        finally:
            made.unlink()
    if os.name == "posix" and stat.S_IMODE(path.lstat().st_mode) & 0o077:
        raise InvalidInput("the token file can be read by others", "delete it: the next start makes a new one", "token")
    token = read_token(home)
    if token is None:
        raise InvalidInput(
            "the token file is empty or unreadable", "delete it: the next start makes a new one", "token"
        )
    return token


def write_address(home: Path, address: Address) -> None:
    replace_file(address_path(home), json.dumps(asdict(address)))


def read_address(home: Path) -> Address | None:
    """Where the daemon said it listens; it may have ended since. A missing or damaged file is no address."""
    try:
        found: Any = json.loads(address_path(home).read_text(encoding="utf-8"))
        return Address(**found)
    except (OSError, ValueError, TypeError):
        return None
