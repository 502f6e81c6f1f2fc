"""A user's program under a strict type checker: what is right is let through, what is misspelt is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """\
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recollect
from recollect import Contribution, Draft, Engine, Memory, Recall, RecallHit, Receipt, Scope, fuse


class Mine:
    id = "mine-1"
    dimension = 2
    max_tokens = 100

    def count_tokens(self, text: str) -> int:
        return len(text)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.ones(2, dtype=np.float32)


def work(path: Path) -> list[str]:
    with recollect.open(path, embedder=Mine(), home=path.parent) as memory:
        receipt: Receipt = memory.remember("x", tags=("a",), importance="high", scope=Scope(project="p"))
        receipts: list[Receipt] = memory.remember_many([Draft("z", metadata={"a": [1]}, created_at=datetime.now(UTC))])
        answer: Recall = memory.recall("x", mode="auto", options={"fusion.k": 1}, type=["fact"], now="2026-01-01")
        best: RecallHit = answer[0]
        three: tuple[RecallHit, ...] = answer[:3]
        reasons: list[Contribution] = [one for hit in (best, *three) for one in hit.contributions]
        page: list[Memory] = memory.list(limit=5)
        page = memory.list(limit=5, cursor=page[-1])
        changed: Memory = memory.update(receipt.id, version=1, content="y")
        notes = [answer.trace.legs["dense"].skipped or "", *answer.trace.notes, answer.dropped[0].reason]
        try:
            memory.link(changed.id, "supersedes", receipts[0].id)
        except recollect.InvalidInput as error:
            return [error.message, error.hint, error.field or ""]
    fused = fuse({"lexical": ["a"], "dense": ["b"]}, weights={"lexical": 1.0}, k=60)
    return [*notes, *(one.list for one in reasons), *(one.id for one in fused), *(one.content for one in page)]


async def later(memory: Engine) -> Recall:
    return await asyncio.to_thread(memory.recall, "x", limit=3)
"""


def complaints(folder: Path, program: str) -> list[dict[str, Any]]:
    (folder / "program.py").write_text(program, encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": ["program.py"]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return json.loads(ran.stdout)["generalDiagnostics"]


def test_a_right_program_is_let_through(tmp_path: Path) -> None:
    assert complaints(tmp_path, PROGRAM) == []


def test_a_misspelt_name_is_found(tmp_path: Path) -> None:
    found = complaints(tmp_path, "import recollect\nfrom recollect import Receit\n\nprint(Receit, recollect.opne)\n")
    assert {one["rule"] for one in found} >= {"reportAttributeAccessIssue"}
    assert any("opne" in one["message"] for one in found) and any("Receit" in one["message"] for one in found)
