"""Vectors as real models make them: real ones for a sample, and beyond it new ones from local differences of those.

The sample are sentences of the docstrings of Python's standard library, real English that every machine has. Without a
model, clusters around a large common mean stand in (said so in the results).
"""

from __future__ import annotations

import ast
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import SEED
from recollect.ports import Embedder

Floats = NDArray[np.float32]

NEIGHBOURS = 24
NOISE = 0.5
STEP = 65_536
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


@dataclass(frozen=True)
class Meaning:
    """Vectors of memories and of questions; `topics` tells from which sentence each memory's vector grew."""

    vectors: Floats
    questions: Floats
    topics: NDArray[np.int64]
    kind: str


def sentences(count: int) -> list[str]:
    """Different sentences of 40 to 300 characters, the same on every machine with the same Python."""
    found: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            tree = ast.parse(file.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for one in SENTENCE.split(ast.get_docstring(node) or ""):
                    text = " ".join(one.split())
                    if 40 <= len(text) <= 300:
                        found[text] = None
    texts = list(found)
    return [texts[place] for place in np.random.default_rng(SEED).permutation(len(texts))[:count].tolist()]


def make(size: int, questions: int, embedder: Embedder | None, sample: int, cache: Path | None = None) -> Meaning:
    """`size` vectors and some of questions, all from one seed."""
    if embedder is None:
        real, kind = _clusters(sample + questions, 384), "synthetic clusters"
    else:
        real, kind = _embedded(embedder, sample + questions, cache), f"grown from {embedder.id}"
    asked, real = real[:questions], real[questions:]
    vectors, topics = _grown(real, size)
    return Meaning(vectors, asked, topics, kind)


def _embedded(embedder: Embedder, count: int, cache: Path | None) -> Floats:
    name = re.sub(r"\W+", "-", embedder.id)
    file = None if cache is None else cache / f"sample-{name}-{count}.npy"
    if file is not None and file.exists():
        return np.load(file)
    texts = sentences(count)
    matrix = np.concatenate([embedder.embed_documents(texts[at : at + 64]) for at in range(0, len(texts), 64)])
    if file is not None:
        np.save(file, matrix)
    return matrix


def _grown(real: Floats, size: int) -> tuple[Floats, NDArray[np.int64]]:
    """Between a real vector and a neighbour of it, plus the difference of two other neighbours."""
    rng = np.random.default_rng((SEED, 4))
    out, topics = np.empty((size, real.shape[1]), np.float32), np.empty(size, np.int64)
    near = _neighbours(real, min(NEIGHBOURS, len(real) - 1))
    for first in range(0, size, STEP):
        count = min(STEP, size - first)
        a, x = rng.integers(len(real), size=count), rng.integers(len(real), size=count)
        b, y = near[a, rng.integers(near.shape[1], size=count)], near[x, rng.integers(near.shape[1], size=count)]
        u = rng.uniform(0, 0.5, size=(count, 1)).astype(np.float32)
        made = real[a] + u * (real[b] - real[a]) + np.float32(NOISE) * (real[x] - real[y])
        out[first : first + count] = made / np.linalg.norm(made, axis=1, keepdims=True)
        topics[first : first + count] = a
    return out, topics


def _neighbours(real: Floats, count: int) -> NDArray[np.int64]:
    out = np.empty((len(real), count), np.int64)
    for first in range(0, len(real), 512):
        scores = real[first : first + 512] @ real.T
        scores[np.arange(len(scores)), np.arange(first, first + len(scores))] = -9
        out[first : first + 512] = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    return out


def _clusters(count: int, dimension: int) -> Floats:
    rng = np.random.default_rng((SEED, 5))
    mean = rng.standard_normal(dimension)
    spread = rng.standard_normal((count, dimension)) / np.arange(1, dimension + 1) ** 0.4
    made = 0.83 * mean / np.linalg.norm(mean) + 0.56 * spread / np.linalg.norm(spread, axis=1, keepdims=True)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
