"""Writes the golden rankings anew: `python -m tests.golden`. Read the difference before you commit it."""

from __future__ import annotations

import json

from recollect import profiles
from tests.golden.rankings import EXPECTED, rankings

for profile in profiles.builtin_names():
    text = json.dumps(rankings(profile, "memory"), indent=1, ensure_ascii=False)
    (EXPECTED / f"{profile}.json").write_text(text + "\n", encoding="utf-8")
