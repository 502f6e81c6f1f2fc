"""Planning and writing: every change is worked out and shown before the first file is touched.

The file as it was is kept beside it until uninstall. If nobody changed the file since, uninstall gives back exactly
those bytes; otherwise it takes out our entries and leaves the rest.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from recollect.domain.errors import RecollectError
from recollect.doors.files import replace_file
from recollect.doors.install import jsontext, tomltext
from recollect.doors.install.places import Target

BACKUP_SUFFIX = ".before-recollect"
# Made by install where the agent had none yet; a folder of another name was chosen by somebody and stays.
OWN_FOLDERS = (".claude", ".codex", ".gemini", ".cursor")
# What is left of a file that held nothing but our entries.
LEFTOVERS: tuple[dict[str, int], ...] = ({}, {"version": 1})


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; None where there is no file. keep_backup: it had nothing of ours, so keep a copy.

    is_taken: somebody else's server has our name there, so that ours was not put in."""

    path: Path
    before: str | None
    after: str | None
    keep_backup: bool
    is_taken: bool = False

    @property
    def action(self) -> str:
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "created"
        return "removed" if self.after is None else "changed"

    def diff(self) -> str:
        """A unified diff."""
        old, new = (_lines(text) for text in (self.before, self.after))
        before = str(self.path) if self.before is not None else os.devnull
        after = str(self.path) if self.after is not None else os.devnull
        return "".join(difflib.unified_diff(old, new, before, after))


def plan_install(targets: Sequence[Target]) -> list[Change]:
    """What installing would change."""
    made: list[Change] = []
    for target in targets:
        before = _read(target.path)
        text = _begun(target, before)
        with _blaming(target.path):
            after = target.put(text)
            clean = before is not None and target.take(text) == text
            taken = target.is_taken(text)
        kept = before if after == text and before is not None else after
        made.append(Change(target.path, before, kept, clean, taken))
    return made


def plan_uninstall(targets: Sequence[Target]) -> list[Change]:
    """What uninstalling would change."""
    return [_without(target) for target in targets]


def require_writable(changes: Iterable[Change]) -> None:
    """Find out before the first file is touched whether all can be written: some belong to a package manager."""
    for change in changes:
        if change.action == "unchanged":
            continue
        folder = next(one for one in change.path.resolve().parents if one.exists())
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise RecollectError(
                f"{change.path} cannot be written: {error.strerror}",
                "nothing was changed: let it be written, or put in by hand what --dry-run shows, and name the others",
            ) from error


def apply(changes: Sequence[Change], *, installing: bool) -> None:
    """Write what differs, each file in one step, with the mode and through the links it has."""
    for change in changes:
        path = change.path.resolve()
        backup = _backup(path)
        if change.action == "unchanged":
            continue
        if installing and change.keep_backup and change.before is not None:
            _write(backup, change.before, like=path)
        if change.after is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, change.after, like=path)
        if not installing:
            backup.unlink(missing_ok=True)
        if change.after is None and path.parent.name in OWN_FOLDERS:
            with suppress(OSError):  # somebody else keeps something there
                path.parent.rmdir()


def _without(target: Target) -> Change:
    before = _read(target.path)
    if before is None:
        return Change(target.path, None, None, False)
    with _blaming(target.path):
        rest = target.take(_begun(target, before))
    if rest == _begun(target, before):
        return Change(target.path, before, before, False)
    kept = _read(_backup(target.path.resolve()))
    if kept is not None:
        return Change(target.path, before, kept if _gives(target, kept, before) else rest, False)
    return Change(target.path, before, None if _is_leftover(rest) else rest, False)


def _gives(target: Target, kept: str, now: str) -> bool:
    """Whether the file is what installing made of the kept one, wherever that was and however it was called."""
    try:
        return target.take(target.put(_begun(target, kept))) == target.take(now)
    except (ValueError, RecollectError):
        return False


def _begun(target: Target, text: str | None) -> str:
    """The text to work on: a file that holds nothing but blanks is as good as none."""
    return text if text is not None and text.strip("\ufeff \t\r\n") else target.empty


def _is_leftover(text: str) -> bool:
    if not text.strip():
        return True
    try:
        return jsontext.parse(text).value in LEFTOVERS
    except jsontext.Malformed:
        return False


@contextmanager
def _blaming(path: Path) -> Generator[None]:
    """Turns what is wrong with a text into an error that names its file."""
    try:
        yield
    except (jsontext.Malformed, tomltext.Malformed) as error:
        raise RecollectError(f"{path} is {error}", "it was left as it is: correct it, then try again") from error
    except RecollectError as error:
        raise RecollectError(f"{path}: {error.message}", error.hint) from error


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise RecollectError(f"{path} is not UTF-8", "it was left as it is: correct it, then try again") from None


def _write(path: Path, text: str, *, like: Path) -> None:
    try:
        mode = stat.S_IMODE(like.stat().st_mode)
    except FileNotFoundError:
        mode = 0o600
    replace_file(path, text, mode)


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def _lines(text: str | None) -> list[str]:
    """With line ends, the missing last one told as diff tells it."""
    lines = (text or "").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
