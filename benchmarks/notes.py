"""How well sections of Markdown notes are found by titles, headings and words (decision 16).

`python -m benchmarks.notes FOLDER SET` makes a data set of all notes in the folder: its documents are their sections,
as the importer reads them, its questions are made of what they look for. `SET` can be given to `recollect eval` too;
here two systems are asked (`--without` and `--with`), and each kind of question is told with the difference between
them. The title of a note is that of its front matter, the heading above all its sections, or the name of its file.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recollect import settings
from recollect.domain.memory import same_text
from recollect.evals import building, datasets, significance
from recollect.evals.asking import ask_all
from recollect.evals.bench import Case, cases_of, chosen_embedder, opened
from recollect.evals.measures import Values
from recollect.evals.systems import system
from recollect.evals.vectors import file_of
from recollect.importers import markdown
from recollect.stages.sentences import sentences
from recollect.writing import Draft

SEED = 7
MOST = 300
"""Questions of a kind, drawn by chance."""
DEPTH = 10
MIN_SENTENCE_WORDS = 8
COMMON = 0.05
_WORD = re.compile(r"[^\W\d_]{4,}")
_FENCED = re.compile(r"^\s*(```+|~~~+).*?^\s*\1", re.MULTILINE | re.DOTALL)
_PROSE = re.compile(r"^(?![#>|<:!\-*\s]).+(?:\n(?![#>|<\s]).+)*", re.MULTILINE)
_FOR_RENDERERS = re.compile(r"\{[^}]*\}|<[^>]*>")
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[`*]")


class Asked(NamedTuple):
    """A question and the sections that answer it."""

    kind: str
    text: str
    relevant: Sequence[str]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a note: its headings, the last one its own, and the words of its text."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    title: str
    headings: Sequence[str]
    words: frozenset[str]


def main(arguments: list[str] | None = None) -> int:
    """Make the set, ask, print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("set", type=Path, metavar="SET")
    parser.add_argument("--without", default="balanced@signals.headings.weight=0", metavar="PROFILE")
    parser.add_argument("--with", default="balanced", metavar="PROFILE", dest="tried")
    given = parser.parse_args(arguments)
    write(sections(given.folder), given.set)
    cases, first, second = ask(given.set, given.without, given.tried)
    print("kind\tquestions\tfirst\tchange\tany@5\tchange\tmrr@10\tchange")
    for kind in (*dict.fromkeys(case.stratum for case in cases), None):
        chosen = [kind in (case.stratum, None) for case in cases]
        print(f"{kind or 'all'}\t{sum(chosen)}\t" + "\t".join(row(first[chosen], second[chosen])))
    return 0


def sections(folder: Path) -> list[Section]:
    """All sections of a folder."""
    found: list[Section] = []
    for file in sorted(folder.rglob("*")):
        if not markdown.sniff(file.name, ""):
            continue
        with file.open(encoding="utf-8", errors="replace") as stream:
            name = str(file.relative_to(folder))
            drafts = [one for one in markdown.read(stream, name) if isinstance(one, Draft)]
        title = title_of(file, [one.metadata for one in drafts])
        for draft in drafts:
            headings = [plain(one) for one in draft.metadata["headings"]]
            held = frozenset(words(draft.content))
            found.append(Section(f"s{len(found)}", draft.content, draft.metadata, title, headings, held))
    return found


def title_of(file: Path, metadata: Sequence[Mapping[str, Any]]) -> str:
    front = next((one["front_matter"].get("title") for one in metadata if "front_matter" in one), None)
    tops = {one["headings"][0] if one["headings"] else "" for one in metadata}
    stem = file.parent.name if file.stem.lower() in ("index", "readme") else file.stem
    return plain(str(front or (tops.pop() if len(tops) == 1 else "") or re.sub(r"[-_]+", " ", stem)))


def plain(text: str) -> str:
    """Without the marks of Markdown and what is told to a renderer."""
    return " ".join(_MARKS.sub(r"\1", _FOR_RENDERERS.sub(" ", text)).split())


def words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


class Asking:
    """Makes questions; each is asked where it was made of one section alone."""

    def __init__(self, every: Sequence[Section]) -> None:
        self.every = every
        self.chance = random.Random(SEED)
        self.holders = Counter(word for one in every for word in one.words)

    def all(self) -> Iterator[Asked]:
        same: dict[str, list[str]] = defaultdict(list)
        for one in self.every:
            same[same_text(one.text)].append(one.id)
        kinds: Mapping[str, Callable[[Section], str]] = {
            "heading": lambda one: one.headings[-1] if one.headings else "",
            "title+heading": lambda one: self.under(one, "{} {}"),
            "asked": lambda one: self.under(one, "What does the page on {} say about {}?"),
            "upper+heading": self.upper,
            "body": self.body,
            "title+body": self.titled,
            "sentence": self.sentence,
        }
        for kind, made in kinds.items():
            yield from self.drawn(
                [Asked(kind, text, same[same_text(one.text)]) for one in self.every if (text := made(one))]
            )
        notes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for one in self.every:
            notes[one.metadata["path"], one.title].append(one.id)
        yield from self.drawn([Asked("title", title, ids) for (_, title), ids in notes.items()])

    def drawn(self, asked: Sequence[Asked]) -> list[Asked]:
        times = Counter(one.text.lower() for one in asked)
        alone = [one for one in asked if times[one.text.lower()] == 1]
        return self.chance.sample(alone, min(len(alone), MOST))

    def under(self, one: Section, form: str) -> str:
        """The title of the note and the section's own heading."""
        own = one.headings[-1] if one.headings else ""
        return form.format(one.title, own) if own and own.lower() != one.title.lower() else ""

    def upper(self, one: Section) -> str:
        """Two headings, one above the other, none of them the title."""
        two = one.headings[-2:]
        return " ".join(two) if len(two) == 2 and one.title not in two else ""

    def body(self, one: Section) -> str:
        """Three of the rarest words that another section holds too."""
        rarest = sorted((self.holders[word], word) for word in one.words if self.holders[word] > 1)[:10]
        return " ".join(self.chance.sample([word for _, word in rarest], 3)) if len(rarest) >= 3 else ""

    def titled(self, one: Section) -> str:
        """The title and two words that are not common."""
        most = max(5, COMMON * len(self.every))
        others = one.words - set(words(one.title))
        known = sorted(word for word in others if 2 < self.holders[word] <= most)
        return f"{one.title} {' '.join(self.chance.sample(known, 2))}" if len(known) >= 2 else ""

    def sentence(self, one: Section) -> str:
        """The first sentence without every third word."""
        prose = _PROSE.search(_FENCED.sub("", one.text))
        if prose is None:
            return ""
        start, end = next(iter(sentences(prose.group())))
        said = plain(prose.group()[start:end]).split()
        kept = [word for place, word in enumerate(said) if place % 3 != 2]
        return " ".join(kept) if len(said) >= MIN_SENTENCE_WORDS else ""


def write(every: Sequence[Section], target: Path) -> None:
    """The data set in BEIR layout."""
    asked = list(enumerate(Asking(every).all()))
    corpus = [json.dumps({"_id": one.id, "text": one.text, "metadata": dict(one.metadata)}) for one in every]
    queries = [json.dumps({"_id": f"q{n}", "text": one.text, "metadata": {"category": one.kind}}) for n, one in asked]
    judged = [f"q{number}\t{id}\t1" for number, one in asked for id in one.relevant]
    (target / "qrels").mkdir(parents=True, exist_ok=True)
    for name, lines in (
        ("corpus.jsonl", corpus),
        ("queries.jsonl", queries),
        ("qrels/test.tsv", ["query-id\tcorpus-id\tscore", *judged]),
    ):
        (target / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def ask(folder: Path, *profiles: str) -> tuple[list[Case], Values, Values]:
    """For each case and system: first or not, among the first five or not, 1 / the rank of the first that answers."""
    chosen = settings.load(store=":memory:")
    embedder, _ = chosen_embedder(chosen, None)
    cache = building.cache_folder(chosen)
    dataset = datasets.load(folder)
    store, places = building.prepared(dataset, embedder, chosen, cache)
    cases = cases_of(dataset, places, dataset.queries)
    vectors = None if embedder is None else file_of(cache / "vectors", embedder.id)
    values: list[Values] = []
    with opened(str(store), chosen, cases, {}, embedder, name=dataset.name, vectors=vectors) as bench:
        for profile in profiles:
            name, *options = profile.split("@")
            pairs = dict(one.split("=", 1) for one in options)
            tried = system(name, {path: json.loads(value) for path, value in pairs.items()}, chosen.profiles)
            answers = ask_all(bench, tried, cases, DEPTH, as_shipped=False)
            ranks = [_rank(answers[case.id].ranking, case) for case in cases]
            values.append(np.array([[rank == 1, 1 <= rank <= 5, 1 / rank if rank else 0] for rank in ranks], float))
    return cases, values[0], values[1]


def _rank(ranking: Sequence[str], case: Case) -> int:
    return next((rank for rank, id in enumerate(ranking, start=1) if id in case.relevant), 0)


def row(first: Values, second: Values) -> Iterator[str]:
    """Each measure with the paired difference and its interval."""
    gaps = significance.differences(first, second)
    for before, after, gap in zip(first.mean(axis=0), second.mean(axis=0), gaps, strict=True):
        yield f"{before:.3f} → {after:.3f}"
        yield f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


if __name__ == "__main__":
    sys.exit(main())
