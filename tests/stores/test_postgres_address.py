"""Addresses of PostgreSQL stores: what is taken out of them, what is refused, and that no secret is shown."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect.adapters import open_store
from recollect.domain.errors import InvalidInput
from recollect.stores.postgres.address import masked, parsed

SECRET = "pass%2Fw0rd"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"postgresql://me:{SECRET}@host:5/db?schema=s", "postgresql://me:***@host:5/db?schema=s"),
        (f"postgres://me@host/db?password={SECRET}&pool=3", "postgres://me@host/db?password=***&pool=3"),
        (f"postgresql://host/db?sslpassword={SECRET}", "postgresql://host/db?sslpassword=***"),
        ("postgresql://me@/db?host=%2Ftmp", "postgresql://me@/db?host=%2Ftmp"),
        (f"postgresql://me:{SECRET}@one,two:6/db", "postgresql://me:***@one,two:6/db"),
        *((f"postgresql://me:{SECRET}{odd}x@host/db?pool=2", "postgresql://me:***@host/db?pool=2") for odd in "#?[@/:"),
    ],
)
def test_an_address_is_shown_without_its_secrets(given: str, shown: str) -> None:
    assert masked(given) == shown
    assert parsed(given).shown == shown
    assert SECRET not in repr(parsed(given))


@pytest.mark.parametrize("odd", ["#", "?", "[", "@", "/", ":", "%23"])
def test_a_password_may_hold_what_ends_a_host(odd: str) -> None:
    found = conninfo_to_dict(parsed(f"postgresql://me:a{odd}b@host/db?pool=2&application_name=x%23y").conninfo)
    wanted = {"user": "me", "password": f"a{unquote(odd)}b", "host": "host", "dbname": "db", "application_name": "x#y"}
    assert found == wanted


def test_our_options_are_taken_out_of_the_address() -> None:
    found = parsed("postgresql://me:x@host/db?schema=s&namespace=a%2Fb&role=r&pool=3&sslmode=require&host=%2Ftmp")
    assert (found.schema, found.namespace, found.role, found.pool) == ("s", "a/b", "r", 3)
    assert parsed("postgresql://host/db?bm25=extension&trigrams=extension").trigrams == "extension"
    assert found.conninfo == "postgresql://me:x@host/db?sslmode=require&host=%2Ftmp"


@pytest.mark.parametrize(
    "wrong",
    [
        "schema=a%22b",
        "role=1",
        "pool=0",
        "pool=\u00b2",
        "namespace=",
        "schema=" + "x" * 64,
        "bm25=1",
        "trigrams=pg_trgm",
    ],
)
def test_a_wrong_option_is_refused_without_repeating_the_address(wrong: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store(f"postgresql://me:{SECRET}@nowhere.invalid/db?{wrong}")
    with pytest.raises(InvalidInput):
        open_store(f"postgresql://me:{SECRET}@[nowhere/db")
    assert caught.value.hint
    assert SECRET not in str(caught.value)
