"""How should the default model be asked? `python -m benchmarks.batches`: one by one or at once, with how many threads.

Does a text's vector depend on the texts it is embedded with? The texts have exactly equal token lengths, so nothing is
padded; both ways start from the same encoded texts. And what do threads gain: several on one text, or one on each of
several texts?
"""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np

from recollect.adapters import open_embedder
from recollect.encoders.onnx import OnnxEmbedder
from recollect.encoders.session import ModelFiles
from recollect.settings import load

BATCH = 16
ROUNDS = 5


def main() -> None:
    """Embed one bucket one by one and at once; print how far the vectors are apart and the CPU time of a text."""
    embedder = open_embedder(load(store=":memory:"))[0]
    assert isinstance(embedder, OnnxEmbedder), "the default model is not here: recollect models fetch"
    model, vectors = embedder._model, embedder._vectors  # pyright: ignore[reportPrivateUsage]
    buckets: dict[int, list[str]] = defaultdict(list)
    for number in range(200):
        text = f"note {number}: service {number % 7} runs {number % 9} replicas in region {number % 3}"
        buckets[embedder.count_tokens(text)].append(text)
    tokens, texts = max(buckets.items(), key=lambda pair: len(pair[1]))
    encoded = [model.encode(text) for text in texts[:BATCH]]
    alone_s, together_s = list[float](), list[float]()
    alone = together = vectors(encoded[:1])
    for _ in range(ROUNDS):
        before = time.process_time()
        alone = np.vstack([vectors([one]) for one in encoded])
        alone_s.append(time.process_time() - before)
        before = time.process_time()
        together = vectors(encoded)
        together_s.append(time.process_time() - before)
    cosines = (alone * together).sum(axis=1)
    print(f"{len(encoded)} texts of {tokens} tokens: lowest cosine {cosines.min():.4f},", end=" ")
    print(f"CPU ms a text: alone {min(alone_s) / len(encoded) * 1e3:.2f},", end=" ")
    print(f"together {min(together_s) / len(encoded) * 1e3:.2f}")
    print("| threads on a text | texts at a time | wall ms a text | CPU ms a text |\n|---|---|---|---|")
    for threads, workers in ((1, 1), (2, 1), (1, 2)):
        wall_ms, cpu_ms = _with_threads(model.files, texts, threads, workers)
        print(f"| {threads} | {workers} | {wall_ms:.2f} | {cpu_ms:.2f} |")


def _with_threads(files: ModelFiles, texts: list[str], threads: int, workers: int) -> tuple[float, float]:
    """Wall and CPU milliseconds of a text, at the best of some rounds."""
    embedder = OnnxEmbedder(files, threads=threads, workers=workers)
    embedder.warm()
    wall, cpu = list[float](), list[float]()
    for _ in range(ROUNDS):
        spent, began = time.process_time(), time.perf_counter()
        embedder.embed_documents(texts)
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    return min(wall) / len(texts) * 1e3, min(cpu) / len(texts) * 1e3


if __name__ == "__main__":
    main()
