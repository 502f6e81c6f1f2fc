"""Which project a folder belongs to: the name of its Git repository, else the folder's own name."""

from __future__ import annotations

import os

MOST_LEVELS = 64
LONGEST_NAME = 256


def project_of(folder: str) -> str | None:
    """The project's name; None for the user's home, the root of a file system, or no folder at all.

    All worktrees of a repository are one project, and so are all links that lead into it.
    """
    if not folder:
        return None  # nothing to begin at; least of all the folder that we happen to be in
    path = os.path.realpath(folder)  # pathlib costs milliseconds, here and below
    root = _repository(path) or path
    if root in (os.path.realpath(os.path.expanduser("~")), os.path.dirname(root)):  # noqa: PTH111, PTH120
        return None
    return os.path.basename(root)[:LONGEST_NAME] or None  # noqa: PTH119


def _repository(path: str) -> str:
    for _ in range(MOST_LEVELS):
        mark = os.path.join(path, ".git")  # noqa: PTH118
        if os.path.isdir(mark):  # noqa: PTH112
            return path
        if os.path.isfile(mark):  # noqa: PTH113
            return _main_worktree(mark) or path
        above = os.path.dirname(path)  # noqa: PTH120
        if above == path:
            break
        path = above
    return ""


def _main_worktree(mark: str) -> str:
    """Where a worktree's `.git` file points: REPOSITORY/.git/worktrees/NAME, or REPOSITORY.git/worktrees/NAME."""
    try:
        with open(mark, encoding="utf-8") as file:  # noqa: PTH123
            place = file.read(4096).removeprefix("gitdir:").strip().replace("\\", "/")
    except (OSError, UnicodeDecodeError):
        return ""
    found = place.rpartition("/worktrees/")[0]
    if not found:
        return ""
    # It may be relative to the folder of the file.
    repository = os.path.normpath(os.path.join(os.path.dirname(mark), found))  # noqa: PTH118, PTH120
    hidden = os.path.basename(repository).startswith(".")  # noqa: PTH119
    return os.path.dirname(repository) if hidden else repository.removesuffix(".git")  # noqa: PTH120
