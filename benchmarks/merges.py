"""Ways to merge the full-text index under a continuous load of small commits: `python -m benchmarks.merges`.

Every commit leaves a segment in the full-text index. FTS5 merges those of one level when `automerge` of them are there,
many pages at a time; or the writer has it merge a few pages after every so many texts, from `usermerge` segments on.
Fewer merges make writing cheaper and searching dearer: a search visits every segment.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import apsw
import numpy as np

from benchmarks import corpus, stores
from recollect.domain.changes import Put
from recollect.domain.query import Or, Term
from recollect.domain.question import Filter

NEVER = 1 << 40
SETTINGS = ((4, 4, NEVER), (8, 4, NEVER), (16, 4, NEVER), (0, 4, 16), (0, 8, 16), (0, 8, 64))
"""automerge, usermerge, after how many texts the writer merges. FTS5's own are the first, recollect's are 0, 8, 16."""


@dataclass(frozen=True)
class Found:
    """What one round costs: CPU of every commit and of a search, and what is written for a text."""

    commits: list[float]
    written_kb: float
    segments: int
    search_us: float


def main() -> None:
    """Measure every setting on the same texts and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merges", description=__doc__)
    parser.add_argument("--writes", type=int, default=8_000)
    parser.add_argument("--group", type=int, default=16, help="how many writes share a commit")
    parser.add_argument("--rounds", type=int, default=3, help="how often every setting is measured")
    given = parser.parse_args()
    texts = corpus.make(given.writes)
    print("| automerge | usermerge | merge after texts | CPU µs a write | commit p50 | p99 | most, CPU µs"
          " | KB a write | segments | search, CPU µs |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    rounds: dict[tuple[int, int, int], list[Found]] = {setting: [] for setting in SETTINGS}
    for _ in range(given.rounds):
        for setting in SETTINGS:
            with tempfile.TemporaryDirectory() as folder:
                rounds[setting].append(measure(Path(folder) / "store.db", texts, given.group, setting))
    for (automerge, usermerge, after), found in rounds.items():
        # The same work in every round: what others do on the machine only adds to it.
        commits = np.min([one.commits for one in found], axis=0) * 1e6
        cells = [
            automerge, usermerge, "-" if after == NEVER else after, f"{commits.sum() / given.writes:.0f}",
            *(f"{np.percentile(commits, part):.0f}" for part in (50, 99, 100)), f"{found[0].written_kb:.1f}",
            found[0].segments, f"{min(one.search_us for one in found):.0f}",
        ]  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |")


def measure(path: Path, texts: corpus.Corpus, group: int, setting: tuple[int, int, int]) -> Found:
    """Write all texts in groups, each a commit, then ask for words."""
    store = stores.open_waiting(path)
    own = apsw.Connection(str(path))
    for name, value in zip(("automerge", "usermerge"), setting):
        own.execute("INSERT INTO fulltext (fulltext, rank) VALUES (?, ?)", (name, value))
    memories = [memory for piece in texts.memories() for memory in piece]
    commits: list[float] = []
    written = -_written()
    with patch("recollect.stores.sqlite.ledger.MERGED_FROM", setting[2]):
        for first in range(0, len(memories), group):
            before = time.process_time()
            store.records.write([Put(memory) for memory in memories[first : first + group]])
            commits.append(time.process_time() - before)
    written += _written()
    searches = [Or(tuple(Term(word) for word in question.split())) for question in texts.questions(40)]
    assert store.text is not None
    asked: list[float] = []
    for query in searches * 2:  # the first round fills caches
        before = time.process_time()
        store.text.match(query, Filter(), 50)
        asked.append(time.process_time() - before)
    segments = _segments(own)
    own.close()
    store.close()
    return Found(
        commits=commits,
        written_kb=written / len(memories) / 1000,
        segments=segments,
        search_us=float(np.median(asked[len(searches) :])) * 1e6,
    )


def _segments(connection: apsw.Connection) -> int:
    """Segments of the index: FTS5 numbers its pages by segment in the high bits."""
    return int(connection.execute("SELECT count(DISTINCT id >> 37) FROM fulltext_data WHERE id >= 1 << 37").get)  # pyright: ignore


def _written() -> int:
    """Bytes that this process has handed to the system for writing; 0 where the system does not tell."""
    told = Path("/proc/self/io")
    lines = told.read_text("ascii").splitlines() if told.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar")), 0)


if __name__ == "__main__":
    main()
