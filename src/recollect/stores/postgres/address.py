"""Where the server is: a postgresql:// address, with the options that are ours taken out of it.

    postgresql://user:password@host/database?schema=recollect&namespace=team-a&role=recollect_app&pool=10

The password is used to connect and never shown: `shown` is what stats, doctor and messages may print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from recollect.domain.errors import InvalidInput

SCHEMES = ("postgresql://", "postgres://")
OWN_OPTIONS = ("schema", "namespace", "role", "pool", "replica", "reads", "bm25", "trigrams")
READS = ("own", "any")
FINDERS = ("own", "extension")
SECRET_OPTIONS = ("password", "sslpassword", "passfile")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
DEFAULT_SCHEMA = "recollect"
DEFAULT_POOL = 10
HIDDEN = "***"
PLAIN = "%:!$&'()*+,;="
"""What stands in credentials as it is; anything else is escaped, because it ends a host in some addresses."""


@dataclass(frozen=True, slots=True)
class Address:
    """What to connect to and as whom."""

    conninfo: str
    """For the driver only: it holds the password."""
    shown: str
    schema: str = DEFAULT_SCHEMA
    namespace: str | None = None
    """Bound to this tenant: nothing of any other can be read or written, nor counted."""
    role: str | None = None
    """Every transaction steps down to this role."""
    pool: int = DEFAULT_POOL
    replica: str | None = None
    """Host (and port) of a standby that answers recalls; everything else is as in the address itself."""
    reads_own: bool = True
    """A recall sees what this store has written, even if the standby is late."""
    bm25: str = "own"
    """Who finds candidates by words: our own finder, or beside it an extension of the server."""
    trigrams: str = "own"
    """Who finds look-alike words: our own index, or beside it pg_trgm."""

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def is_address(target: str) -> bool:
    """Whether a store's name means a PostgreSQL server."""
    return target.startswith(SCHEMES)


def parsed(target: str) -> Address:
    """The address; a wrong option is InvalidInput, and the message does not repeat the address."""
    scheme, who, where = _cut(target)
    try:
        parts = urlsplit(f"{scheme}://{quote(who, safe=PLAIN)}{'@' if who else ''}{where.replace('#', '%23')}")
    except ValueError as error:
        raise InvalidInput("the address cannot be read", "postgresql://user:password@host:port/database") from error
    given = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in given if name in OWN_OPTIONS}
    rest = [(name, value) for name, value in given if name not in OWN_OPTIONS]
    for name in ("schema", "role"):
        if name in own and not NAME.fullmatch(own[name]):
            raise InvalidInput(f"{name} must be a plain name", "letters, digits and _", name)
    size = own.get("pool", str(DEFAULT_POOL))
    if not size.isdecimal() or not 1 <= int(size) <= 1000:
        raise InvalidInput("pool must lie between 1 and 1000", "10 is usual", "pool")
    if own.get("namespace") == "":
        raise InvalidInput("namespace is empty", "name the tenant, or leave the option out", "namespace")
    if not own.get("namespace", "").isprintable():  # no tenant either, and one such name stands for all of them
        raise InvalidInput("namespace holds a control character", "name the tenant as it was written", "namespace")
    if own.get("replica") == "":
        raise InvalidInput("replica is empty", "name the standby's host, or leave the option out", "replica")
    if own.get("reads", "own") not in READS:
        raise InvalidInput("reads must be own or any", "own: a recall sees this store's writes", "reads")
    for name in ("bm25", "trigrams"):
        if own.get(name, "own") not in FINDERS:
            raise InvalidInput(f"{name} must be own or extension", "own: no extension of the server is used", name)
    return Address(
        conninfo=urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote))),
        shown=masked(target),
        schema=own.get("schema", DEFAULT_SCHEMA),
        namespace=own.get("namespace"),
        role=own.get("role"),
        pool=int(size),
        replica=own.get("replica"),
        reads_own=own.get("reads", "own") == "own",
        bm25=own.get("bm25", "own"),
        trigrams=own.get("trigrams", "own"),
    )


def masked(target: str) -> str:
    """The address without its secrets, for people to read."""
    scheme, who, where = _cut(target)
    if ":" in who:
        who = f"{who.partition(':')[0]}:{HIDDEN}"
    place, question, query = where.partition("?")
    options = "&".join(
        f"{name}={HIDDEN if unquote(name).lower() in SECRET_OPTIONS else value}"
        for name, _, value in (option.partition("=") for option in query.split("&") if option)
    )
    return f"{scheme}://{who}{'@' if who else ''}{place}{question}{options}"


def _cut(target: str) -> tuple[str, str, str]:
    """Scheme, credentials and the rest: as in libpq a password may hold what ends the host of other addresses."""
    scheme, _, rest = target.partition("://")
    end = rest.partition("/")[0].rfind("@")
    if end < 0:  # a / in the password, as long as no option follows
        end = rest.partition("?")[0].rfind("@")
    return scheme, rest[: max(end, 0)], rest[end + 1 :]
