"""Do two texts say the same? Term-set similarity decides, and a guard keeps different facts apart.

Two texts are the same fact when their meaningful words (see wording) overlap by more than the threshold and nothing
but weak words is left over, on one side at most; numbers, names, code, negations and relations must agree, and the
order of the words may differ only by one phrase that moved as a whole. Cosine never decides alone: embeddings of
"staging" and "production" are close. Where it agrees (`loose`), it may bridge word families and acronyms, no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from recollect.stages.wording import LIKE_LEADS, Reading, Word, read

OVERLAP = 0.7
COSINE = 0.85
MAX_CHARACTERS = 4_000
"""Longer texts are compared only for being identical: nobody says a page twice in other words."""
MAX_WORDS = 400

WORD = re.compile(r"\w+")
_ENDINGS = "ment ments ion ions ation ations tion tions er ers or ors al ly ity ness ance ence ure ures ing ed es s e"
FAMILY_ENDINGS = frozenset(_ENDINGS.split())
FAMILY_ROOT = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two texts say the same, how much their words overlap, and what kept them apart."""

    same: bool
    overlap: float
    reason: str


def same_fact(left: str, right: str, overlap: float = OVERLAP) -> bool:
    """Whether two texts say the same thing."""
    return compare(left, right, overlap).same


def compare(left: str, right: str, overlap: float = OVERLAP, *, loose: bool = False) -> Verdict:
    """The verdict on two texts. `loose` is for pairs whose embeddings are close already."""
    if left.split() == right.split():
        return Verdict(True, 1.0, "same words")
    if not comparable(left) or not comparable(right):
        return Verdict(False, 0.0, "too long to compare")
    if not close_at_a_glance(glance(left), glance(right)):
        return Verdict(False, 0.0, "words differ")
    return compare_readings(read(left), read(right), overlap, loose=loose)


@lru_cache(maxsize=1024)
def glance(text: str) -> frozenset[str]:
    """The word beginnings of a text: far cheaper than reading it."""
    return frozenset(word[:4] for word in WORD.findall(text.casefold()))


def close_at_a_glance(left: frozenset[str], right: frozenset[str]) -> bool:
    """A fast refusal: texts that say the same share at least a third of the word beginnings of the shorter one."""
    return 3 * len(left & right) >= min(len(left), len(right))


def same_names(left: str, right: str) -> bool:
    """Whether two texts that differ at most in case and spacing also name the same things: API_KEY is not api_key."""
    if left.split() == right.split() or not comparable(left) or not comparable(right):
        return True
    return _count(read(left).words, "code") == _count(read(right).words, "code")


def comparable(text: str) -> bool:
    """Whether a text is short enough to be compared by meaning."""
    return len(text) <= MAX_CHARACTERS


def compare_readings(left: Reading, right: Reading, overlap: float = OVERLAP, *, loose: bool = False) -> Verdict:
    """The verdict on two texts that have been read already."""
    if max(len(left.words), len(right.words)) > MAX_WORDS:
        return Verdict(False, 0.0, "too long to compare")
    if loose:
        left, right = _bridge(left, right)
    terms = left.terms, right.terms
    share = len(terms[0] & terms[1]) / len(terms[0] | terms[1]) if terms[0] else 0.0
    reason = _kept_apart(left, right, loose)
    if not reason and len({word.term for word in left.strong}) < 2:
        reason = "too few words to tell"
    if not reason and share <= overlap and not loose:
        reason = f"overlap {share:.2f} is not above {overlap:.2f}"
    return Verdict(not reason, share, reason or f"overlap {share:.2f}")


def signature(reading: Reading) -> str:
    """Equal for any two readings that can be the same fact, loosely or strictly (acronyms aside): a bucket key."""
    return " ".join(sorted({word.term[:FAMILY_ROOT] for word in reading.strong}))


def _kept_apart(left: Reading, right: Reading, loose: bool) -> str:
    """The first thing in which the two differ for good, or nothing."""
    if left.question != right.question:
        return "a question and a statement"
    if left.persons != right.persons and left.persons and right.persons:
        return "persons differ"
    for kind, what in (("number", "numbers"), ("code", "names from code"), ("symbol", "symbols")):
        if _count(left.words, kind) != _count(right.words, kind):
            return f"{what} differ"
    if _count(left.words, "relation") != _count(right.words, "relation"):
        return "negations or relations differ"
    terms = left.terms, right.terms
    rest = terms[0] - terms[1], terms[1] - terms[0]
    weak = {word.term for word in (*left.words, *right.words) if word.weak}
    if (rest[0] | rest[1]) - weak:
        return "words differ"
    if rest[0] and rest[1] and not loose:
        return "words differ on both sides"
    strong = left.strong, right.strong
    return _forms_differ(*strong) or _order_differs(*strong, left.labelled or right.labelled, loose)


def _count(words: Sequence[Word], kind: str) -> Counter[str]:
    return Counter(word.term for word in words if word.kind == kind)


def _forms_differ(left: Sequence[Word], right: Sequence[Word]) -> str:
    """What was done is not what is being done; "plan" is no "plane" although both are the root of "planned"."""
    for term in {word.term for word in left}:
        forms = [{word.form for word in side if word.term == term} for side in (left, right)]
        finished = [word for word in (*left, *right) if word.term == term and word.form == "ed"]
        only_one = ("ed" in forms[0]) != ("ed" in forms[1])
        if only_one and ("ing" in forms[0] | forms[1] or not all(word.passive for word in finished)):
            return "tenses differ"
        bases = [{word.lemma for word in side if word.term == term and word.form == "base"} for side in (left, right)]
        if bases[0] and bases[1] and not bases[0] & bases[1]:
            return "words differ"
    return ""


def _order_differs(left: Sequence[Word], right: Sequence[Word], labelled: bool, loose: bool) -> str:
    """Who does what to whom hangs on the order: only one phrase may have moved, as a whole."""
    first, second = [word.term for word in left], [word.term for word in right]
    if first == second:
        return "" if all(_leads_agree(*pair) for pair in zip(left, right)) else "prepositions differ"
    if labelled or Counter(first) != Counter(second):
        return "order differs"
    joint = _moved_phrase(left, right, loose)
    if joint is None:
        return "order differs"
    followers = [Counter((word.lead, word.term) for word in side if word.lead) for side in (left, right)]
    bound = [Counter(zip(_relations(side), _next_terms(side))) for side in (left, right)]
    for side in followers:
        side.pop(joint, None)
    return "" if followers[0] == followers[1] and bound[0] == bound[1] else "order differs"


def _leads_agree(left: Word, right: Word) -> bool:
    if not left.lead or not right.lead or left.lead == right.lead:
        return True
    return left.kind != "number" and frozenset((left.lead, right.lead)) in LIKE_LEADS


def _relations(words: Sequence[Word]) -> list[str]:
    return [word.term for word in words if word.kind == "relation"]


def _next_terms(words: Sequence[Word]) -> list[str]:
    """For each relation the word that follows it."""
    following = [word.term for word in words[1:]] + [""]
    return [after for word, after in zip(words, following) if word.kind == "relation"]


def _moved_phrase(left: Sequence[Word], right: Sequence[Word], loose: bool) -> tuple[str, str] | None:
    """Whether …xy… became …yx…, where x and y are separate phrases in both, or "x y" became "y of x".

    Loosely also "y in x", where that is all there is: "SQLite logging" names what "logging in SQLite" does, but who
    mounts the cache volume mounts no volume in the cache. The answer names the (preposition, word) that such a turn of
    phrase brings in, empty if none.
    """
    first, second = [word.term for word in left], [word.term for word in right]
    start = 0
    while first[start] == second[start]:
        start += 1
    end = len(first)
    while first[end - 1] == second[end - 1]:
        end -= 1
    turns = ("of", "in") if loose and start == 0 and end == len(first) else ("of",)
    for cut in range(start + 1, end):
        if first[cut:end] + first[start:cut] == second[start:end]:
            joints = (left, cut), (right, start + end - cut)
            if all(_separate(*joint) for joint in joints):
                return "", ""
            for (one, here), (other, there) in (joints, joints[::-1]):
                if not _separate(one, here) and other[there].lead in turns:
                    return other[there].lead, other[there].term
    return None


def _separate(words: Sequence[Word], place: int) -> bool:
    """Whether a new phrase begins at this place."""
    return words[place].apart or words[place].kind == "relation"


def _bridge(left: Reading, right: Reading) -> tuple[Reading, Reading]:
    """Make words of one family equal ("configure", "configuration") and acronyms equal to what they stand for."""
    left, right = _expand(left, right), _expand(right, left)
    only_left, only_right = sorted(left.terms - right.terms), sorted(right.terms - left.terms)
    renamed: dict[str, str] = {}
    for term in only_left:
        kin = next((other for other in only_right if _one_family(term, other)), None)
        if kin is not None:
            renamed[kin] = term
            only_right.remove(kin)
    roots = set(renamed.values())
    ours = tuple(_rooted(word, word.term) if word.term in roots else word for word in left.words)
    theirs = tuple(_rooted(word, renamed[word.term]) if word.term in renamed else word for word in right.words)
    return replace(left, words=ours), replace(right, words=theirs)


def _rooted(word: Word, term: str) -> Word:
    """The word as the root of its family, without its form."""
    return Word(term, word.kind, "", "base", False, word.lead, word.apart)


def _one_family(left: str, right: str) -> bool:
    """Both are one root of at least five letters with usual endings."""
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    for root in range(shared, FAMILY_ROOT - 1, -1):
        if all(not word[root:] or word[root:] in FAMILY_ENDINGS for word in (left, right)):
            return True
    return False


def _expand(reading: Reading, other: Reading) -> Reading:
    """Replace "write-ahead logging" by "wal" where the other text says WAL."""
    acronyms = {word.term for word in other.words if 3 <= len(word.term) <= 6} - reading.terms
    words = list(reading.words)
    for acronym in sorted(acronyms):
        for place in range(len(words) - len(acronym) + 1):
            stretch = words[place : place + len(acronym)]
            if "".join(word.term[:1] for word in stretch) == acronym:
                words[place : place + len(acronym)] = [Word(acronym, lemma=acronym, lead=stretch[0].lead)]
                break
    return replace(reading, words=tuple(words))
