"""What a user asks to be remembered: "remember that we deploy on Tuesdays", "from now on, answer in German".

Heard is what is asked for in so many words, where the user speaks and not somebody whose text was pasted (a mail that
says "remember that invoices go to …" must not become what the user said): in the first or the last paragraph of a short
prompt, and at the very beginning of a long one, never in code blocks and quotes. Questions ("do you remember …?") ask
for a memory instead of giving one, and "remember to …" is an order for now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.domain.errors import InvalidInput
from recollect.stages.cleaning import clean
from recollect.stages.markers import Marker, markers, open_lines
from recollect.stages.prose import says_nothing

MAX_CHARACTERS = 2_000
"""Of one wish; a longer one is a document, for which there is `recollect import`."""
TYPED_CHARACTERS = 1_000
"""A longer prompt is mostly pasted."""

_FILLERS = "ok|okay|also|and|but|so|well|hey|btw|by the way|please|pls|und|bitte|übrigens|claude|codex|gemini|cursor"
# Never given back: a word before a comma may be a filler as well, and all ways to read them would be tried.
_BEFORE = rf"(?:(?:{_FILLERS}|@\w+|(?!remember|memori)\w+(?=,))\b[,:]?\s+)*+"
_POLITE = r"(?:(?:(?:can|could|would|will) you|i(?:'d| would) like you to|i want you to)\s+(?:please\s+)?)?"
_VERB = r"(?:remember|memori[sz]e|(?:do not|don't|never) forget|(?:make|take) (?:a )?note)"
_INTO = r"(?:save|store|add|write|put|commit)(?: (?:this|that|it))? (?:in|into|to)(?: your| the)?(?: long-term)? memory"
_GERMAN = r"(?:merke? dir|vergiss nicht|denke? daran|notiere?(?: dir)?)"
# Behind a colon stands what is meant, to the end of the paragraph; behind "that" to the end of the sentence.
_LISTED = re.compile(
    rf"{_BEFORE}{_POLITE}(?:(?:{_VERB}|{_INTO})(?: (?:this|the following))?|{_GERMAN}(?: bitte)?(?: folgendes)?"
    r"|(?:a )?note to self|for future reference)(?: for later)?\s*:\s*",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"(?:{_BEFORE}{_POLITE}|.{{1,400}}?(?:[,;]\s*|\s)(?:and|but|also|und)\s+(?:also\s+|please\s+|bitte\s+)?)"
    rf"(?:(?:{_VERB}|{_INTO}),? that\s+|{_GERMAN}(?: bitte)?,? dass\s+|for future reference,\s+)",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(
    rf"{_BEFORE}(?:from now on|from here on|ab jetzt|von jetzt an|ab sofort|in zukunft)\b", re.IGNORECASE
)
# "Remember that time we …", "remember that bug from …": what is meant is known, and nothing is told.
_THINGS = "time day night week year thing one person bug issue problem error talk meeting message file function test"
_POINTED_AT = re.compile(
    rf"(?:{_THINGS.replace(' ', '|')})\b,?"
    r"(?: (?:we|i|you|he|she|they|that|which|when|where|from|about|with|in|at|on)\b|$)",
    re.IGNORECASE,
)
_PREFERRED = re.compile(
    r"(?:(?:i|we)(?:'d| would)?(?: always| never| really)? (?:prefer|like|love|hate|dislike|want)|always|never)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"{_BEFORE}(?:can|could|would|will) you\b", re.IGNORECASE)
# Prompts are typed in haste: behind a full stop they go on in lower case. A line that does so belongs to the last.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)\s+|\n(?![a-z])")
_COURTESY = re.compile(
    r"(?:[,.!\s]*\b(?:please|pls|thanks|thank you|thx|ok(?:ay)?|bitte|danke)\b[.!]*)+$", re.IGNORECASE
)
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")
_WORDS = re.compile(r"\w+")


def heard(text: str, said_by: str) -> tuple[Marker, ...]:
    """What somebody's words leave to be remembered: what an agent marks, what a user asks for."""
    if said_by not in ("agent", "user"):
        raise InvalidInput(f"nobody is called {said_by!r} here", "choose agent or user", "said_by")
    return wishes(text) if said_by == "user" else markers(text)


def wishes(prompt: str) -> tuple[Marker, ...]:
    """What a prompt asks to be remembered, in its order, each once."""
    if not isinstance(prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("the text must be a text", "give a string: what a user has said", "text")
    is_typed = len(prompt) <= TYPED_CHARACTERS
    first, *others = _own_paragraphs(prompt) or [""]
    own = [first, *others[-1:]] if is_typed else [first[: 2 * MAX_CHARACTERS]]
    found: dict[str, Marker] = {}
    for paragraph in own:
        for one in _wished(paragraph, first_alone=not is_typed):
            found.setdefault(one.content.casefold(), one)
    return tuple(found.values())


def _own_paragraphs(prompt: str) -> list[str]:
    """What is neither code nor quoted."""
    lines = ["" if line.lstrip().startswith(">") else line.strip() for line in open_lines(clean(prompt))]
    return [one for one in re.split(r"\n{2,}", "\n".join(lines).strip().replace("’", "'")) if one]


def _wished(paragraph: str, *, first_alone: bool) -> Iterator[Marker]:
    """What the sentences of a paragraph wish, or the first of them alone."""
    rest = paragraph
    while rest:
        if listed := _LISTED.match(rest):
            yield from _listed(rest[listed.end() :])
            return
        sentence, *more = _SENTENCE_END.split(rest, maxsplit=1)
        rest = more[0] if more and not first_alone else ""
        if sentence.endswith("?") and not _ASKED.match(sentence):
            continue
        if stated := _STATED.match(sentence):
            yield from _marker(sentence[stated.end() :])
        elif _FROM_NOW_ON.match(sentence):
            yield from _marker(sentence, "preference")


def _listed(text: str) -> Iterator[Marker]:
    """All of it, or its bullets one by one."""
    lines = text.splitlines()
    if len(lines) > 1 and all(map(_BULLET.match, lines)):
        for line in lines:
            yield from _marker(_BULLET.sub("", line, count=1))
    else:
        yield from _marker(text)


def _marker(text: str, type_: str = "") -> Iterator[Marker]:
    content = _COURTESY.sub("", text.strip()).rstrip(",;:? ")
    words = _WORDS.findall(content.lower())
    if len(words) < 2 or says_nothing(words) or _POINTED_AT.match(content) or len(content) > MAX_CHARACTERS:
        return
    kind = type_ or ("preference" if _PREFERRED.match(content) else "fact")
    yield Marker(content, kind)
