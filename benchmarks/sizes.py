"""Where the bytes of a memory are, by table and index: `python -m benchmarks.sizes --memories 100000`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import apsw

from benchmarks import corpus, meaning, stores
from recollect.domain.question import Filter
from recollect.stores.sqlite import open_sqlite


def main() -> None:
    """Fill a store with memories and synthetic vectors, and print what SQLite says of its pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    count = parser.parse_args().memories
    made = meaning.make(count, 1, None, 1_000)
    texts = corpus.make(count, made.topics)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = open_sqlite(path)
        stores.write_memories(store, texts)
        stores.write_vectors(store, texts, made.vectors)
        assert store.vectors is not None
        store.vectors.search(stores.MODEL, made.questions[0], Filter(), 1)
        store.care.tidy()
        store.close()
        index = sum(file.stat().st_size for file in path.parent.glob("store.db.*.codes"))
        print(f"{path.stat().st_size / count:.1f} bytes a memory in the file, {index / count:.1f} in its vector index")
        print("| table or index | bytes a memory | of them unused |")
        print("|---|---|---|")
        sql = "SELECT name, sum(pgsize), sum(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 18"
        connection = apsw.Connection(str(path))
        for name, size, unused in connection.execute(sql).fetchall():
            print(f"| {name} | {float(str(size)) / count:.1f} | {float(str(unused)) / count:.1f} |")
        connection.close()


if __name__ == "__main__":
    main()
