"""Metadata as jsonb, for whoever asks the database, and beside it the text as it was written where that differs.

jsonb sorts names, writes numbers in its own way (1e22 as a whole number, -0.0 without its sign) and holds no NUL. What
it gives back as it was given is kept once; for the rest the text decides: nothing is lost, and checksums hold.
"""

from __future__ import annotations

import json

AS_JSONB = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
"""Writes JSON as jsonb does, but for the order of names and some numbers."""

COLUMN = "coalesce(m.metadata_exact, m.metadata::text)"
"""The text as it was written."""

ADD = "ALTER TABLE memories ADD COLUMN metadata_exact text"


def held(text: str) -> str:
    """A JSON text, as SQL: what jsonb can hold of it; of one with a NUL nothing."""
    without_escaped = f"replace({text}, '\\\\', '')"  # a backslash before a u may itself be meant
    return f"CASE WHEN strpos({without_escaped}, '\\u0000') = 0 THEN {text}::jsonb ELSE '{{}}'::jsonb END"


def exact(text: str) -> str:
    """The same where jsonb would not give it back; else NULL."""
    return f"nullif({text}, ({held(text)})::text)"


KEEP = f"UPDATE memories SET metadata_exact = {exact('metadata::text')} WHERE metadata::text <> '{{}}'"
CONVERT = f"ALTER TABLE memories ALTER COLUMN metadata TYPE jsonb USING {held('metadata::text')}"
DRIFTED = f"metadata_exact IS NOT NULL AND metadata <> {held('metadata_exact')}"
RENEW = f"UPDATE memories SET metadata = {held('metadata_exact')} WHERE {DRIFTED}"
