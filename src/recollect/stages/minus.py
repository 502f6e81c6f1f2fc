"""What a minus before a word means: in a query the word is taken out; in a sentence or a command line it is a flag.

A text with such a minus reads as a sentence where it begins with a question word or has a question mark and goes on
behind the minus, or where a little word (the, with, to …) stands right beside it. It reads as a command line where
there is another flag (`-x`, `--all`, `-Dx=1`), where the minus stands between backticks, or where a command (`find`,
`cargo build`) stands right before it, but for paths. One sign holds for the whole text: who writes one flag does not
exclude by the next. What stands in quotes is no sign.

A flag that is taken for an exclusion hides what is asked for, and nobody sees it; an exclusion that is taken for a flag
shows too much, and a note says how to write it. So in doubt it is a flag.
"""

from __future__ import annotations

import re

from recollect.stages.fields import FIELD
from recollect.stages.stopwords import QUESTION_WORDS, is_stop_word

_COMMANDS = (
    "awk chmod chown clang cp curl df dig du egrep ffmpeg ffprobe find g++ gcc grep gzip javac journalctl ln ls lsof "
    "mkdir mv netstat nmap openssl pgrep pkill ps rg rm rsync scp sed ss ssh tar tcpdump unzip wget xargs zip"
)
_TOOLS = (
    "apt apt-get aws az brew bundle cargo dnf docker dotnet gcloud git go gradle helm kubectl mvn node npm npx openssl "
    "pip pnpm podman poetry python rustup systemctl terraform tofu uv yarn"
)
_VERBS = (
    "add apply build check checkout clean clone commit compile create delete deploy describe diff exec fetch get init "
    "install list log logs merge plan publish pull push rebase req restart run serve show start status stop sync test "
    "uninstall up update upgrade"
)
COMMANDS = frozenset(_COMMANDS.split())
"""Programs with flags of several letters that are seldom a subject of their own: who writes `java -kotlin` excludes."""
TOOLS, VERBS = frozenset(_TOOLS.split()), frozenset(_VERBS.split())
"""A tool with one of these verbs behind it is a command; the tool alone may be the subject (`docker -kubernetes`)."""

_SHORT = re.compile(r"-(?:[A-Za-z]{1,2}\d*(?:[^\w-]|$)|[\w.-]+=)")
_QUOTED = re.compile(r'"[^"]*"')
_WRITTEN = re.compile(r"[^\s()]+")
_OTHER_FLAG = re.compile(r"--[A-Za-z]|-[A-Za-z]\d*$|-[A-Za-z][\w.-]*=")
_PASSED = re.compile(r"\.{1,2}$|(?:\.{0,2}|~)/|-")
"""Paths and other words with a minus stand between a command and its flags."""
_HUNG_ON = "\"'`,.;:!?*"


def is_minus(text: str, place: int) -> bool:
    """Whether a minus stands here that could exclude: one or two letters behind it, or an assignment, are a flag."""
    follower = text[place + 1 : place + 2]
    return (
        text[place : place + 1] == "-"
        and (follower.isalpha() or follower in tuple('"('))
        and not _SHORT.match(text, place)
    )


def flags(text: str) -> tuple[str, ...]:
    """The words behind a minus that exclude nothing, because the text is no query; none where it is one."""
    if "-" not in text:
        return ()
    text = _QUOTED.sub('""', text)
    written = list(_WRITTEN.finditer(text))
    words = [one.group() for one in written]
    found = [place for place, word in enumerate(words) if _is_named(word)]
    if not found or not (
        (found[0] < _end_of_sentence(words) and _asks(words))
        or any(_OTHER_FLAG.match(word) for word in words)
        or any(_is_flag(words, place) or _in_code(text, written[place].start()) for place in found)
    ):
        return ()
    return tuple(dict.fromkeys(words[place][1:].rstrip(_HUNG_ON) for place in found))


def _is_named(word: str) -> bool:
    return is_minus(word, 0) and word[1:2].isalpha() and not FIELD.match(word)


def _end_of_sentence(words: list[str]) -> int:
    """The place behind its last word: words with a minus behind that are hung on it, and left out of the answer."""
    inside = [not _is_named(word) or word.endswith("?") for word in words]
    return max((place for place, is_inside in enumerate(inside, start=1) if is_inside), default=0)


def _asks(words: list[str]) -> bool:
    first = words[0].lower().replace("’", "'").removesuffix("'s").strip(_HUNG_ON)
    return first in QUESTION_WORDS or any(word.endswith("?") for word in words)


def _is_flag(words: list[str], place: int) -> bool:
    """Whether a little word stands beside the one at this place, or a command before it."""
    beside = (words[place - 1 : place] if place else []) + words[place + 1 : place + 2]
    if any(is_stop_word(bare := word.strip(_HUNG_ON)) and not (len(bare) > 1 and bare.isupper()) for word in beside):
        return True
    while place and _PASSED.match(words[place - 1]):
        if (words[place - 1].rpartition("/")[2]).lower() in COMMANDS:
            return True
        place -= 1
    before = [word.strip(_HUNG_ON).lower() for word in words[max(0, place - 2) : place]]
    return bool(before) and (before[-1] in COMMANDS or (len(before) == 2 and before[0] in TOOLS and before[1] in VERBS))


def _in_code(text: str, place: int) -> bool:
    return text.count("`", 0, place) % 2 == 1 and "`" in text[place:]
