"""Query text cut into lexemes: words, phrases, prefixes, fields, brackets and operators. Linear, and never fails.

What is a word: a run without white space, quotes or separators, kept as written (`app.config.ts`, `C++`, `--flag`,
`user@example.com`), less the punctuation that a sentence hangs on it. What is a quote: `"` (or a curly one) before a
word, together with the next one behind a word; any other quote mark only parts words. What is a minus: `-` before a
letter, quote or bracket at the start of a word, but not in front of one or two letters (`-v`, `-rf`) or an assignment
(`-Dx=1`), which are command line flags, and before a letter only where the text is a query (see `minus`); `NOT js`
excludes what is as short, and `NOT name` in any text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from recollect.stages.fields import FIELD, Field, is_valid
from recollect.stages.minus import flags, is_minus

# A word of more pieces than this is a list or a blob, not a name: it is taken apart into its pieces.
MAX_PIECES = 16

# A bracket deeper than this is ignored; the words in it stay.
MAX_DEPTH = 8

Kind = Literal["word", "prefix", "phrase", "field", "open", "close", "and", "or", "not", "minus"]


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One sign of the query. `words` holds the word, the words of a phrase, or the name and value of a field."""

    kind: Kind
    words: tuple[str, ...] = ()


OPERATORS: dict[str, Lexeme] = {"AND": Lexeme("and"), "OR": Lexeme("or"), "NOT": Lexeme("not")}
OPEN, CLOSE, MINUS = Lexeme("open"), Lexeme("close"), Lexeme("minus")

_CURLY = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_WORD = re.compile(r'[^\s"`,;\[\]{}<>|…—–¿¡、。，；：？！「」『』（）【】《》]+')
_GROUPED_DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])")
_LEADING = re.compile(r"(?:['‘’:!?*]|\.{2,}(?!/))+")
_TRAILING = ".,:;!?'‘’*"
_NAME = re.compile(r"\w[_./\\:(=@#$]+\w")
_RUN = re.compile(r"[^\W_]+")
# A capital comes first, because texts have few of them: the rest is looked at only there.
_CAMEL = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|[A-Z][a-z]{2})")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""HTTPServerError: HTTP, Server, Error."""
FIRST_HUMP = 3


def lex(text: str) -> list[Lexeme]:
    """The lexemes of a clean text in order. Brackets are balanced and at most MAX_DEPTH deep."""
    text = text.translate(_CURLY)
    closing = _closing_quotes(text)
    is_query = not flags(text)
    found: list[Lexeme] = []
    place, depth, ignored = 0, 0, 0
    while place < len(text):
        sign = text[place]
        if sign == "(":
            if depth < MAX_DEPTH:
                found.append(OPEN)
                depth += 1
            else:
                ignored += 1
            place += 1
        elif sign == ")":
            if ignored:
                ignored -= 1
            elif depth:
                found.append(CLOSE)
                depth -= 1
            place += 1
        elif sign.isspace():
            place += 1
        elif sign == '"':
            place = _read_quote(text, place, closing, found)
        else:
            place = _read_word(text, place, is_query, found)
    found.extend([CLOSE] * depth)
    return found


def take_fields(lexemes: list[Lexeme]) -> tuple[list[Lexeme], list[Field]]:
    """The query without its fields, and the fields; a field that means nothing is put back as plain words.

    Fields hold for the whole query, so the AND or OR that stands between one and something else joins nothing: it goes
    with the field, and so do the brackets around fields alone.
    """
    rest: list[Lexeme] = []
    fields: list[Field] = []
    taken_at, joins_nothing = -1, False
    for one in lexemes:
        if joins_nothing and one.kind in ("and", "or"):
            joins_nothing = False
            continue
        joins_nothing = False
        if one.kind == "close" and taken_at == len(rest) and _may_close(rest):
            rest.pop()
        elif one.kind == "field":
            name, value = one.words
            negated = bool(rest) and rest[-1].kind in ("minus", "not")
            if negated:
                rest.pop()
            if not is_valid(found := Field(name, value, negated)):
                rest.extend(plain_words(f"{name} {value}"))
                continue
            fields.append(found)
        else:
            rest.append(one)
            continue
        if rest and rest[-1].kind in ("and", "or"):
            rest.pop()
        joins_nothing = not rest or rest[-1].kind == "open"
        taken_at = len(rest)
    return rest, fields


def _may_close(rest: list[Lexeme]) -> bool:
    """Whether the last lexeme opens a bracket, and not behind a NOT, which would be left to take out what follows."""
    return rest[-1:] == [OPEN] and rest[-2:-1] not in ([MINUS], [OPERATORS["NOT"]])


def pieces(word: str) -> list[str]:
    """The runs of letters and digits in a word, as an index would cut it."""
    return _RUN.findall(word)


def humps(text: str) -> list[str]:
    """The parts of the camelCase words of a text: `retryPolicy` is retry, Policy. siRNA and iPhone have none."""
    if not _CAMEL.search(text):  # most texts are asked in vain, and a recall asks ten
        return []
    found = [_HUMP.findall(run) for run in pieces(text) if run.isascii() and _CAMEL.search(run)]
    return [part for parts in found if len(parts[0]) >= FIRST_HUMP and len(parts[1]) > 1 for part in parts]


def spellings(word: str) -> list[str]:
    """What a name in code may also be called: the parts of `core/http.py` and `retryPolicy`, retrypolicy for
    `retry_policy`. Hyphens and apostrophes do not make a name."""
    parts = pieces(word)
    if len(parts) > 1 and not _NAME.search(word):
        return []
    joined = ["".join(parts)] if len(parts) > 1 and "_".join(parts) == word.strip("_()") else []
    others = [*(parts if len(parts) > 1 else ()), *humps(word), *joined]
    return [one for one in others if len(one) > 1 and not one.isdigit()]


def is_findable(word: str) -> bool:
    """Whether an index can hold something of the word: a letter or a digit (or a private-use character)."""
    return any(sign.isalnum() or unicodedata.category(sign) == "Co" for sign in word)


def _closing_quotes(text: str) -> list[int]:
    """For each place the next quote mark that ends a phrase (nothing of a word follows it), or -1."""
    following = [-1] * (len(text) + 1)
    for place in range(len(text) - 1, -1, -1):
        ends = text[place] == '"' and (
            place + 1 == len(text) or not (text[place + 1].isalnum() or text[place + 1] == '"')
        )
        following[place] = place if ends else following[place + 1]
    return following


def _read_quote(text: str, place: int, closing: list[int], found: list[Lexeme]) -> int:
    """A phrase, where this quote mark opens one; otherwise the mark is passed over."""
    opens = place == 0 or text[place - 1].isspace() or text[place - 1] in "(-"
    end = closing[place + 1] if opens else -1
    if end < 0:
        return place + 1
    words: list[str] = []
    for word in text[place + 1 : end].replace('"', " ").split():
        parts = pieces(word)
        words.extend(parts if len(parts) > MAX_PIECES else [word] if is_findable(word) else [])
    if words:
        found.append(Lexeme("phrase", tuple(words)))
    return end + 1


def _read_word(text: str, place: int, is_query: bool, found: list[Lexeme]) -> int:
    """A field, a minus sign, or a word with everything that belongs to it."""
    starts = place == 0 or text[place - 1].isspace() or text[place - 1] == "("
    if starts and (field := FIELD.match(text, place)):
        minus, name, quoted, bare = field.groups()
        if minus:
            found.append(MINUS)
        found.append(Lexeme("field", (name.lower().removesuffix("s"), bare if quoted is None else quoted)))
        return field.end()
    if starts and is_minus(text, place):
        if is_query or not text[place + 1].isalpha():
            found.append(MINUS)
            return place + 1
        return _read_flag(text, place + 1, found)
    grouped = _GROUPED_DIGITS.match(text, place) if starts else None
    run = grouped or _WORD.match(text, place)
    if run is None:
        return place + 1
    end = _end_of_word(run.group(), place)
    found.extend(_word_lexemes(text[place:end]))
    return end


def _read_flag(text: str, place: int, found: list[Lexeme]) -> int:
    """The name of a flag, which is a word, whatever else it could be."""
    read: list[Lexeme] = []
    end = _read_word(text, place, True, read)
    found.extend(Lexeme("word", (one.kind,)) if one in OPERATORS.values() else one for one in read)
    return end


def _end_of_word(run: str, place: int) -> int:
    """A closing bracket ends a word unless it was opened in it: `main()` is one word, `(see main)` is not."""
    inside = 0
    for offset, sign in enumerate(run):
        if sign == "(":
            inside += 1
        elif sign == ")":
            if not inside:
                return place + offset
            inside -= 1
    return place + len(run)


def _word_lexemes(word: str) -> list[Lexeme]:
    """The lexemes of one written word: an operator, a prefix, the word itself, or its pieces."""
    if word in OPERATORS:
        return [OPERATORS[word]]
    if word.isalnum():
        return [Lexeme("word", (word,))]
    lead = _LEADING.match(word)
    bare = word[lead.end() :] if lead else word
    if is_minus(bare, 0):
        bare = bare[1:]
    if bare.startswith("(") or bare.count("(") != bare.count(")"):
        return [one for part in re.split(r"[()]", bare) if part for one in _word_lexemes(part)]
    starred = bare.endswith("*") and bare[-2:-1].isalnum()
    bare = bare.rstrip(_TRAILING)
    parts = pieces(bare)
    if not is_findable(bare):
        return []
    if len(parts) > MAX_PIECES or FIELD.match(bare):
        return plain_words(bare)
    if bare in OPERATORS:
        # Punctuation ("OR?") says that the word is meant; lower case keeps it one.
        return [Lexeme("word", (bare.lower(),))]
    # One letter before the star would match half of any index.
    return [Lexeme("prefix" if starred and parts and len(parts[-1]) >= 2 else "word", (bare,))]


def plain_words(text: str) -> list[Lexeme]:
    """The pieces of a text as words and nothing else: what malformed syntax is read as."""
    return [Lexeme("word", (part.lower() if part in OPERATORS else part,)) for part in pieces(text)]
