"""Look-alike words: by our own trigrams, and where the address asks for it (`trigrams=extension`) through pg_trgm.

pg_trgm only finds; our own Jaccard judges, so that every answer is the same with it as without it. It pads words in its
own way, and in some locales has no trigrams for letters beyond ASCII. So only words of [a-z0-9], the plain ones, are in
its index, and the others in ours. How the finder asks depends on the indexes that are there; what it finds does not: an
administrator may install or drop the extension at any time, and the owner of the tables follows when he opens the store
and at upkeep. We never install it: a dump of such a store could not be brought back on every server.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from recollect.domain.errors import RecollectError
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.connection import EVERYONE, Connection, Server, one, run

log = logging.getLogger(__name__)

CHANGING = 0x5243_4C58
"""The class of the advisory lock of whoever changes the indexes; the schema's name is the other half of its key."""
LOCK_S = 1
"""So long a change of indexes waits for others, and others behind it."""

EXTENSIONS = ("pg_trgm", "btree_gin")
PLAIN = "^[a-z0-9]+$"
OWN = (
    "CREATE INDEX {name} ON {table} USING gin (array_to_tsvector(trigrams || md5(namespace)))"
    " WITH (gin_pending_list_limit = 64) WHERE "
)
ALONE: Mapping[str, str] = {
    "words_short": f"{OWN}cardinality(trigrams) < 8",
    "words_long": f"{OWN}cardinality(trigrams) >= 8",
}
"""Our own indexes over all words, as the schema is made."""
SHARED: Mapping[str, str] = {
    "words_plain": "CREATE INDEX {name} ON {table} USING gin (namespace, word {extension}.gin_trgm_ops)"
    f" WITH (gin_pending_list_limit = 64) WHERE word ~ '{PLAIN}'",
    "words_other": f"{OWN}word !~ '{PLAIN}'",
}
"""The index of pg_trgm, the tenant first as btree_gin lets it, and our own over the words that are not plain."""

ALIKE_INDEXES = "; ".join(
    [
        "DROP INDEX IF EXISTS words_trigrams, words_alike, words_short, words_long",
        *(statement.format(name=name, table="words") for name, statement in ALONE.items()),
    ]
)

ALIKE = rf"""
-- Words by the Jaccard of their trigrams, best first. Whoever reaches the minimum has at least `needed` of the trigrams
-- asked for (the more, the longer he is), and so two of any `size - needed + 2` of them: pairs find, so that few words
-- have to be looked at. Where one is enough or pairs would be too many, he has one of any `size - needed + 1`. The ends
-- of words are the commonest trigrams and come last.
--
-- pg_trgm is asked for `runs`, the [a-z0-9] of the word with blanks between: whatever trigrams a plain word shares with
-- ours it shares with these too. Both sides have others in pg_trgm: a plain word one more than in our way, the runs at
-- most length + 1. So the union u of our way grows by length + 2 - size at most: who shares s, s / u >= minimum, has a
-- similarity of s / (u + growth) or more, and as u >= size that is at least minimum * size / (size + growth).
CREATE OR REPLACE FUNCTION alike_words(asked text[], minimum double precision, most bigint, spelt text)
RETURNS TABLE (word text, likeness double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    size int := cardinality(asked);
    ordered text[] := ARRAY(
        SELECT '''' || replace(replace(one, '\', '\\'), '''', '''''') || '''' FROM unnest(asked) one
        ORDER BY one LIKE '%$%', one);
    everyone boolean := current_setting('recollect.index') = '{EVERYONE}';
    runs text := btrim(regexp_replace(spelt, '[^a-z0-9]+', ' ', 'g'));
    readable int := (SELECT count(*) FROM unnest(asked) one WHERE one ~ '^[a-z0-9$]+$');
    threshold text := 'pg_trgm.similarity_threshold';
    before text := current_setting(threshold, true);
    extension text;
    judged text;
    kind record;
    needed int;
    by_pairs boolean;
    finders text[];
    wanted text;
    parts text[];
BEGIN
    PERFORM FROM words LIMIT 0;  -- from here on nobody can drop an index that is seen
    SELECT n.nspname INTO extension FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[1]
        JOIN pg_namespace n ON n.oid = o.opcnamespace WHERE i.indexrelid = to_regclass('words_plain');
    SELECT format('SELECT w.word, s.shared::double precision / (cardinality(w.trigrams) + $1 - s.shared) AS likeness'
        ' FROM words w, LATERAL (SELECT %s AS shared OFFSET 0) s WHERE is_counted(w.namespace) AND s.shared > 0'
        ' AND cardinality(w.trigrams) BETWEEN $1 * $2 - 1e-9 AND $1 / greatest($2, 1e-9) + 1e-9 AND ',
        string_agg(format('(%L = ANY (w.trigrams))::int', one), ' + ')) INTO judged FROM unnest(asked) one;
    FOR kind IN SELECT 1 AS least, 'cardinality(w.trigrams) < 8' AS condition WHERE extension IS NULL
        UNION ALL SELECT 8, 'cardinality(w.trigrams) >= 8' WHERE extension IS NULL
        UNION ALL SELECT 1, 'w.word !~ ''{PLAIN}''' WHERE extension IS NOT NULL
    LOOP
        needed := ceil(minimum * (size + greatest(minimum * size, kind.least)) / (1 + minimum) - 1e-9);
        by_pairs := needed BETWEEN 2 AND size AND size - needed <= 40;
        finders := ordered[:size - greatest(needed, 1) + 1 + by_pairs::int];
        CONTINUE WHEN cardinality(finders) = 0;
        wanted := array_to_string(finders, ' | ');
        IF by_pairs THEN
            SELECT string_agg(format('%s & (%s)', one, array_to_string(finders[place + 1:], ' | ')), ' | ') INTO wanted
                FROM unnest(finders) WITH ORDINALITY f (one, place) WHERE place < cardinality(finders);
        END IF;
        wanted := format('(%s)', wanted)
            || CASE WHEN everyone THEN '' ELSE ' & ' || md5(current_setting('recollect.index')) END;
        parts := parts || (judged || format('%s AND array_to_tsvector(w.trigrams || md5(w.namespace)) @@ %L',
            kind.condition, wanted));
    END LOOP;
    IF extension IS NOT NULL AND readable > 0 AND readable >= minimum * size - 1e-9 THEN
        parts := parts || (judged || format('w.word ~ ''{PLAIN}'' AND w.word OPERATOR(%I.%%) %L', extension, runs)
            || CASE WHEN everyone THEN '' ELSE format(' AND w.namespace = %L', current_setting('recollect.index')) END);
        PERFORM set_config(threshold, greatest(0, least(1,
            minimum * size / (size + greatest(length(runs) + 2 - size, 0)) - 1e-6))::text, true);
    END IF;
    IF parts IS NOT NULL THEN
        RETURN QUERY EXECUTE format('SELECT DISTINCT word, likeness FROM (%s) found WHERE likeness >= $2'
            ' ORDER BY likeness DESC, word LIMIT $3', array_to_string(parts, ' UNION ALL ')) USING size, minimum, most;
    END IF;
    IF extension IS NOT NULL THEN
        PERFORM set_config(threshold, coalesce(before, '0.3'), true);
    END IF;
END $$;

-- For processes of an older version, which tell the trigrams alone: pg_trgm is asked for each of them as a word.
CREATE OR REPLACE FUNCTION similar_words(asked text[], minimum double precision, most bigint)
RETURNS TABLE (word text, likeness double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS
    $$ SELECT * FROM alike_words(asked, minimum, most, array_to_string(asked, ' ')) $$;

REVOKE EXECUTE ON FUNCTION alike_words, similar_words FROM PUBLIC;
DO $$
DECLARE
    reader regrole;
BEGIN
    FOR reader IN SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
        WHERE p.oid = 'similar_words'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION alike_words TO %s', reader);
    END LOOP;
END $$;
"""

STATE = """
SELECT s.place, s.version, s.has_usage, EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'btree_gin'),
    ARRAY(SELECT x.relname::text FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid),
    pg_has_role(session_user, c.relowner, 'USAGE') AND to_regproc(%s) IS NOT NULL
        AND NOT current_setting('transaction_read_only')::boolean
FROM pg_class c LEFT JOIN LATERAL (
    SELECT n.nspname AS place, e.extversion AS version, has_schema_privilege(c.relowner, n.oid, 'USAGE') AS has_usage
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'
) s ON true
WHERE c.oid = to_regclass(%s)
"""


@dataclass(frozen=True, slots=True)
class State:
    """What the server has of the extensions, which indexes stand on our words, and whether we may change them."""

    place: str | None
    version: str | None
    has_usage: bool | None
    has_btree: bool
    indexes: list[str]
    is_ours: bool
    asked: bool
    """The address asks for pg_trgm."""

    @property
    def wanted(self) -> Mapping[str, str]:
        return SHARED if self.asked and self.has_usage and self.has_btree else ALONE

    @property
    def missing(self) -> list[str]:
        return [name for name in self.wanted if name not in self.indexes]

    @property
    def surplus(self) -> list[str]:
        return [name for name in (*ALONE, *SHARED) if name in self.indexes and name not in self.wanted]


def described(connection: Connection, address: Address) -> str:
    """Whether pg_trgm finds look-alike words or why not, for people to read."""
    state = _state(connection, address)
    if "words_plain" in state.indexes:
        return f"pg_trgm {state.version} (finds look-alike words)"
    how = "no pg_trgm" if state.version is None else f"pg_trgm {state.version} (not used: {_reason(state)})"
    if not {*ALONE} <= {*state.indexes}:
        how += ", look-alike words have no index: upkeep by the owner of the tables builds one"
    return how


def _reason(state: State) -> str:
    if not state.asked:
        return "the address does not ask for it with trigrams=extension"
    if not state.has_btree:
        return "without btree_gin no tenant can stand in its index"
    if not state.has_usage:
        return "the owner of the tables may not use its schema"
    return "no index here, the owner of the tables builds one when he opens the store, and at upkeep"


def keep(server: Server) -> int:
    """Let the indexes be those that address and server allow; how many were built. Only the owner of words can."""
    if server.read_only:
        return 0
    try:
        with server.plain() as connection:
            state = _state(connection, server.address)
            built = _build(connection, server.address) if state.is_ours and state.missing else 0
            if state.is_ours and (built or state.surplus):
                _clear(connection, server.address)
            return built
    except RecollectError as error:
        log.warning("the indexes of look-alike words are left as they are: %s", error)
        return 0


def _build(connection: Connection, address: Address) -> int:
    """Writers wait meanwhile, readers do not."""
    with connection.transaction():
        state = _alone(connection, address)
        if state is None:
            return 0
        table, extension = sql.Identifier(address.schema, "words"), sql.Identifier(state.place or "none")
        names = {"table": table.as_string(connection), "extension": extension.as_string(connection)}
        if "words_plain" in state.missing:
            _hold(connection, sql.Identifier(address.schema, "alike_words"))
        for name in state.missing:
            run(connection, state.wanted[name].format(name=name, **names))
        return len(state.missing)


def _hold(connection: Connection, function: sql.Identifier) -> None:
    """Let nobody drop the extensions until the end of the transaction.

    Nothing else would keep them while an index is made with them, and one that is left without its operators breaks the
    whole table. No statement locks an extension; to depend on it does, and it takes no more than a function of ours.
    """
    for extension in EXTENSIONS:
        for how in ("DEPENDS", "NO DEPENDS"):
            statement = sql.SQL("ALTER FUNCTION {} {} ON EXTENSION {}")
            connection.execute(statement.format(function, sql.SQL(how), sql.Identifier(extension)))


def _clear(connection: Connection, address: Address) -> None:
    """Readers wait for this: nothing else is done in it."""
    with connection.transaction():
        state = _alone(connection, address)
        if state is not None and state.surplus and not state.missing:
            names = sql.SQL(", ").join(sql.Identifier(address.schema, name) for name in state.surplus)
            connection.execute(sql.SQL("DROP INDEX {}").format(names))


def _alone(connection: Connection, address: Address) -> State | None:
    """The state as nobody else changes it until the end of the transaction; None where somebody is at it."""
    run(connection, f"SET LOCAL lock_timeout = '{LOCK_S}s'; SET LOCAL statement_timeout = 0")
    is_free = one(connection, "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", (CHANGING, address.schema))
    return _state(connection, address) if is_free else None


def _state(connection: Connection, address: Address) -> State:
    names = f'"{address.schema}".alike_words', f'"{address.schema}".words'
    return State(*one(connection, STATE, names), asked=address.trigrams == "extension")
