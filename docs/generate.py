"""Writes the reference pages that are made from the code. `make docs` runs it; a test compares."""

from __future__ import annotations

from pathlib import Path

import library_reference as library

from recollect.doors.cli import reference as commands
from recollect.doors.http import reference as routes
from recollect.doors.install import reference as hooks
from recollect.doors.mcp import reference as tools
from recollect.encoders import reference as models
from recollect.profiles import reference as profiles

HERE = Path(__file__).parent
PAGES = {
    "cli.md": commands.page,
    "hooks.md": hooks.page,
    "http.md": routes.page,
    "library.md": library.page,
    "mcp.md": tools.page,
    "models.md": models.page,
    "profiles.md": profiles.page,
}


def main() -> None:
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
