"""What other programs call our commands: who types such a name is told ours."""

from __future__ import annotations

import re

NAMES = {
    "recall": ("search", "find", "query", "ask"),
    "recall --explain": ("explain", "why"),
    "remember": ("add", "save", "store", "write", "note"),
    "update": ("edit", "change", "modify"),
    "forget": ("delete", "rm", "remove", "del"),
    "show": ("get", "view", "cat", "expand"),
    "list": ("ls", "all"),
    "consolidate": ("merge", "dedupe", "dedup"),
    "upkeep": ("embed", "gc", "vacuum"),
    "doctor": ("status", "health", "check", "verify"),
    "stats": ("info", "count"),
    "serve": ("server", "daemon", "start", "run"),
    "install": ("setup", "init", "hooks"),
    "settings": ("config", "configure", "set"),
    "models": ("model", "fetch", "download"),
    "eval": ("bench", "benchmark", "evaluate"),
}
OURS = {other: ours for ours, others in NAMES.items() for other in others}
INSTEAD = {
    "undo": ("what is forgotten is gone, but a backup can be put back", "restore"),
    "stop": ("a daemon is ended as `recollect doctor` says", "doctor"),
    "restart": (
        "a daemon is ended as `recollect doctor` says, and the next hook or `recollect serve` starts one",
        "serve",
    ),
}
UNKNOWN = re.compile(r"no such command '([^']*)'")


def told(message: str) -> tuple[str, str] | None:
    """For an unknown command that has another name here, or something in its place: what to say, and whose help."""
    found = UNKNOWN.match(message)
    typed = found[1] if found else ""
    if typed in OURS:
        return f"no such command '{typed}': here it is called '{OURS[typed]}'", OURS[typed].partition(" ")[0]
    if typed in INSTEAD:
        instead, command = INSTEAD[typed]
        return f"no such command '{typed}': {instead}", command
    return None
