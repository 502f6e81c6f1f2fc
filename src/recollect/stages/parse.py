"""Query text → Question. Every text has a reading: what is not well-formed is read as plain words, never refused.

    group   := branch { OR branch }
    branch  := { unit | "(" group ")" | AND | NOT operand | -operand | field }
    unit    := word | "several words" | prefix*

AND binds tightest; words that merely stand side by side are joined by the profile's default operator. NOT and minus
take their operand out of their whole branch, wherever they stand in it: `a NOT b c` is (a or c) without b. Minus words
and nothing else are taken from everything in scope, beside fields from what they let through; a leading NOT falls away
and leaves its words, and so does a negation that is a branch of its own: `NOT b` is `b`, `a OR -b` is (a or b). In a
sentence or a command line no minus before a word excludes (see `minus`). An operator without an operand on the side
where it needs one is a word. Fields hold for the whole query, wherever they stand (see `fields`).

A passage is no query: in a text of more than 64 words, most of which stand side by side, quotes and operators are
those of its author. It is read as its plain words, beside its fields.

Bounds: the first 4,096 characters are read, of prose 8,192 of both ends; 64 words in all, those of phrases included;
256 where nothing but plain words is asked for, of which 64 may be compounds (`read-only`); 4 prefixes of two characters
or more; brackets 8 deep. What is left out is told in `Question.notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

from recollect.domain.profile import Range
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term, Unit, units, unwanted
from recollect.domain.question import Filter, Mode, Question, SortBy, alternatives
from recollect.domain.scripts import SPELT_PIECE, has_unspaced, letters, pieces_of
from recollect.stages.cleaning import clean
from recollect.stages.fields import Field, narrow
from recollect.stages.intent import intents
from recollect.stages.lexing import (
    MAX_DEPTH,
    MINUS,
    Lexeme,
    humps,
    is_findable,
    lex,
    pieces,
    plain_words,
    spellings,
    take_fields,
)
from recollect.stages.minus import flags
from recollect.stages.prose import ends
from recollect.stages.stopwords import without_stop_words
from recollect.stages.temporal import window
from recollect.stages.unparse import nesting, unparse

__all__ = ["Aliases", "Default", "expand", "join", "parse", "unparse"]

MAX_CHARACTERS = 4096
MAX_PROSE = 8192
MAX_WORDS = 64
MAX_TERMS = 256
"""Plain words, any of which may occur: each is looked up by itself, which costs an index little."""
WORDS_PER_SIGN = 8
"""A text with fewer quotes and operators than one to so many words outside of quotes is no query."""
PASSAGE = f"quotes and operators mean nothing in a text of more than {MAX_WORDS} words"
MAX_PREFIXES = 4
MAX_TOLD = 8
MAX_RUN = 16
"""So many letters of a script without spaces are one word of a query with quotes or operators."""

Default = Literal["or", "and"]
Aliases = Mapping[str, str | Sequence[str]]

NO_ALIASES: Aliases = {}


def parse(
    text: str,
    *,
    now: datetime,
    filter: Filter,
    limit: int,
    mode: Mode,
    sort_by: SortBy,
    budget_tokens: int | None = None,
    aliases: Aliases = NO_ALIASES,
    unasked: bool = False,
    prose: bool = False,
    default: Default = "or",
    stopwords: bool = True,
    identifiers: bool = False,
    temporal: bool = False,
    intent: bool = False,
    as_of_days: Annotated[float, Range(0, 36500)] | None = None,
) -> Question:
    """Read a query. The options from `default` on are those of a profile's [query] table.

    `identifiers`: names in code are also looked for by their parts, and as one word (retryPolicy, retry_policy).
    `as_of_days` leaves out memories dated more than so many days after the question: it is asked as of its date.
    `prose`: a prompt, in which nothing is an operator, a quote or a field, and of which both ends are read.
    """
    text = clean(text)
    read, notes = _as_far_as_read(text, prose)
    lexemes, fields, told = _lexed(read, prose)
    lexemes, operators = _settle_operators(lexemes, beside_fields=bool(fields))
    drops_alone = _drops_alone(lexemes)
    bare = not operators and not any(one.kind == "phrase" for one in lexemes)
    lexemes = [part for one in lexemes for part in (_in_pieces(one) if bare else [_shortened(one)])]
    words = _words([part for one in lexemes for part in _humped(one)] if bare and identifiers else lexemes)
    lexemes = _searched_for(lexemes, stopwords, identifiers) if bare else lexemes
    pairs = _alias_pairs(aliases)
    most = MAX_TERMS if bare and default == "or" and not prose else MAX_WORDS
    budget = _Budget("or" if drops_alone else default, most)
    tree = budget.read(_unbracketed(lexemes), ()) if drops_alone else budget.read(lexemes, pairs)
    excluded = tree if drops_alone else unwanted(tree)
    return Question(
        text=text,
        now=now,
        filter=_as_of(narrow(filter, fields), now, as_of_days),
        query=None if drops_alone else tree,
        unwanted=excluded,
        plain=bare and not fields,
        bare=bare,
        words=() if drops_alone else words,
        limit=limit,
        unasked=unasked,
        prose=prose,
        cut=budget.cut,
        mode=mode,
        sort_by=sort_by,
        budget_tokens=budget_tokens,
        aliases=pairs,
        window=None if not temporal or (prose and budget.cut) else window(read, now),  # a log's times are not asked for
        intents=intents(read) if intent else (),
        notes=(*notes, *_left_out(excluded), *told, *budget.notes),
    )


def _as_of(filter: Filter, now: datetime, days: float | None) -> Filter:
    if days is None:
        return filter
    if now > datetime.max.replace(tzinfo=now.tzinfo) - timedelta(days=days):
        return filter
    end = now + timedelta(days=days)
    return filter if filter.before is not None and filter.before <= end else replace(filter, before=end)


def expand(term: Term, aliases: Sequence[tuple[str, str]]) -> list[Unit]:
    """The term and what its aliases add: a word for one word, a phrase for several."""
    key = term.text.casefold()
    return [term, *(_alias_unit(other) for word, other in aliases if word == key)]


def join(operator: Default, nodes: Sequence[Node]) -> Node | None:
    """One node of several: flat, without doubles (in any case), and None when there is nothing to join."""
    kind = Or if operator == "or" else And
    flat: dict[object, Node] = {}
    for node in nodes:
        for part in node.parts if isinstance(node, kind) else (node,):
            flat.setdefault(_sameness(part), part)
    parts = tuple(flat.values())
    return kind(parts) if len(parts) > 1 else next(iter(parts), None)


def _sameness(node: Node) -> object:
    if isinstance(node, Term | Prefix):
        return type(node), node.text.casefold()
    return node


def _cut(text: str, limit: int) -> str:
    """The beginning of a text, at the last space so that no word is cut in two (if there is one)."""
    if len(text) <= limit:
        return text
    space = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    return text[: space if space > limit // 2 else limit]


def _as_far_as_read(text: str, prose: bool) -> tuple[str, list[str]]:
    """As much of a text as is read, and a note where that is not all."""
    read = ends(text, MAX_PROSE) if prose else _cut(text, MAX_CHARACTERS)
    if len(read) == len(text):
        return text, []
    some = f"{MAX_PROSE} characters of both ends" if prose else f"the first {MAX_CHARACTERS} characters"
    return read, [f"only {some} were read"]


def _lexed(text: str, prose: bool) -> tuple[list[Lexeme], list[Field], list[str]]:
    """The lexemes of a text and its fields, and what was not taken as a sign of a query although it looks like one."""
    if prose:
        return _plainly(lex(text)), [], []
    lexemes, fields = take_fields(lex(text))
    if not _is_passage(lexemes):
        return lexemes, fields, _told(flags(text))
    return (_plainly(lexemes), fields, [PASSAGE]) if _signs(lexemes) else (lexemes, fields, [])


def _plainly(lexemes: list[Lexeme]) -> list[Lexeme]:
    """The words of prose: quotes, brackets and operators only stand between them."""
    found: list[Lexeme] = []
    for one in lexemes:
        if one.kind in ("and", "or", "not"):
            found.append(Lexeme("word", (one.kind,)))
        elif one.kind == "field":
            found.extend(plain_words(" ".join(one.words)))
        elif one.kind in ("word", "prefix", "phrase"):
            found.extend(Lexeme("word", (word,)) for word in one.words)
    return found


def _is_passage(lexemes: list[Lexeme]) -> bool:
    """Whether a text is so long, and quotes and operators so seldom in it, that they are no part of a query."""
    loose = sum(one.kind in ("word", "prefix") for one in lexemes)
    quoted = sum(len(one.words) for one in lexemes if one.kind == "phrase")
    return loose + quoted > MAX_WORDS and loose > quoted and loose >= WORDS_PER_SIGN * _signs(lexemes)


def _signs(lexemes: list[Lexeme]) -> int:
    return sum(one.kind in ("phrase", "and", "or", "not", "minus") for one in lexemes)


_NEEDS_RIGHT = frozenset({"word", "prefix", "phrase", "open"})


def _settle_operators(lexemes: list[Lexeme], beside_fields: bool) -> tuple[list[Lexeme], bool]:
    """Keep the operators that have what they join, turn the others into words; and whether any was kept."""
    settled: list[Lexeme] = []
    operators = False
    for place, one in enumerate(lexemes):
        before = settled[-1].kind if settled else "open"
        after = lexemes[place + 1].kind if place + 1 < len(lexemes) else "close"
        negates = after in ("not", "minus") and place + 2 < len(lexemes) and lexemes[place + 2].kind in _NEEDS_RIGHT
        has_left = before in ("word", "prefix", "phrase", "close")
        if one.kind == "not" and after in _NEEDS_RIGHT:
            # A leading NOT is dropped; after AND or OR, or beside fields, it has something to stand against.
            if has_left or before in ("and", "or") or (beside_fields and not settled):
                settled.append(MINUS)
                operators = True
        elif one.kind in ("and", "or", "not"):
            if one.kind != "not" and has_left and (after in _NEEDS_RIGHT or negates):
                settled.append(one)
                operators = True
            else:
                settled.append(Lexeme("word", (one.kind,)))
        elif one.kind != "minus" or after in _NEEDS_RIGHT:
            settled.append(one)
            operators = operators or one.kind == "minus"
    return settled, operators


def _drops_alone(lexemes: list[Lexeme]) -> bool:
    """Whether there are words, and every one of them is to be taken out."""
    wanted, dropped = _wanted_and_not(lexemes)
    return bool(dropped) and not wanted


def _unbracketed(lexemes: list[Lexeme]) -> list[Lexeme]:
    """Exclusions without the brackets around them, which mean nothing: `(-a) -b`. Those behind a minus stay."""
    found: list[Lexeme] = []
    kept: list[bool] = []
    for place, one in enumerate(lexemes):
        if one.kind == "open":
            kept.append(any(kept) or (place > 0 and lexemes[place - 1].kind == "minus"))
        if one.kind not in ("open", "close") or (kept.pop() if one.kind == "close" else kept[-1]):
            found.append(one)
    return found


def _words(lexemes: list[Lexeme]) -> tuple[str, ...]:
    """The words that are asked for, lower-cased; those behind a minus are not, unless there are no others."""
    wanted, dropped = _wanted_and_not(lexemes)
    return tuple(wanted or dropped)


def _wanted_and_not(lexemes: list[Lexeme]) -> tuple[list[str], list[str]]:
    """The words, lower-cased, and those behind a minus."""
    found: list[str] = []
    unwanted: list[str] = []
    negated_at: int | None = None
    depth = 0
    for place, one in enumerate(lexemes):
        depth += {"open": 1, "close": -1}.get(one.kind, 0)
        negative = negated_at is not None or (place > 0 and lexemes[place - 1].kind == "minus")
        if one.kind == "open" and negative and negated_at is None:
            negated_at = depth - 1
        elif one.kind == "close" and negated_at == depth:
            negated_at = None
        elif one.kind in ("word", "prefix", "phrase"):
            (unwanted if negative else found).extend(word.lower() for word in one.words)
    return found, unwanted


def _left_out(excluded: Node | None) -> list[str]:
    return [] if excluded is None else [f"left out what matches: {unparse(excluded)}"]


def _told(flags: tuple[str, ...]) -> list[str]:
    """What excludes nothing although a minus stands before it."""
    if not flags:
        return []
    ways = " ".join(f"NOT {word}" for word in flags[:MAX_TOLD])
    return [f"a minus leaves nothing out in a sentence or a command line; to leave words out, write: {ways}"]


def _in_pieces(one: Lexeme) -> list[Lexeme]:
    """A run of a script without spaces asks for its pieces; who writes operators or quotes means it as it is."""
    if one.kind != "word" or not has_unspaced(one.words[0]):
        return [_shortened(one)]
    parts = [part for part in pieces_of(one.words[0]) if is_findable(part)]
    return [word for part in parts for word in ([Lexeme("word", (part,))] if has_unspaced(part) else plain_words(part))]


def _humped(one: Lexeme) -> list[Lexeme]:
    """The parts of a camelCase word instead of it: memories that hold it in any spelling hold them."""
    if one.kind != "word" or not humps(one.words[0]):
        return [one]
    return [Lexeme("word", (part,)) for piece in pieces(one.words[0]) for part in humps(piece) or [piece]]


def _spelt(one: Lexeme) -> list[Lexeme]:
    """A name in code with its other spellings."""
    others = spellings(one.words[0]) if one.kind == "word" else []
    return [one, *(Lexeme("word", (other,)) for other in others)]


def _shortened(one: Lexeme) -> Lexeme:
    """Runs of a script without spaces up to so many letters, which are as telling as all of them."""
    cuts = [(word, letters(word)) for word in one.words]
    if all(len(places) <= MAX_RUN for _, places in cuts):
        return one
    return Lexeme(one.kind, tuple(word if len(places) <= MAX_RUN else word[: places[MAX_RUN]] for word, places in cuts))


def _searched_for(lexemes: list[Lexeme], stopwords: bool, identifiers: bool) -> list[Lexeme]:
    """What a text without quotes and operators asks for: names in all spellings, and no stop words."""
    spelt = [part for one in lexemes for part in _spelt(one)] if identifiers else lexemes
    return _drop_stop_words(spelt) if stopwords else spelt


def _drop_stop_words(lexemes: list[Lexeme]) -> list[Lexeme]:
    kept = without_stop_words([one.words[0] for one in lexemes if one.kind in ("word", "prefix")])
    allowed = frozenset(kept)
    return [one for one in lexemes if one.kind != "word" or one.words[0] in allowed]


def _alias_pairs(aliases: Aliases) -> tuple[tuple[str, str], ...]:
    """Aliases as pairs of a folded word and what it also means; keys of several words could match no term."""
    pairs: list[tuple[str, str]] = []
    for key, values in aliases.items():
        word = clean(key).strip().casefold()
        for value in alternatives(values, "aliases"):
            other = " ".join(_words(lex(_cut(clean(value), MAX_CHARACTERS))))
            if word and other and len(word.split()) == 1:
                pairs.append((word, other))
    return tuple(dict.fromkeys(pairs))


def _alias_unit(text: str) -> Unit:
    words = tuple(text.split())
    return Term(words[0]) if len(words) == 1 else Phrase(words)


@dataclass
class _Budget:
    """Builds the tree and keeps count: no query may cost the index more than its bounds allow."""

    default: Default
    words: int
    """So many words it may have."""
    prefixes_left: int = MAX_PREFIXES
    cut: bool = False
    seen: dict[object, Unit] = field(default_factory=dict[object, Unit])
    """Words and prefixes that were counted, in the case in which they came first."""

    def __post_init__(self) -> None:
        self.words_left = self.words
        self.compounds_left = MAX_WORDS

    def read(self, lexemes: list[Lexeme], aliases: Sequence[tuple[str, str]]) -> Node | None:
        """The tree of a whole query, then its aliases with what is left of the budget."""
        tree, _ = self._group(lexemes, 0)
        if tree is None:
            return None
        self.words_left = max(0, self.words_left - self.words + MAX_WORDS)  # more is for words that were written
        tree = self._with_aliases(tree, aliases)
        # Nested deeper than its own text could say again: no query that somebody meant.
        return join("or", units(tree)) if nesting(tree) > MAX_DEPTH else tree

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        some = f" ({MAX_WORDS} of them in compounds)" if self.words > MAX_WORDS else ""
        told = f"only the first {self.words} words{some} and {MAX_PREFIXES} prefixes were searched for"
        return [told] if self.cut else []

    def _group(self, lexemes: list[Lexeme], place: int) -> tuple[Node | None, int]:
        """Read up to the closing bracket; returns the node and the place behind the bracket."""
        branches: list[Node] = []
        runs: list[list[Node]] = []
        drops: list[Node] = []
        joined = negated = False
        while place < len(lexemes):
            one = lexemes[place]
            place += 1
            if one.kind == "close":
                break
            if one.kind == "or":
                branches.extend(self._branch(runs, drops))
                runs, drops = [], []
            elif one.kind == "and":
                joined = True
            elif one.kind == "minus":
                negated = True
            else:
                if one.kind == "open":
                    node, place = self._group(lexemes, place)
                else:
                    node = self._unit(one)
                if node is not None and negated:
                    drops.append(node)
                elif node is not None and joined and runs:
                    runs[-1].append(node)
                elif node is not None:
                    runs.append([node])
                joined = negated = False
        return join("or", [*branches, *self._branch(runs, drops)]), place

    def _branch(self, runs: list[list[Node]], drops: list[Node]) -> list[Node]:
        """What stands between two ORs: everything that is wanted, without anything that is not."""
        wanted = [node for run in runs if (node := run[0] if len(run) == 1 else join("and", run)) is not None]
        keep = join(self.default, wanted or drops)
        drop = join("or", drops) if wanted else None
        return [] if keep is None else [keep if drop is None else Not(keep, drop)]

    def _unit(self, one: Lexeme) -> Unit | None:
        """A word, phrase or prefix, if the bounds still have room for it."""
        if one.kind == "phrase":
            words = self._fitting(one.words, letters_each=1)
            return Phrase(words) if words else None
        text = one.words[0]
        unit = Prefix(text) if one.kind == "prefix" else Term(text)
        if isinstance(unit, Prefix) and _sameness(unit) not in self.seen:
            if self.prefixes_left:
                self.prefixes_left -= 1
            else:
                self.cut = True
                unit = Term(text)
        # A word that was counted before costs nothing more, and is the same one: in another case it would be another.
        if known := self.seen.get(_sameness(unit)):
            return known
        if not self._fitting((text,)):
            return None
        self.seen[_sameness(unit)] = unit
        return unit

    def _fitting(self, words: tuple[str, ...], letters_each: int = SPELT_PIECE) -> tuple[str, ...]:
        """As many of these words as there is room for; a word costs as much as it has pieces.

        `letters_each` letters of a script without spaces are one. What stands for several in a row is a compound: an
        index has to look where they stand.
        """
        kept: list[str] = []
        for word in words:
            cost = max(1, len(pieces(word)), len(letters(word)) // letters_each)
            compound = cost if len(words) > 1 or len(pieces(word)) > 1 or letters(word) else 0
            full = cost > self.words_left
            if full or compound > self.compounds_left:
                self.cut = True
                self.words_left, self.compounds_left = 0 if full else self.words_left, 0
                break
            self.words_left -= cost
            self.compounds_left -= compound
            kept.append(word)
        return tuple(kept)

    def _with_aliases(self, node: Node, aliases: Sequence[tuple[str, str]]) -> Node:
        """Terms that are wanted, each with its aliases; what is not wanted is taken at its word."""
        if not aliases:
            return node
        if isinstance(node, Term):
            others = [self.seen.get(_sameness(one), one) for one in expand(node, aliases)]
            return join("or", [one for one in others if one == node or self._affords(one)]) or node
        if isinstance(node, Not):
            return Not(self._with_aliases(node.keep, aliases), node.drop)
        if isinstance(node, And | Or):
            operator: Default = "or" if isinstance(node, Or) else "and"
            return join(operator, [self._with_aliases(part, aliases) for part in node.parts]) or node
        return node

    def _affords(self, unit: Unit) -> bool:
        words = unit.words if isinstance(unit, Phrase) else (unit.text,)
        return self._fitting(words) == words
