"""Data sets in BEIR layout: corpus.jsonl, queries.jsonl, qrels/*.tsv, and haystacks.jsonl where questions have their
own candidates. Where qrels/ holds several files, test.tsv alone judges, as BEIR means it; without it, all of them do.

Of a document's metadata, `namespace` and `session` become its scope and `created_at` its time; the rest is stored with
it (other names of these: `entries.py`). A question's `namespace` says where it is searched (without one: in the only
one that there is, or everywhere, if no question names one), `question_date` (or `created_at`) when it was asked,
`category` its stratum. A question marked `abstention` has no answer; one of category `adversarial` is reported, but
apart. A document that is the question itself (the same id, the same text, as in sets of arguments) is no answer to it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, cast

from recollect.domain.errors import InvalidInput, NotFound
from recollect.domain.memory import same_text
from recollect.evals import entries as said

Question = TypeVar("Question")
Kind = Literal["counted", "aside", "unanswerable", "unjudged"]

Entry = TypeVar("Entry", "Document", "Query")

UNDATED = datetime(2024, 1, 1, tzinfo=UTC)
"""The time of everything in a set that knows no times: the same on every machine and every day."""

AHEAD = timedelta(days=1)
"""How far after a question `balanced` still sees (`query.as_of_days`)."""
EARLY = "questions have evidence dated more than a day after they were asked, which balanced leaves out"
MAX_ENTRIES = 5_000_000
MAX_GRADE = 1_000_000
"""What judges by grades counts in C, and not so far as Python does."""
TEST = "test.tsv"
HAYSTACKS = "haystacks.jsonl"


@dataclass(frozen=True, slots=True)
class Document:
    """One entry of the corpus; `content` is the title, where there is one, and the text."""

    id: str
    content: str
    namespace: str | None = None
    session: str | None = None
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Query:
    """One question with its judgements: document id → grade. `candidates` of None means the whole namespace."""

    id: str
    text: str
    kind: Kind = "unjudged"
    stratum: str | None = None
    namespace: str | None = None
    asked_at: datetime | None = None
    candidates: frozenset[str] | None = None
    relevant: Mapping[str, int] = field(default_factory=dict[str, int])
    itself: str | None = None
    """The document that is the question itself, which nobody who asks it wants back."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set as read; the documents stand in the order in which they are remembered."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    corpus_hash: str
    data_hash: str
    empty: int = 0
    """Documents without any text, which cannot be remembered."""
    unknown_judgements: int = 0
    """Judgements of documents that the corpus does not hold."""
    unused: tuple[str, ...] = ()
    """Files of judgements beside test.tsv."""
    repeated: int = 0
    """Documents and questions that are there twice, word by word."""
    timeless: int = 0
    """Documents and questions whose time nobody can read."""
    strangers: int = 0
    """Questions that are judged or have a haystack, but are not in queries.jsonl."""
    nameless: int = 0
    """Names in haystacks that no document and no session has."""
    walls: tuple[str, ...] = ()
    """Metadata that hold every question and its evidence together, as a namespace would."""


def load(folder: Path) -> Dataset:
    """Read a data set; what is wrong with it is named with its file and line."""
    if not folder.is_dir():
        raise NotFound(f"there is no data set {folder}", "give a folder with corpus.jsonl, queries.jsonl and qrels/")
    every = sorted((folder / "qrels").glob("*.tsv"))
    if not every:
        raise NotFound(f"{folder / 'qrels'} holds no .tsv file", "put the judgements there: query-id, corpus-id, score")
    judgements = [one for one in every if one.name == TEST] or every
    every_document = [_document(entry) for entry in _entries(folder / "corpus.jsonl")]
    entries = _entries(folder / "queries.jsonl")
    everything, apart = _scoped(_distinct(every_document, folder / "corpus.jsonl"), entries)
    documents = tuple(in_order(dated([one for one in everything if one.content.strip()])))
    relevant, unknown = _judgements(judgements, {one.id for one in documents})
    _check_haystack_file(folder)
    stored = {one.id for one in documents}
    haystacks, nameless = _haystacks(folder / HAYSTACKS, entries, every_document, stored)
    read = _distinct([_query(entry, relevant, haystacks) for entry in entries], folder / "queries.jsonl")
    queries = tuple(_placed(read, documents))
    if all(one.kind == "unjudged" for one in queries):
        hint = "the ids in qrels/ must be those of queries.jsonl and corpus.jsonl"
        raise InvalidInput(f"{folder}: no question has a judgement of a document that is there", hint)
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", *judgements, folder / HAYSTACKS]
    return Dataset(
        name=folder.resolve().name,
        documents=documents,
        queries=queries,
        corpus_hash=hash_of(files[:1]) + ("" if apart else " everywhere"),
        data_hash=hash_of([one for one in files if one.is_file()]),
        empty=len(everything) - len(documents),
        unknown_judgements=unknown,
        unused=tuple(one.name for one in every if one not in judgements),
        repeated=len(every_document) - len(everything) + len(entries) - len(read),
        timeless=sum(_is_timeless(one) for one in everything) + sum(map(_undated, entries)),
        strangers=len((relevant.keys() | haystacks.keys()) - {one.id for one in queries}),
        nameless=nameless,
        walls=_walls(entries, documents, relevant),
    )


def remarks(dataset: Dataset) -> list[str]:
    """What a reader of the figures should know about the data, in words."""
    homes = {one.id: one.namespace for one in dataset.documents}
    lost = sum(any(not _reaches(one, id, homes) for id in one.relevant) for one in dataset.queries)
    twice = _copied(dataset)
    wordless = sum(not one.text.strip() and one.kind != "unjudged" for one in dataset.queries)
    times = {one.id: one.created_at for one in dataset.documents}
    early = sum(any(is_after(times[id], one.asked_at) for id in one.relevant) for one in dataset.queries)
    everywhere = sum(one.candidates is None and one.kind != "unjudged" for one in dataset.queries)
    told = [
        f"judged by {TEST} alone, not by {', '.join(dataset.unused)}" if dataset.unused else "",
        f"{dataset.empty} documents without text were left out" if dataset.empty else "",
        f"{dataset.unknown_judgements} judgements name documents that the corpus does not hold"
        if dataset.unknown_judgements
        else "",
        f"{dataset.repeated} lines say again what another one says" if dataset.repeated else "",
        f"{dataset.timeless} times could not be read" if dataset.timeless else "",
        f"{dataset.strangers} questions of qrels/ or haystacks.jsonl are not in queries.jsonl"
        if dataset.strangers
        else "",
        f"{dataset.nameless} names in haystacks are those of no document and no session" if dataset.nameless else "",
        f"{wordless} questions have no words" if wordless else "",
        f"every question shares {' and '.join(dataset.walls)} with its evidence: "
        "call it namespace if nothing else may be found"
        if dataset.walls
        else "",
        f"{everywhere} questions have no haystack and are asked of everything"
        if everywhere and any(one.candidates is not None for one in dataset.queries)
        else "",
        f"{lost} questions have evidence in another namespace or outside their haystack, where they cannot find it"
        if lost
        else "",
        f"{early} {EARLY}" if early else "",
        f"{twice} questions have evidence that stands in the corpus twice, word by word, of which balanced returns one"
        if twice
        else "",
    ]
    return [one for one in told if one]


def _reaches(query: Query, id: str, homes: Mapping[str, str | None]) -> bool:
    return homes[id] == query.namespace and (query.candidates is None or id in query.candidates)


def _walls(
    entries: Sequence[Mapping[str, Any]], documents: Sequence[Document], relevant: Mapping[str, Mapping[str, int]]
) -> tuple[str, ...]:
    """Fields of questions and documents that part a set without namespaces, and never a question from its evidence."""
    told = [(said.metadata(one), relevant[id]) for one in entries if (id := said.id_of(one)) in relevant]
    if not told or any(one.namespace is not None for one in documents):
        return ()
    homes = {one.id: one.metadata for one in documents}
    names = [
        name
        for name in told[0][0]
        if len({str(found.get(name)) for found in homes.values()}) > 1
        and all(name in asked and name in homes[id] for asked, judged in told for id in judged)
        and all(homes[id][name] == asked[name] for asked, judged in told for id in judged)
    ]
    return tuple(sorted(names))


def is_after(made: datetime | None, asked: datetime | None) -> bool:
    return made is not None and asked is not None and made - asked > AHEAD


def _copied(dataset: Dataset) -> int:
    """Questions that may find a copy of their evidence in its place."""
    texts = {one.id: (one.namespace, same_text(one.content)) for one in dataset.documents}
    alike: dict[tuple[str | None, str], set[str]] = {}
    for id, text in texts.items():
        alike.setdefault(text, set()).add(id)
    return sum(
        any(
            len(alike[texts[id]] if one.candidates is None else alike[texts[id]] & one.candidates) > 1
            for id in one.relevant
        )
        for one in dataset.queries
    )


def _scoped(documents: Sequence[Document], questions: Sequence[Mapping[str, Any]]) -> tuple[list[Document], bool]:
    """The documents, and whether their namespaces part them: where no question names one, all are asked everywhere."""
    named = any(said.name(said.metadata(entry).get(said.NAMESPACE)) is not None for entry in questions)
    if named or len({one.namespace for one in documents}) <= 1:
        return list(documents), True
    sessions = [None if one.session is None else f"{one.namespace} {one.session}" for one in documents]
    return [
        replace(one, namespace=None, session=session) for one, session in zip(documents, sessions, strict=True)
    ], False


def _placed(queries: Sequence[Query], documents: Sequence[Document]) -> list[Query]:
    """Where all documents share a namespace, questions that name none, or one that no document has, are asked there;
    and each knows the document that is itself."""
    spaces = {one.namespace for one in documents}
    only = next(iter(spaces)) if len(spaces) == 1 else None
    texts = {one.id: one.content.split() for one in documents}
    placed = [one if one.namespace in spaces or len(spaces) > 1 else replace(one, namespace=only) for one in queries]
    return [replace(one, itself=one.id) if _is_itself(one, texts) else one for one in placed]


def _is_itself(query: Query, texts: Mapping[str, list[str]]) -> bool:
    """The same id can be chance, and a title may stand before the text: it ends with the words of the question."""
    words = query.text.split()
    return bool(words) and query.id not in query.relevant and texts.get(query.id, [])[-len(words) :] == words


def dated(documents: Sequence[Document]) -> list[Document]:
    """Where a session has times, a turn without one was said when the one before it was, or when the session began."""
    times: dict[tuple[str | None, str], datetime] = {}
    for one in documents:
        if one.session is not None and one.created_at is not None:
            times.setdefault((one.namespace, one.session), one.created_at)
    found: list[Document] = []
    for one in documents:
        if one.session is not None and (known := one.created_at or times.get((one.namespace, one.session))):
            times[one.namespace, one.session] = known
            one = replace(one, created_at=known)
        found.append(one)
    return found


def in_order(documents: Sequence[Document]) -> list[Document]:
    """As they were lived: namespace by namespace, sessions by their start, the turns of a session as in the file."""
    namespaces: dict[str | None, int] = {}
    begins: dict[tuple[str | None, str], tuple[float, int]] = {}
    for place, one in enumerate(documents):
        namespaces.setdefault(one.namespace, len(namespaces))
        if one.session is not None:
            moment, first = begins.get((one.namespace, one.session), (_seconds(one), place))
            begins[one.namespace, one.session] = (min(moment, _seconds(one)), first)

    def place_of(numbered: tuple[int, Document]) -> tuple[int, float, int, int]:
        place, one = numbered
        start = (_seconds(one), place) if one.session is None else begins[one.namespace, one.session]
        return (namespaces[one.namespace], *start, place)

    return [one for _, one in sorted(enumerate(documents), key=place_of)]


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line; blank lines are passed over."""
    return (entry for _, entry in _numbered(path))


def _numbered(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same, each with the number of its line."""
    if not path.is_file():
        packed = path.parent / f"{path.name}.gz"
        raise NotFound(f"there is no file {path}", f"unpack {packed.name}" if packed.is_file() else "check the path")
    with _text_of(path) as file:
        for number, line in enumerate(file, start=1):
            if number > MAX_ENTRIES:
                raise InvalidInput(f"{path} has more than {MAX_ENTRIES} lines", "split the data set")
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                raise InvalidInput(f"{path}:{number} is not JSON", "one JSON object on each line") from None
            if not isinstance(entry, dict):
                raise InvalidInput(f"{path}:{number} is not an object", "one JSON object on each line")
            yield number, cast(dict[str, Any], entry)


@contextmanager
def _text_of(path: Path) -> Generator[TextIO]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8", "save it as UTF-8") from None


def _entries(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, each with an id."""
    found: list[dict[str, Any]] = []
    for number, entry in _numbered(path):
        if not said.id_of(entry):
            raise InvalidInput(f"{path}:{number} has no _id", "every document and every question needs one")
        found.append(entry)
    return found


def hash_of(files: Sequence[Path]) -> str:
    """SHA-256 over names and contents."""
    total = hashlib.sha256()
    for path in files:
        total.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def sampled(queries: Sequence[Question], limit: int | None) -> list[Question]:
    """At most `limit` questions, evenly spread over the set, the same ones each time."""
    if limit is None or limit >= len(queries):
        return list(queries)
    return [queries[place * len(queries) // limit] for place in range(limit)]


def _document(entry: Mapping[str, Any]) -> Document:
    metadata = said.metadata(entry)
    title, text = str(entry.get("title") or "").strip(), said.text(entry, said.DOCUMENT_TEXT)
    # A title carries weight: it comes first, unless the text starts with it anyway.
    content = f"{title}\n{text}" if title and not text.startswith(title) else text
    (in_session, session), (told_by, created_at) = said.session(metadata), said.made_at(metadata)
    # A time that nobody can read stays where it stood.
    taken = {said.NAMESPACE, in_session, *((told_by,) if created_at or not metadata.get(told_by) else ())}
    left = {name: value for name, value in metadata.items() if name not in taken}
    return Document(
        id=said.id_of(entry),
        content=content,
        namespace=said.name(metadata.get(said.NAMESPACE)),
        session=session,
        created_at=created_at,
        metadata={"title": title, **left} if title else left,
    )


def _query(
    entry: Mapping[str, Any], relevant: Mapping[str, dict[str, int]], haystacks: Mapping[str, frozenset[str]]
) -> Query:
    metadata, id = said.metadata(entry), said.id_of(entry)
    known = relevant.get(id, {})
    kind: Kind = "counted" if known else "unjudged"
    if said.is_aside(metadata) and known:
        kind = "aside"
    if said.is_unanswerable(id, metadata):
        kind = "unanswerable"
    return Query(
        id=id,
        text=said.text(entry, said.QUERY_TEXT),
        kind=kind,
        stratum=said.stratum(metadata),
        namespace=said.name(metadata.get(said.NAMESPACE)),
        asked_at=said.asked_at(metadata)[1],
        candidates=haystacks.get(id),
        relevant=known,
    )


def _judgements(files: Sequence[Path], known: set[str]) -> tuple[dict[str, dict[str, int]], int]:
    """Grades above 0, by question; judgements of unknown documents are counted, not used."""
    relevant: dict[str, dict[str, int]] = {}
    unknown = 0
    for path in files:
        divided: str | None = None
        with _text_of(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                first, divided = divided is None, divided or ("\t" if "\t" in line else " ")
                cells = line.rstrip().split("\t" if divided == "\t" else None)
                if first and _is_header(cells):
                    continue
                try:
                    query, document, grade = _judgement(cells)
                except (ValueError, OverflowError):
                    hint = "each line is query-id, corpus-id and score, separated by tabs"
                    raise InvalidInput(f"{path}:{number} is no judgement", hint) from None
                if document in known:
                    relevant.setdefault(query, {})[document] = grade
                unknown += grade > 0 and document not in known
    # What is judged twice counts as it was judged last, also where that takes a judgement back.
    above = {query: {id: grade for id, grade in judged.items() if grade > 0} for query, judged in relevant.items()}
    return {query: judged for query, judged in above.items() if judged}, unknown


def _judgement(cells: Sequence[str]) -> tuple[str, str, int]:
    """Question, document and grade, part of one counted as a whole; in TREC's files the second column says nothing."""
    trec = len(cells) == 4 and cells[1].strip().upper() in ("0", "Q0")
    query, document, grade = (cells[0], *cells[2:]) if trec else cells[:3]
    whole = math.ceil(float(grade))
    if whole > MAX_GRADE:
        raise ValueError(f"grades end at {MAX_GRADE}")
    return query.strip(), document.strip(), whole


def _is_header(cells: Sequence[str]) -> bool:
    """Names of columns, whatever they are called: no grade is a word."""
    return len(cells) in (3, 4) and not any(sign.isdigit() for cell in cells[2:] for sign in cell)


def _haystacks(
    path: Path, entries: Sequence[Mapping[str, Any]], documents: Sequence[Document], stored: set[str]
) -> tuple[dict[str, frozenset[str]], int]:
    """For each question the stored documents it may find, from the file or the question itself: named themselves, or by
    their session; and how many names are those of nothing."""
    own = ((said.id_of(one), said.candidates(said.metadata(one), said.HAYSTACK)) for one in entries)
    named = {id: names for id, names in own if names is not None}
    for number, entry in _numbered(path) if path.is_file() else ():
        if (found := said.haystack(entry)) is None:
            raise InvalidInput(f"{path}:{number} lacks its query or its candidates", 'use {"query", "sessions": […]}')
        named[found[0]] = found[1]
    by_name: dict[str, set[str]] = {}
    for one in documents:
        for name in (one.id,) if one.session is None else (one.id, one.session):
            by_name.setdefault(name, set()).update({one.id} & stored)
    nothing = {name for names in named.values() for name in names if name not in by_name}
    return {
        query: frozenset[str]().union(*(by_name.get(name, set[str]()) for name in names))
        for query, names in named.items()
    }, len(nothing)


def _check_haystack_file(folder: Path) -> None:
    """Another name of it would be passed over, and every question asked of everything."""
    wrong = next((one for one in sorted(folder.glob("haystack*.json*")) if one.name != HAYSTACKS), None)
    if wrong is not None and not (folder / HAYSTACKS).is_file():
        raise InvalidInput(f"{wrong} is not read", f"unpack it, or call it {HAYSTACKS}, an object a line")


def _is_timeless(one: Document) -> bool:
    """Whether a document tells its time, but so that nobody can read it."""
    return one.created_at is None and any(one.metadata.get(field) for field in said.MADE_AT)


def _undated(entry: Mapping[str, Any]) -> bool:
    """Whether a question tells when it was asked, but so that nobody can read it."""
    told, found = said.asked_at(said.metadata(entry))
    return told is not None and found is None


def _seconds(one: Document) -> float:
    return one.created_at.timestamp() if one.created_at is not None else float("-inf")


def _distinct(entries: Sequence[Entry], path: Path) -> list[Entry]:
    """Each once; two that share an id and differ cannot both be meant."""
    kept: dict[str, Entry] = {}
    for one in entries:
        if kept.setdefault(one.id, one) != one:
            raise InvalidInput(f"{path}: the id {one.id!r} occurs twice, with different texts", "ids must be unique")
    return list(kept.values())
