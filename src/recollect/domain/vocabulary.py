"""Words that two texts which say the same may differ in, what stands for what, and the root of every other word.

Only words listed here are dropped or equated: an unknown word can keep two texts apart but never bring them together.
The numbers in every store (`domain/gist.py`) follow from these tables: to change them takes a new file format.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

Form = Literal["base", "ed", "ing"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _table(lines: str) -> dict[str, str]:
    """Lines of the form "canonical: variant variant" as a lookup from variant to canonical."""
    table: dict[str, str] = {}
    for line in lines.strip().splitlines():
        canonical, variants = line.split(":")
        for variant in variants.split():
            table[variant] = canonical.strip()
    return table


BE = _set("is are be am being been gets")
DROPPED = _set(
    "a an the this that these those which it its and has have do does use uses used using utilize utilise utilizes"
    " utilises please just simply really very quite also actually basically definitely certainly eg ie etc"
)
PREPOSITIONS = _set("to of for in on at with as into onto per")
WEAK = _set("mode currently presently now")
PERSONS = _table("""
i: i me my mine myself
we: we us our ours ourselves let's lets
you: you your yours yourself
""")
RELATIONS = _table("""
not: not no never none nor neither without avoid avoids avoiding non
before: before
after: after
until: until till
when: when whenever if
unless: unless
because: because since
than: than
from: from
by: by via
over: over
under: under
above: above
below: below
while: while
during: during
against: against
or: or
must: must should ought shall need needs
will: will
may: may might could maybe perhaps possibly
was: was were had did formerly previously
""")
SAME = _table("""
begin: start starts started starting begins beginning begun
delete: remove removes removed removing deletes deleted deleting deletion removal
folder: directory directories folders
configuration: config configs configurations
repository: repo repos repositories
database: db dbs databases
documentation: docs
environment: env envs environments
production: prod
development: dev
application: app apps applications
postgresql: postgres psql pg
kubernetes: k8s
javascript: js
parameter: param params parameters
argument: arg args arguments
maximum: max
minimum: min
information: info
deploy: deployment deployments
require: requirement requirements
every: each
favorite: favourite
color: colour colours colors
behavior: behaviour behaviours behaviors
percent: % percentage
fail: failure failures
large: big
want: wants
""")
UNITS = _table("""
millisecond: ms msec msecs millis millisecond milliseconds
second: s sec secs second seconds
minute: m min mins minute minutes
hour: h hr hrs hour hours
day: d day days
week: w wk wks week weeks
month: mo month months
year: y yr yrs year years
kilobyte: kb kilobyte kilobytes
megabyte: mb megabyte megabytes
gigabyte: gb gigabyte gigabytes
terabyte: tb terabyte terabytes
percent: % percent
dollar: $ usd dollar dollars
euro: € eur euro euros
pound: £ gbp
""")
NUMBERS = _table("""
1: one
2: two
3: three
4: four
5: five
6: six
7: seven
8: eight
9: nine
10: ten
11: eleven
12: twelve
15: fifteen
20: twenty
30: thirty
40: forty
50: fifty
60: sixty
100: hundred
""")
IMPORTANT = _set("important crucial critical essential vital")
CONTRACTIONS = {"won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "will not"}
BARE_NEGATIONS = _set("dont doesnt didnt isnt arent cant wont shouldnt wasnt werent")
UNSTEMMED = _set("news https windows cors")

PHRASES = {
    "instead of": "not",
    "rather than": "not",
    "prior to": "before",
    "as well as": "and",
    "in order to": "to",
    "has to": "must",
    "have to": "must",
    "make sure to": "",
    "make sure that": "",
    "make sure": "",
    "be sure to": "",
    "be sure that": "",
    "do not forget to": "",
    "don't forget to": "",
    "never forget to": "",
    "is going to": "will",
    "are going to": "will",
    "used to": "was",
}
LABELS = (
    "important", "note", "reminder", "remember", "tip", "decision", "gotcha", "lesson", "lesson learned", "learned",
    "fact", "preference", "pattern", "fyi", "nb", "til", "warning", "caution",
)  # fmt: skip
"""What may stand before the colon at the beginning of a text and says nothing."""
CALLS = ("remember", "note", "keep in mind", "be aware", "fyi")
"""The same before "that", "to" or a comma."""


def _may_be_missing() -> frozenset[str]:
    phrases = " ".join((*PHRASES, *PHRASES.values(), *LABELS, *CALLS, *CONTRACTIONS.values())).split()
    groups = (BE, DROPPED, PREPOSITIONS, WEAK, RELATIONS, RELATIONS.values(), UNITS, UNITS.values(), IMPORTANT, PERSONS)
    remainders = ("let", "won", "shan")  # of "let's", "won't" and "shan't"
    words = {*phrases, *CONTRACTIONS, *BARE_NEGATIONS, *remainders, "always", "matter"}
    words |= {word for group in groups for word in group}
    return frozenset(words | {SAME[word] for word in words if word in SAME})  # "min" is a unit, or the minimum


MAY_BE_MISSING = _may_be_missing()
"""In one of two texts that say the same: dropped words, and those that are something else in another place."""


@lru_cache(maxsize=20_000)
def stem(word: str, plural: bool = True) -> tuple[str, str, Form]:
    """(root, lemma, form) of a lower-case English word: plural s, -ed and -ing come off, a final e too."""
    if len(word) < 4 or word in UNSTEMMED or not word.isascii():
        return word, word, "base"
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and any(vowel in root for vowel in "aeiouy"):
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
                root = root[:-1]
            return _without_e(root), word, ending
    lemma = _singular(word) if plural else word
    return _without_e(lemma), lemma, "base"


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_e(word: str) -> str:
    if word.endswith("y") and len(word) > 3:
        return word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
