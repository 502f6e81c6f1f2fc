"""config.toml in the home folder: one value changed, everything else left as it stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from recollect.domain.errors import InvalidInput
from recollect.doors.files import replace_file


def change(path: Path, values: Mapping[str, str | None]) -> None:
    """Set these names (None removes), keep comments and order, and replace the file in one step."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    for name, value in values.items():
        text = _changed(text, name, value)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} would no longer be valid TOML: {error}", "correct the file by hand") from error
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, text)


def _changed(text: str, name: str, value: str | None) -> str:
    line = "" if value is None else f"{name} = {_quoted(value)}\n"
    pattern = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*=.*(?:\n|\Z)", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: line, text, count=1)
    if text and not text.endswith("\n"):
        text += "\n"
    return text + line


def _quoted(value: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
