"""Finding credentials and card numbers in text before it is stored, embedded or logged.

A memory that holds a live key hands it to every model that recalls it. Each rule names its kind; the rules that look
for a form of their own (a vendor's prefix) come before those that go by the word in front ("password: …").
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

Mode = Literal["redact", "reject", "allow"]


@dataclass(frozen=True, slots=True)
class Secret:
    """What was found where: character offsets into the text. The secret itself is not carried along."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret. `hints` are literals without which the pattern cannot match (a fast refusal, lower case;
    DIGITS stands for four digits in a row); the group `secret` (or else the whole match) is what is hidden, if `check`
    agrees."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]
    check: Callable[[str], bool] | None = None


def _rule(kind: str, pattern: str, *hints: str, check: Callable[[str], bool] | None = None) -> Rule:
    return Rule(kind, re.compile(pattern), hints, check)


PLACEHOLDER = re.compile(
    r"^(?:x+|\*+|\.+|<.*>|\$\{.*|\$\(.*|\{\{.*|%\(.*|\[.*\]?|null|none|true|false|undefined|example|changeme|redacted|required|missing"
    r"|secret|password|passwd|token|todo|tbd|empty|string|str|optional|invalid|wrong|expired|env|os\.environ.*"
    r"|process\.env.*|getenv.*|your[-_ ].*|my[-_].*|\w*example\w*|(?:\w+\.){1,8}\w+\(?.*|\w{1,60}\(.*)$",
    re.IGNORECASE,
)


def _entropy(value: str) -> float:
    """Bits per character of a value's own character frequencies."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def _looks_random(value: str) -> bool:
    """A token, not a word: long, mixed and without repetition."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return not PLACEHOLDER.match(value) and mixed and _entropy(value) >= 3.0


def _looks_set(value: str) -> bool:
    """What stands after "password:" is a value rather than a word of the sentence."""
    odd = any(c.isdigit() for c in value) or any(not c.isalnum() and c not in "-'’" for c in value.strip(".,;:!?)"))
    return len(value) >= 6 and odd and not PLACEHOLDER.match(value)


def _real_password(value: str) -> bool:
    return not PLACEHOLDER.match(value)


def _luhn(value: str) -> bool:
    """The check digit of payment cards."""
    digits = [int(c) for c in value if c.isdigit()]
    if len(set(digits)) < 3:  # made up
        return False
    doubled = [d if place % 2 == 0 else sum(divmod(2 * d, 10)) for place, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


CARD = "card-number"
DIGITS = "digits"
FOUR_DIGITS = re.compile(r"\d{4}")
START = r"(?<![A-Za-z0-9_-])"
END = r"(?![A-Za-z0-9_-])"
NAMED = (
    r"(?i:\b(?:[a-z0-9]{1,40}[_-]){0,4}(?P<name>pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|api[_ -]?key|access[_ -]?key|auth[_ -]?token|access[_ -]?token|refresh[_ -]?token|token|private[_ -]?key"
    r"|client[_ -]?secret|credentials?)\b[\"']?)"
)

RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,16384}"
        r"(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
        "private key",
    ),
    _rule("aws-access-key", START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + END, "akia", "asia", "abia", "acca"),
    _rule(
        "aws-secret-key",
        r"(?i:aws.{0,20}(?:secret|sk).{0,20}?[\s\"':=]{1,5})(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "aws",
        check=_looks_random,
    ),
    _rule("github-token", START + r"gh[pousr]_[A-Za-z0-9]{36,255}" + END, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _rule("github-token", START + r"github_pat_[A-Za-z0-9_]{22,255}" + END, "github_pat_"),
    _rule("gitlab-token", START + r"gl(?:pat|dt|rt|ptt|cbt|soat|ft)-[A-Za-z0-9_-]{20,64}" + END, "gl"),
    _rule("slack-token", START + r"xox[abeoprs]-[A-Za-z0-9-]{10,250}" + END, "xox"),
    _rule("slack-token", START + r"xapp-\d-[A-Za-z0-9-]{20,250}" + END, "xapp-"),
    _rule(
        "slack-webhook",
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/+_-]{20,150}",
        "hooks.slack.com",
    ),
    _rule(
        "discord-webhook", r"https://discord(?:app)?\.com/api/webhooks/\d{15,22}/[A-Za-z0-9_-]{40,100}", "api/webhooks"
    ),
    _rule("discord-token", START + r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}" + END, "."),
    _rule("stripe-key", START + r"(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{24,250}" + END, "sk_", "rk_", "whsec_"),
    _rule("anthropic-key", START + r"sk-ant-[A-Za-z0-9_-]{20,250}" + END, "sk-ant-"),
    _rule(
        "openai-key",
        START + r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,250}" + END,
        "sk-",
        check=_looks_random,
    ),
    _rule("google-key", START + r"AIza[A-Za-z0-9_-]{35}" + END, "aiza"),
    _rule("google-token", START + r"ya29\.[A-Za-z0-9_-]{20,500}" + END, "ya29."),
    _rule("google-client-secret", START + r"GOCSPX-[A-Za-z0-9_-]{28}" + END, "gocspx-"),
    _rule("npm-token", START + r"npm_[A-Za-z0-9]{36}" + END, "npm_"),
    _rule("pypi-token", START + r"pypi-AgE[A-Za-z0-9_-]{50,400}", "pypi-age"),
    _rule("rubygems-token", START + r"rubygems_[a-f0-9]{48}" + END, "rubygems_"),
    _rule("sendgrid-key", START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}" + END, "sg."),
    _rule("mailgun-key", START + r"key-[a-f0-9]{32}" + END, "key-"),
    _rule("mailchimp-key", START + r"[a-f0-9]{32}-us\d{1,2}" + END, "-us"),
    _rule("twilio-key", START + r"(?:SK|AC)[a-f0-9]{32}" + END, "sk", "ac"),
    _rule("huggingface-token", START + r"hf_[A-Za-z0-9]{30,60}" + END, "hf_"),
    _rule("digitalocean-token", START + r"do[opr]_v1_[a-f0-9]{64}" + END, "_v1_"),
    _rule("telegram-token", START + r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}" + END, ":aa"),
    _rule("shopify-token", START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + END, "shp"),
    _rule(
        "square-token", START + r"(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60})" + END, "sq0", "eaaa"
    ),
    _rule("databricks-token", START + r"dapi[a-f0-9]{32}(?:-\d)?" + END, "dapi"),
    _rule("linear-key", START + r"lin_api_[A-Za-z0-9]{40}" + END, "lin_api_"),
    _rule("notion-token", START + r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,50})" + END, "secret_", "ntn_"),
    _rule("doppler-token", START + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,64}" + END, "dp."),
    _rule("vault-token", START + r"hv[sbr]\.[A-Za-z0-9_-]{24,200}" + END, "hvs.", "hvb.", "hvr."),
    _rule("grafana-token", START + r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,400}", "glsa_", "glc_"),
    _rule("newrelic-key", START + r"NRAK-[A-Z0-9]{27}" + END, "nrak-"),
    _rule("postman-key", START + r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}" + END, "pmak-"),
    _rule("planetscale-token", START + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._=-]{32,64}" + END, "pscale_"),
    _rule("groq-key", START + r"gsk_[A-Za-z0-9]{48,56}" + END, "gsk_"),
    _rule("dockerhub-token", START + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,32}" + END, "dckr_"),
    _rule("terraform-token", START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}" + END, ".atlasv1."),
    _rule("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{58}", "age-secret-key-"),
    _rule(
        "azure-key",
        r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,90}={0,2})",
        "accountkey",
        "sharedaccesskey",
    ),
    _rule("jwt", START + r"eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{10,2000}", "eyj"),
    _rule(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<secret>[^\s/@\"'<>]{3,200})@",
        "://",
        check=_real_password,
    ),
    _rule(
        "authorization",
        r"(?i:\b(?:authorization|proxy-authorization)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|bearer|token)\s{1,3})"
        r"(?P<secret>[A-Za-z0-9+/=._~-]{8,4000})",
        "authorization",
        check=_real_password,
    ),
    _rule(
        "authorization", r"(?i:\bbearer\s{1,3})(?P<secret>[A-Za-z0-9+/=._~-]{20,4000})", "bearer", check=_looks_random
    ),
    _rule(
        "password",
        NAMED + r"\s{0,3}(?:=>|:=|==?|:)\s{0,3}(?P<quote>[\"'`])(?P<secret>[^\"'`\n]{4,500})(?P=quote)",
        "pass",
        "pwd",
        "secret",
        "key",
        "token",
        "credential",
        check=_real_password,
    ),
    _rule(
        "password",
        NAMED
        + r"(?:\s{0,3}(?:=>|:=|==?|:)\s{0,3}|\s(?i:is|was|are)\s(?:(?i:now|set to)\s)?)"
        + r"[\"'`]?(?P<secret>[^\s\"'`,;]{6,500})",
        "pass",
        "pwd",
        "secret",
        "key",
        "token",
        "credential",
        check=_looks_set,
    ),
    _rule(CARD, r"(?<![\d.-])[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?![\d-])", DIGITS, check=_luhn),
    _rule(CARD, r"(?<![\d.-])3[47]\d{2}[ -]\d{6}[ -]\d{5}(?![\d-])", DIGITS, check=_luhn),
    _rule(
        "social-security-number",
        r"(?i:\b(?:ssn|social security)[^\d\n]{0,30})(?P<secret>\d{3}-?\d{2}-?\d{4})(?!\d)",
        "ssn",
        "social security",
    ),
)


CODES = re.compile(r"(?is:(?:.*[\W_])?(?:(?:pin|passcode|otp)(?:[ _-]?(?:code|number))?: \d{4,12}|cv[cv]2?: \d{3,4}))")
"""Short numbers that only their name gives away; too short to be looked for in sentences."""

HINTS = tuple(dict.fromkeys(hint for rule in RULES for hint in rule.hints if hint != DIGITS))


def find(text: str) -> tuple[Secret, ...]:
    """Every secret in a text, in order, without overlaps; where rules overlap the earlier rule wins."""
    lowered = text.lower()
    hints = {hint for hint in HINTS if hint in lowered}
    if FOUR_DIGITS.search(text):
        hints.add(DIGITS)
    taken: list[Secret] = []
    for rule in RULES if hints else ():
        if not hints.isdisjoint(rule.hints):
            # The matches of one rule lie side by side: only those of earlier rules can be in the way.
            free = [found for found in _matches(rule, text) if not _overlaps(found, taken)]
            taken = sorted((*taken, *free), key=_start) if free else taken
    return tuple(taken)


def _matches(rule: Rule, text: str) -> Iterator[Secret]:
    group: int | str = "secret" if "secret" in rule.pattern.groupindex else 0
    for match in rule.pattern.finditer(text):
        if rule.check is None or rule.check(match[group]):
            yield Secret(rule.kind, match.start(group), match.end(group))


def _start(secret: Secret) -> int:
    return secret.start


def _overlaps(found: Secret, taken: list[Secret]) -> bool:
    """Whether a stretch meets one of those taken, which are in order: the last that begins before its end decides."""
    place = bisect_left(taken, found.end, key=_start)
    return place > 0 and taken[place - 1].end > found.start


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every secret replaced by its kind in brackets, and the kinds that were found, sorted."""
    found = find(text)
    parts: list[str] = []
    place = 0
    for secret in found:
        parts += (text[place : secret.start], f"[REDACTED:{secret.kind}]")
        place = secret.end
    parts.append(text[place:])
    return "".join(parts), tuple(sorted({secret.kind for secret in found}))


def names_a_secret(name: str) -> bool:
    """Whether a project, a session or a type is a secret. Ids made of digits are common, cards among them are not."""
    return any(secret.kind != CARD for secret in find(name))


def redact_json(value: Any) -> tuple[Any, tuple[str, ...]]:
    """The same for every text inside a JSON value, names included. What stands under a telling name ("password") is
    judged with it, numbers too."""
    kinds: set[str] = set()
    return _redacted(value, "", kinds), tuple(sorted(kinds))


def _redacted(part: Any, name: str, kinds: set[str]) -> Any:
    """A value under its name, without secrets; what kinds there were is added."""
    if isinstance(part, str):
        clean, found = redact(part)
        if not found and name:
            found = _under(name, part)
            clean = f"[REDACTED:{found[0]}]" if found else part
        kinds.update(found)
        return clean
    if isinstance(part, int) and not isinstance(part, bool) and name:
        found = _under(name, part)
        kinds.update(found)
        return f"[REDACTED:{found[0]}]" if found else part
    if isinstance(part, Mapping):
        kept: dict[str, Any] = {}
        for key, item in cast(Mapping[str, Any], part).items():
            shown: str = _redacted(key, "", kinds)
            while shown in kept:  # two secrets of a kind are still two names
                shown += f" {len(kept)}"
            kept[shown] = _redacted(item, key, kinds)
        return kept
    if isinstance(part, list | tuple):
        return [_redacted(item, name, kinds) for item in cast(Sequence[Any], part)]
    return part


def _under(name: str, value: str | int) -> tuple[str, ...]:
    """What kind of secret a value is by the name it stands under. A number is no card unless it is called one, and
    short ones (`pass: 120`) are counts."""
    if CODES.fullmatch(f"{name}: {value}"):
        return ("password",)
    told = f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}"
    kinds = (secret.kind for secret in find(told) if secret.end > len(name) + 1)  # the name may be one itself
    return tuple(kind for kind in kinds if isinstance(value, str) or kind != CARD or "card" in name.lower())
