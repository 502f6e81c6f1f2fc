"""Look-alike words through pg_trgm: the same answers as by looking at every word, whatever becomes of the extension.

`make postgres-contrib` runs it, on the server that has pg_trgm and btree_gin.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.domain.changes import Put
from recollect.domain.errors import StoreUnavailable
from recollect.domain.memory import Memory, Scope
from recollect.domain.trigrams import jaccard, trigrams
from recollect.ports import Store
from recollect.stores.postgres.alike import ALONE, SHARED
from recollect.stores.postgres.lexemes import Tokens
from recollect.stores.postgres.opening import open_postgres
from tests.postgres_server import (
    APP,
    METADATA_AS_TEXT,
    OWNER,
    STREAMING,
    TestServer,
    eventually,
    running_server,
    running_standby,
    shared_server,
)

pytestmark = pytest.mark.postgres

Likely = list[tuple[str, float]]
LOCALES = {"c": "LOCALE 'C'", "utf8": "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"}
"""In the first pg_trgm reads no letter beyond ASCII, in the second all of them."""
BOTH = ("btree_gin", "pg_trgm")
LETTERS = "abc01ßøд"
"""Letters that folding leaves as they are; the first five are plain."""
TOKENS = Tokens()


def database(name: str, extensions: Sequence[str] = BOTH, locale: str = LOCALES["c"]) -> str:
    """The address of a store in a database of its own, which asks for pg_trgm."""
    server = shared_server()
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING utf8 {locale} OWNER {OWNER}")
    execute(name, *(f"CREATE EXTENSION {extension}" for extension in ("vector", *extensions)))
    return address_in(name)


def address_in(name: str, user: str = OWNER, **options: str) -> str:
    options = {"trigrams": "extension", "schema": "recollect", **options}
    return shared_server().address(user, **options).replace("/postgres?", f"/{name}?")


def execute(name: str, *statements: str) -> list[tuple[object, ...]]:
    """As the superuser in a database; the rows of the last statement."""
    address = shared_server().address("postgres").replace("/postgres?", f"/{name}?")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET search_path = recollect, public")
        done = [connection.execute(statement.encode()) for statement in statements]
        return done[-1].fetchall() if done and done[-1].description else []


@contextmanager
def opened(address: str, *, read_only: bool = False) -> Iterator[Store]:
    store = open_postgres(address, read_only=read_only)
    try:
        yield store
    finally:
        store.close()


def fill(store: Store, words: Sequence[str], tenant: str = "default") -> None:
    parts = [words[at : at + 500] for at in range(0, len(words), 500)]
    store.records.write(
        [Put(Memory(f"{tenant}{at}", " ".join(part), scope=Scope(tenant))) for at, part in enumerate(parts)]
    )


def alike(store: Store, word: str, minimum: float = 0.3, limit: int = 8) -> Likely:
    assert store.text is not None
    return store.text.similar(word, minimum, limit)


def looked_at_all(words: Sequence[str], word: str, minimum: float = 0.3, limit: int = 8) -> Likely:
    """The right answer: every word judged."""
    asked = trigrams("".join(TOKENS.words(word)))
    known = {folded for each in words for folded in TOKENS.words(each)}
    judged = [(each, jaccard(asked, trigrams(each))) for each in known]
    return sorted([one for one in judged if one[1] >= minimum and one[1] > 0], key=lambda one: (-one[1], one[0]))[
        :limit
    ]


def indexes(name: str) -> set[str]:
    """The finders' indexes that there are, all of them whole."""
    found = execute(
        name,
        "SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid"
        " WHERE i.indrelid = 'recollect.words'::regclass AND i.indisvalid AND NOT i.indisunique",
    )
    return {str(one) for (one,) in found}


def scans(name: str) -> dict[str, int]:
    """How often an index was used by connections that are closed."""
    found = execute(name, "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname = 'words'")
    return {str(index): int(str(count)) for index, count in found}


@cache
def vocabulary() -> list[str]:
    """Words of few letters, so that they share many: plain ones, others and mixed, from one letter to hundreds."""
    chance = random.Random(7)
    plain = ["".join(chance.choices(LETTERS[:5], k=1 + number % 14)) for number in range(300)]
    mixed = ["".join(chance.choices(LETTERS, k=1 + number % 14)) for number in range(300)]
    long = ["".join(chance.choices("abcdefghij", k=size)) for size in (70, 300, 1900)]
    changed = [f"{word[:-3]}z{word[-2:]}" for word in long]
    return [
        *plain,
        *mixed,
        *long,
        *changed,
        "straße",
        "strasse",
        "strase",
        "banana",
        "ananas",
        "aaaa",
        "aaaaa",
        "o'clock",
    ]


@pytest.fixture(scope="module", params=LOCALES)
def forced(request: pytest.FixtureRequest) -> Iterator[tuple[str, Store]]:
    """A database that never reads the words one by one, and a store with the vocabulary."""
    name = f"forced_{request.param}"
    address = database(name, locale=LOCALES[request.param])
    execute(name, f"ALTER DATABASE {name} SET enable_seqscan = off")
    with opened(address) as store:
        fill(store, vocabulary())
        yield name, store


QUESTIONS = st.one_of(
    st.text(LETTERS + "' ", min_size=1, max_size=16),
    st.tuples(st.sampled_from(vocabulary()), st.integers(0, 400), st.sampled_from([*LETTERS, "", "zz"])).map(
        lambda made: made[0][: made[1]] + made[2] + made[0][made[1] + 1 :]
    ),
)


@settings(max_examples=200, deadline=None)
@given(word=QUESTIONS, minimum=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]), limit=st.integers(1, 700))
def test_no_word_is_lost_and_none_is_judged_otherwise(
    forced: tuple[str, Store], word: str, minimum: float, limit: int
) -> None:
    assert alike(forced[1], word, minimum, limit) == looked_at_all(vocabulary(), word, minimum, limit)


def test_every_word_finds_itself_and_what_an_older_process_asks_is_answered(forced: tuple[str, Store]) -> None:
    name, store = forced
    with psycopg.connect(shared_server().address().replace("/postgres?", f"/{name}?")) as connection:
        connection.execute("SET search_path = recollect, public")
        connection.execute("SELECT set_config('recollect.index', %s, false)", ("\x01everyone",))
        for word in vocabulary()[::7]:
            folded = "".join(TOKENS.words(word))
            assert alike(store, word, 1.0, 3)[0] == (folded, 1.0)
            asked = (sorted(trigrams(folded)), 0.3, 20)
            found = connection.execute("SELECT * FROM similar_words(%s, %s, %s)", asked).fetchall()
            assert found == looked_at_all(vocabulary(), word, 0.3, 20)
    eventually(lambda: scans(name)["words_plain"] > 0)


def test_its_index_finds_in_a_large_table_that_no_planner_has_seen() -> None:
    chance = random.Random(3)
    words = ["".join(chance.choices("abcdefghijklmnop", k=9)) for _ in range(20_000)]
    words += ["".join(chance.choices("абвгдежзиклмнопр", k=9)) for _ in range(5_000)]
    address = database("large")
    with opened(address) as store:
        fill(store, words)
    for asked, each in enumerate((address, f"{address}&namespace=default"), 1):
        with opened(each) as store:
            for word in (words[0][:-1], words[-1][:-1]):
                assert alike(store, word) == looked_at_all(words, word)
        # No plain word can be like a Cyrillic one: its index is asked for one of the two.
        eventually(partial(lambda wanted: scans("large").items() >= wanted, {("words_plain", asked)}))
        eventually(partial(lambda wanted: scans("large").items() >= wanted, {("words_other", 2 * asked)}))
    assert indexes("large") == {*SHARED}


def test_a_store_of_one_tenant_learns_no_other_tenants_words() -> None:
    address = database("walls")
    with opened(f"{address}&role={APP}") as store:
        fill(store, ["kestrel", "straße"], "a")
        fill(store, ["kestrels", "straßen"], "b")
        assert alike(store, "kestrel") == [("kestrel", 1.0), ("kestrels", 6 / 9)]
    execute("walls", "ALTER DATABASE walls SET enable_seqscan = off")
    for user in (OWNER, APP):
        for tenant, plural in (("a", ""), ("b", "s")):
            with opened(address_in("walls", user, namespace=tenant)) as store:
                assert [word for word, _ in alike(store, "kestrel", 0.1)] == [f"kestrel{plural}"]
                assert [word for word, _ in alike(store, "straße", 0.1)] == [f"straße{'n' if plural else ''}"]


def test_a_role_that_only_reads_finds_too() -> None:
    address = database("reading")
    with opened(address) as store:
        fill(store, ["kestrel"])
    execute(
        "reading",
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA recollect TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA recollect TO reader",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA recollect TO reader",
        "ALTER ROLE reader SET default_transaction_read_only = on",
        "ALTER DATABASE reading SET enable_seqscan = off",
    )
    for read_only in (True, False):
        with opened(address_in("reading", "reader"), read_only=read_only) as store:
            assert alike(store, "kestrl") == looked_at_all(["kestrel"], "kestrl")
    eventually(lambda: scans("reading")["words_plain"] > 0)


def test_no_setting_is_left_behind() -> None:
    address = database("settings")
    with opened(address) as store:
        fill(store, ["kestrel"])
    show = "SELECT current_setting('pg_trgm.similarity_threshold')"
    with psycopg.connect(shared_server().address().replace("/postgres?", "/settings?")) as connection:
        connection.execute("SET search_path = recollect, public")
        connection.execute("SELECT set_config('recollect.index', %s, false)", ("\x01everyone",))
        asked = "SELECT word FROM alike_words(%s, 0.9, 3, 'kestrel')", (sorted(trigrams("kestrel")),)
        assert connection.execute(*asked).fetchall() == [("kestrel",)]
        assert connection.execute(show).fetchone() == ("0.3",)
        connection.commit()
        connection.execute("SET LOCAL pg_trgm.similarity_threshold = 0.77")
        assert connection.execute(*asked).fetchall() == [("kestrel",)]
        assert connection.execute(show).fetchone() == ("0.77",)
        connection.commit()
        assert connection.execute(show).fetchone() == ("0.3",)


def test_the_owner_follows_when_the_extension_comes_and_goes() -> None:
    address = database("coming", ())
    words = ["kestrel", "kestrels", "falcon", "straße"]

    def right(store: Store) -> bool:
        return all(
            alike(store, one) == looked_at_all(words, one) for one in ("kestrl", "kestrel", "strasse", "falconø")
        )

    def said(store: Store) -> str:
        return store.care.stats().engine_version

    with opened(address) as store, opened(f"{address}&role={APP}"), opened(address_in("coming", APP)) as app:
        fill(store, words)
        assert "no pg_trgm, no BM25" in said(store) and right(store) and indexes("coming") == {*ALONE}
        execute("coming", "CREATE EXTENSION pg_trgm")
        assert store.care.tidy()["indexed"] == 0
        assert "not used: without btree_gin" in said(store) and right(store)
        execute("coming", "CREATE EXTENSION btree_gin")
        assert "not used: no index here" in said(store) and right(store)
        assert app.care.tidy()["indexed"] == 0  # only the owner can
        assert store.care.tidy()["indexed"] == 2
        assert store.care.tidy()["indexed"] == 0
        assert "pg_trgm 1.6 (finds look-alike words)" in said(app)
        assert right(store) and right(app) and indexes("coming") == {*SHARED}
        execute("coming", "DROP EXTENSION pg_trgm CASCADE")
        assert right(store) and right(app) and indexes("coming") == {"words_other"}
        assert "no pg_trgm, look-alike words have no index" in said(app)
        assert store.care.check() == []
        with opened(address):  # as good as upkeep
            assert right(store) and indexes("coming") == {*ALONE}
        execute("coming", "CREATE EXTENSION pg_trgm")
        with opened(address):
            assert right(store) and indexes("coming") == {*SHARED}
        execute("coming", "DROP EXTENSION btree_gin CASCADE")
        assert right(store) and store.care.tidy()["indexed"] == 2 and indexes("coming") == {*ALONE}


def test_an_owner_whose_address_does_not_ask_for_it_goes_back() -> None:
    address = database("unasked")
    with opened(address) as store:
        fill(store, ["kestrel"])
        with opened(address.replace("trigrams=extension", "trigrams=own")) as plain:
            assert indexes("unasked") == {*ALONE}
            assert "pg_trgm 1.6 (not used: the address does not ask" in plain.care.stats().engine_version
            assert alike(store, "kestrl") == alike(plain, "kestrl") == looked_at_all(["kestrel"], "kestrl")


def test_the_extension_may_live_in_a_schema_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    address = database("elsewhere", ())
    execute("elsewhere", "CREATE SCHEMA contrib", *(f"CREATE EXTENSION {one} SCHEMA contrib" for one in BOTH))
    with opened(address) as store:
        assert "not used: the owner of the tables may not use its schema" in store.care.stats().engine_version
        assert indexes("elsewhere") == {*ALONE} and not caplog.records
        fill(store, ["kestrel"])
        execute("elsewhere", f"GRANT USAGE ON SCHEMA contrib TO {OWNER}")
        execute("elsewhere", "ALTER DATABASE elsewhere SET enable_seqscan = off")
    with opened(f"{address}&role={APP}") as store:
        assert indexes("elsewhere") == {*SHARED}
        assert alike(store, "kestrl") == looked_at_all(["kestrel"], "kestrl")
        execute("elsewhere", "ALTER EXTENSION pg_trgm SET SCHEMA public")
        assert alike(store, "kestrl") == looked_at_all(["kestrel"], "kestrl")
    eventually(lambda: scans("elsewhere")["words_plain"] > 0)


def test_many_that_open_at_once_and_an_extension_that_comes_and_goes_make_no_answer_wrong() -> None:
    """To drop an extension locks its indexes before their table: whoever is at it then may be told so, this once."""
    address = database("restless")
    words = ["kestrel", "straße"]
    right = looked_at_all(words, "kestrl")
    wrong: list[object] = []
    over = threading.Event()

    def repeated(address: str, work: Callable[[Store], None]) -> Callable[[], None]:
        def all_the_time() -> None:
            while not over.is_set():
                try:
                    with opened(address) as store:
                        work(store)
                except BaseException as error:
                    told = psycopg.errors.DeadlockDetected | psycopg.errors.InternalError_
                    if not (isinstance(error, StoreUnavailable) and isinstance(error.__cause__, told)):
                        wrong.append(error)

        return all_the_time

    def ask(store: Store) -> None:
        wrong.extend(found for _ in range(50) if (found := alike(store, "kestrl")) != right)

    def tidy(store: Store) -> None:
        store.care.tidy()

    with opened(f"{address}&role={APP}") as store:
        fill(store, words)
    asking, tidying = repeated(address_in("restless", APP), ask), repeated(address, tidy)
    threads = [threading.Thread(target=work) for work in (asking, asking, tidying, tidying)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            with suppress(psycopg.errors.DeadlockDetected):
                execute("restless", "DROP EXTENSION pg_trgm CASCADE", "CREATE EXTENSION pg_trgm")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    with opened(address) as store:
        assert indexes("restless") == {*SHARED} and alike(store, "kestrl") == right


def test_tables_of_the_version_before_learn_it_and_whoever_might_ask_may_ask_on() -> None:
    address = database("before")
    with opened(address.replace("trigrams=extension", "trigrams=own")) as store:
        fill(store, ["kestrel"])
    execute(
        "before",
        "CREATE ROLE asker LOGIN",
        "GRANT USAGE ON SCHEMA recollect TO asker",
        "GRANT SELECT ON ALL TABLES IN SCHEMA recollect TO asker",
        "DROP FUNCTION alike_words",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA recollect TO asker",
        METADATA_AS_TEXT.format(schema="recollect"),
        "DELETE FROM versions WHERE version > 8",
    )
    with opened(address) as store:
        assert alike(store, "kestrl") == looked_at_all(["kestrel"], "kestrl")
        assert indexes("before") == {*SHARED}
    with opened(address_in("before", "asker"), read_only=True) as store:
        assert alike(store, "kestrl") == looked_at_all(["kestrel"], "kestrl")


def _stands_by(standby: TestServer) -> str:
    return standby.address(trigrams="extension", schema="recollect")


def test_a_standby_finds_through_it() -> None:
    with running_server(settings=STREAMING) as primary, running_standby(primary) as standby:
        with opened(primary.address(trigrams="extension", schema="recollect")) as store:
            primary.execute("ALTER DATABASE postgres SET enable_seqscan = off")
            fill(store, ["kestrel", "straße"])

        def is_there() -> bool:
            with psycopg.connect(standby.address("postgres")) as connection:
                return connection.execute("SELECT to_regclass('recollect.words_plain')").fetchone() != (None,)

        eventually(is_there)
        with opened(_stands_by(standby), read_only=True) as there, opened(_stands_by(standby)) as writing:
            eventually(lambda: alike(there, "kestrl") == looked_at_all(["kestrel"], "kestrl"))
            assert alike(writing, "straßen") == looked_at_all(["straße"], "straßen")
