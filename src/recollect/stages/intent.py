"""What kind of answer a question wants, what kind of memory a memory is, and how the two go together.

Two intents are known, in English: "preference" ("what do I prefer", "my favourite X", "any advice on …") and "fact"
("what's the version of X", "when did Y happen", "how many …"). Other languages pass through untouched: every pattern
needs English words, and a text with more function words of another language than of English has no intent.

Patterns, limits and factors are tables. The patterns have no nested repetition and see 4,096 characters at most, so
that no text can make them slow. Factors multiply: a long roll-up asked for a fact gets 0.45 × 0.75 = 0.3375.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import EPISODE, Memory

MAX_CHARACTERS = 4096

# A statement of one or two sentences; longer than a page is prose.
SHORT_CHARACTERS = 240
LONG_CHARACTERS = 1200

_WHO = r"(?:my \w+|our \w+|the user|[a-z]+)"
_WHOSE = r"(?:my|your|our|his|her|their|\w+['’]s)"
_LIKES = r"(?:prefer|like|love|enjoy|dislike|hate|favou?r)"
_COUNSEL = r"(?:recommend|suggest|advise)"
_COUNSELS = r"(?:recommendations?|suggestions?|advice|tips)"
_TO_CHOOSE = r"(?:get|buy|try|cook|make|watch|read|eat|wear|do|use|choose|pick|order|visit|play|serve)"
_DETAIL = (
    r"(?:version|name|number|date|time|address|port|url|price|cost|size|age|birthday|phone|email|password|path|value"
    r"|limit|type|kind|status|id|title|colou?r|breed|brand|speed|ratio|amount|total|year|month|week|day|city|country"
    r"|company|location|file|command|flag|key)"
)
_WAS = r"(?:is|was|are|were|did|does|do|will|has|have|had)"

PATTERNS: Mapping[str, tuple[str, ...]] = {
    "preference": (
        # "does it look like" is no question of taste.
        rf"\b(?:do|does|did|would|might|should) {_WHO} (?:(?!look|sound|feel|seem)\w+ )?{_LIKES}\b",
        rf"\b{_WHOSE} (?:\w+ )?(?:favou?rites?|preferences?|preferred|tastes?)\b",
        r"\b(?:i|we|user|users) (?:\w+ )?prefers?\b",
        rf"\b(?:can|could|would|should|do|will) you (?:\w+ )?{_COUNSEL}\b",
        rf"\b(?:any|some|your|have|need|want|more|good|further|give me) (?:\w+ )?(?:{_COUNSELS}|ideas)\b",
        rf"^(?:please )?{_COUNSEL} (?:me|us|some|something|a|an|any|the|what|which|how|where)\b",
        rf"\b{_COUNSELS} (?:for|on|about|regarding)\b",
        rf"\bwhat (?:\w+ )?(?:should|could|might) i (?:\w+ )?{_TO_CHOOSE}\b",
    ),
    "fact": (
        r"\bhow (?:many|much|long|old|tall|far|often|big|large|fast|high|heavy)\b",
        rf"\b(?:when|where|who|whom|whose) {_WAS}\b",
        rf"\bwhat(?:['’]?s| is| was| are| were) (?:the|{_WHOSE}) (?:\w+ ){{0,3}}{_DETAIL}\b",
        rf"\b(?:what|which) {_DETAIL}\b",
        r"^(?:did|have|has|had|was|were|am|is|are) (?:i|we|he|she|it|they|the|my|our)\b",
        r"\b(?:did|have|had) i\b",
        r"\bwhat (?:did|was|were|had) (?:i|we|you|he|she|they|the|my|our)\b",
        r"\bremind me (?:of|what|when|where|who|which|how)\b",
    ),
}
_COMPILED = {
    intent: tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns) for intent, patterns in PATTERNS.items()
}

# Frequent short words of English and of the languages most often mixed with it: the larger count decides.
_ENGLISH_WORDS = (
    "the a an of to in on at for with from is are was were be been do does did have has had can could would should "
    "will i my me we us our you your he she they their it this that what which who when where why how many much any "
    "some something and or not about"
)
_FOREIGN_WORDS = (
    "der das den dem ein eine einen und nicht ich mein meine wie wann wo wer warum ist sind für mit von zu "
    "le la les des du un une et est sont dans pour avec que qui quoi je mon ma mes quel quelle vous "
    "el los las del y es son en por con mi mis cuál qué cuando donde como "
    "il lo gli di e sono per che mio mia quale "
    "o os um uma da em não meu minha qual "
    "het een van ik mijn wat wanneer waar hoe zijn met voor"
)
ENGLISH = frozenset(_ENGLISH_WORDS.split())
FOREIGN = frozenset(_FOREIGN_WORDS.split())

FACTORS: Mapping[str, Mapping[str, float]] = {
    "preference": {"preference": 1.5, "chunk": 0.75},
    "fact": {"short": 1.25, "prose": 0.75, "rollup": 0.45},
}
KINDS = ("preference", "chunk", "short", "prose", "rollup")

CHUNK_TYPES = frozenset({EPISODE, "chunk", "document", "transcript", "page"})
ROLLUP_TYPES = frozenset({"summary", "rollup", "roll-up", "digest", "recap", "overview", "consolidated"})

_PREFERS = re.compile(
    rf"\b(?:i|we|user|users|he|she|they)(?:['’]d)? (?:\w+ )?{_LIKES}s?\b|\b{_WHOSE} (?:\w+ )?favou?rite\b",
    re.IGNORECASE,
)
_ROLLS_UP = re.compile(
    r"\W{0,6}(?:(?:daily|weekly|monthly|session|conversation|meeting|project) )?"
    r"(?:summary|recap|overview|digest|roll-?up)\b",
    re.IGNORECASE,
)


def intents(text: str) -> tuple[str, ...]:
    """The intents of a question, in the order of the table; none where the text is not English."""
    text = " ".join(text[:MAX_CHARACTERS].split())
    if not _is_english(text):
        return ()
    return tuple(name for name, patterns in _COMPILED.items() if any(pattern.search(text) for pattern in patterns))


def kinds(memory: Memory) -> frozenset[str]:
    """What a memory is, of KINDS; one can be several (a roll-up that is also long prose).

    preference: its type says so, or it says what somebody prefers within its first 240 characters.
    chunk: raw text (an episode, a document's piece), not something that was noted down on purpose.
    short: up to 240 characters and neither raw nor a roll-up. prose: 1,200 characters and more.
    rollup: its type or a tag says so, or it opens with "Summary", "Weekly recap", …
    """
    found: set[str] = set()
    content = memory.content
    if memory.type == "preference" or _PREFERS.search(content[:SHORT_CHARACTERS]):
        found.add("preference")
    if memory.type in CHUNK_TYPES:
        found.add("chunk")
    if memory.type in ROLLUP_TYPES or ROLLUP_TYPES.intersection(memory.tags) or _ROLLS_UP.match(content):
        found.add("rollup")
    if len(content) >= LONG_CHARACTERS:
        found.add("prose")
    if len(content) <= SHORT_CHARACTERS and found.isdisjoint(("chunk", "rollup")):
        found.add("short")
    return frozenset(found)


def factor(
    intents: Sequence[str], kinds: Collection[str], *, factors: Mapping[str, Mapping[str, float]] | None = None
) -> float:
    """The product of the factors of every intent with every kind; pairs that no table names count 1.

    `factors` (a profile's option) replaces single entries: {"fact": {"rollup": 0.3}}.
    """
    if factors:
        _check(factors)
    product = 1.0
    for intent in intents:
        table = {**FACTORS.get(intent, {}), **(factors or {}).get(intent, {})}
        for kind in sorted(kinds):
            product *= table.get(kind, 1.0)
    return product


def _check(factors: Mapping[str, Mapping[str, float]]) -> None:
    """A misspelt name in a profile would silently do nothing, so it is refused."""
    for intent, table in factors.items():
        if intent not in FACTORS:
            raise InvalidInput(f"unknown intent {intent!r}", f"use one of: {', '.join(FACTORS)}", field="factors")
        for kind in table:
            if kind not in KINDS:
                raise InvalidInput(f"unknown kind {kind!r}", f"use one of: {', '.join(KINDS)}", field="factors")


def _is_english(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    english = sum(word in ENGLISH for word in words)
    return english > 0 and english >= sum(word in FOREIGN for word in words)
