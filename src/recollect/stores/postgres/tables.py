"""The tables, the walls between tenants and the finders, as SQL. `schema.py` tells in which order they come to be.

Every table of a tenant's rows has its namespace first in every key, so that a distributed PostgreSQL can shard by it
and every join stays on one shard. `models`, `settings`, `secrets` and `versions` are small and the same for all.

Row-level security: a transaction sees the tenant named by `recollect.namespace`; the counts of the index are those of
`recollect.index` (the tenant again, or all of them in a store that serves many). The full-text operators are not
leakproof, so under row-level security no index could serve them: that is why `texts` and `words` are searched by
functions of their owner that carry the tenant's condition in themselves.
"""

from __future__ import annotations

from recollect.stores.postgres.connection import EVERYONE
from recollect.stores.postgres.lexemes import LONGEST_NAME
from recollect.stores.tokens import MARK

MEMORIES = """
CREATE SEQUENCE numbers;
CREATE TABLE memories (
    namespace text COLLATE "C" NOT NULL CHECK (namespace <> ''),
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    project text COLLATE "C",
    session text COLLATE "C",
    type text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    accessed_at bigint NOT NULL,
    access_count bigint NOT NULL,
    version bigint NOT NULL,
    pinned smallint NOT NULL,
    sensitive smallint NOT NULL,
    confidence double precision NOT NULL,
    importance double precision NOT NULL,
    source text NOT NULL,
    key text COLLATE "C",
    tags json NOT NULL,
    metadata json NOT NULL,
    checksum bigint NOT NULL,
    text_hash bigint NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (namespace, number),
    UNIQUE (namespace, id)
);
CREATE INDEX memories_id ON memories (id);
CREATE INDEX memories_created ON memories (namespace, created_at, id);
CREATE INDEX memories_accessed ON memories (namespace, accessed_at, id);
CREATE INDEX memories_project ON memories (namespace, project, created_at) WHERE project IS NOT NULL;
CREATE INDEX memories_session ON memories (namespace, session, created_at, number) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX memories_key ON memories (namespace, key) WHERE key IS NOT NULL;
CREATE INDEX memories_text ON memories (namespace, text_hash);

CREATE TABLE links (
    namespace text COLLATE "C" NOT NULL,
    source bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    target bigint NOT NULL,
    created_at bigint NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (namespace, source, type, target),
    FOREIGN KEY (namespace, source) REFERENCES memories (namespace, number) ON DELETE CASCADE,
    FOREIGN KEY (namespace, target) REFERENCES memories (namespace, number) ON DELETE CASCADE
);
CREATE INDEX links_target ON links (namespace, target);
CREATE TABLE tombstones (
    namespace text COLLATE "C" NOT NULL, hash bytea NOT NULL, PRIMARY KEY (namespace, hash)
);
CREATE TABLE settings (name text COLLATE "C" PRIMARY KEY, value json NOT NULL);
CREATE TABLE secrets (name text PRIMARY KEY, value bytea NOT NULL);
"""

VECTORS = """
CREATE TABLE models (
    name text COLLATE "C" PRIMARY KEY, model int NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY, dimension int
);
CREATE TABLE vectors (
    namespace text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    model int NOT NULL REFERENCES models (model),
    passage smallint NOT NULL,
    start int,
    stop int,
    checksum bigint NOT NULL,
    data bytea NOT NULL,
    code halfvec NOT NULL,
    PRIMARY KEY (namespace, number, model, passage),
    FOREIGN KEY (namespace, number) REFERENCES memories (namespace, number) ON DELETE CASCADE
);
ALTER TABLE vectors ALTER COLUMN code SET STORAGE PLAIN;
CREATE TABLE outbox (
    namespace text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    model int NOT NULL REFERENCES models (model),
    attempts int NOT NULL DEFAULT 0,
    retry_at bigint NOT NULL DEFAULT 0,
    worker bigint NOT NULL DEFAULT 0,
    leased_until bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, number, model),
    FOREIGN KEY (namespace, number) REFERENCES memories (namespace, number) ON DELETE CASCADE
);
CREATE INDEX outbox_order ON outbox (model, attempts, number);
CREATE INDEX outbox_worker ON outbox (worker) WHERE worker <> 0;
"""

# How far a model has been asked for the memories that were there before it; NULL: for all of them.
ENTERED = """
ALTER TABLE models ADD COLUMN entered_namespace text COLLATE "C", ADD COLUMN entered_number bigint;
"""

TEXTS = """
CREATE TABLE texts (
    namespace text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    content_tokens int NOT NULL,
    length int NOT NULL,
    terms tsvector NOT NULL,
    tokens bytea NOT NULL,
    about bigint,
    PRIMARY KEY (namespace, number),
    FOREIGN KEY (namespace, number) REFERENCES memories (namespace, number) ON DELETE CASCADE
);
ALTER TABLE texts ALTER COLUMN tokens SET STORAGE EXTERNAL;
CREATE INDEX texts_about ON texts (namespace, about) WHERE about IS NOT NULL;
CREATE INDEX texts_terms ON texts USING gin (terms) WITH (gin_pending_list_limit = 256);
CREATE TABLE terms (
    namespace text COLLATE "C" NOT NULL, term text COLLATE "C" NOT NULL, memories bigint NOT NULL,
    PRIMARY KEY (namespace, term)
) WITH (fillfactor = 70);
CREATE INDEX terms_term ON terms (term);
CREATE TABLE words (
    namespace text COLLATE "C" NOT NULL, word text COLLATE "C" NOT NULL, memories bigint NOT NULL,
    trigrams text[] COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, word)
) WITH (fillfactor = 70);
CREATE TABLE counts (
    namespace text COLLATE "C" PRIMARY KEY, memories bigint NOT NULL, able bigint NOT NULL, tokens bigint NOT NULL
) WITH (fillfactor = 50);
"""

FINDERS = f"""
CREATE OR REPLACE FUNCTION is_counted(namespace text) RETURNS boolean LANGUAGE sql STABLE AS
    $$ SELECT current_setting('recollect.index', true) IN (namespace, '{EVERYONE}') $$;

-- The numbers of the tenant's texts that match: all of them, or the `most` best by the weights of the terms they
-- hold and by their length, as if each term occurred once. phrases: token streams that must all occur.
CREATE OR REPLACE FUNCTION find_texts(
    wanted tsquery, phrases bytea[], finders tsquery[], weights double precision[], average double precision,
    most bigint, made_from bigint, made_before bigint, only_ids text[], without_ids text[]
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    tenant text := current_setting('recollect.namespace');
    worth text;
    conditions text := '';
BEGIN
    IF cardinality(phrases) > 0 THEN
        conditions := ' AND NOT EXISTS (SELECT 1 FROM unnest($2) phrase WHERE position(phrase IN t.tokens) = 0)';
    END IF;
    IF coalesce(made_from, made_before) IS NOT NULL OR only_ids IS NOT NULL OR without_ids IS NOT NULL THEN
        conditions := conditions || ' AND EXISTS (SELECT 1 FROM memories m WHERE m.namespace = t.namespace'
            ' AND m.number = t.number AND ($3 IS NULL OR m.created_at >= $3) AND ($4 IS NULL OR m.created_at < $4)'
            ' AND ($5 IS NULL OR m.id = ANY ($5)) AND ($6 IS NULL OR m.id <> ALL ($6)))';
    END IF;
    IF most IS NOT NULL THEN
        SELECT string_agg(
            format('CASE WHEN t.terms @@ %L::tsquery THEN %s::double precision ELSE 0 END', finder, weight), ' + ')
            INTO worth FROM unnest(finders, weights) f (finder, weight);
        conditions := conditions || format(
            ' ORDER BY (%s) / (1.3 + t.length * %s::double precision) DESC, t.number LIMIT %s',
            coalesce(worth, '0'), 0.9 / greatest(average, 1e-9), most);
    END IF;
    RETURN QUERY EXECUTE 'SELECT t.number FROM texts t WHERE t.terms @@ $1'
        ' AND t.namespace = $7' || conditions
        USING wanted, phrases, made_from, made_before, only_ids, without_ids, tenant;
END $$;

-- The same for alternatives, each looked for by itself: cheaper than asking every found text for each of them.
CREATE OR REPLACE FUNCTION find_any(
    finders tsquery[], weights double precision[], average double precision, most bigint, made_from bigint,
    made_before bigint, only_ids text[], without_ids text[]
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    tenant text := current_setting('recollect.namespace');
    parts text;
    conditions text := '';
BEGIN
    IF coalesce(made_from, made_before) IS NOT NULL OR only_ids IS NOT NULL OR without_ids IS NOT NULL THEN
        conditions := ' AND EXISTS (SELECT 1 FROM memories m WHERE m.namespace = t.namespace'
            ' AND m.number = t.number AND ($1 IS NULL OR m.created_at >= $1) AND ($2 IS NULL OR m.created_at < $2)'
            ' AND ($3 IS NULL OR m.id = ANY ($3)) AND ($4 IS NULL OR m.id <> ALL ($4)))';
    END IF;
    SELECT string_agg(format(
        'SELECT t.number, t.length, %s::double precision AS weight FROM texts t WHERE t.terms @@ %L::tsquery'
        ' AND t.namespace = $5', weight, finder) || conditions, ' UNION ALL ')
        INTO parts FROM unnest(finders, weights) f (finder, weight);
    RETURN QUERY EXECUTE format('SELECT number FROM (%s) found GROUP BY number, length'
        ' ORDER BY sum(weight) / (1.3 + length * %s::double precision) DESC, number LIMIT %s',
        parts, 0.9 / greatest(average, 1e-9), most)
        USING made_from, made_before, only_ids, without_ids, tenant;
END $$;

-- How many texts of the whole index hold the terms and, where it is given, the token stream of a phrase.
CREATE OR REPLACE FUNCTION count_texts(wanted tsquery, phrase bytea) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found bigint;
BEGIN
    EXECUTE 'SELECT count(*) FROM texts t WHERE t.terms @@ $1 AND ($2 IS NULL OR position($2 IN t.tokens) > 0)'
        ' AND is_counted(t.namespace)' INTO found USING wanted, phrase;
    RETURN found;
END $$;

-- The texts themselves of those that hold the terms and a phrase: for runs whose last word may go on.
CREATE OR REPLACE FUNCTION texts_holding(wanted tsquery, phrase bytea) RETURNS TABLE (content text, tags json)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY EXECUTE 'SELECT m.content, m.tags FROM texts t JOIN memories m ON m.namespace = t.namespace'
        ' AND m.number = t.number WHERE t.terms @@ $1 AND position($2 IN t.tokens) > 0 AND is_counted(t.namespace)'
        USING wanted, phrase;
END $$;

REVOKE EXECUTE ON FUNCTION find_texts, find_any, count_texts, texts_holding, is_counted FROM PUBLIC;
"""

# A vector stays in its row as long as that fits a page. Of words that no index takes only those could be kept that are
# easily compressed: they are counted by their hashes now (`lexemes.counted_name`), and are nobody's look-alikes.
ROOM = f"""
ALTER TABLE vectors ALTER COLUMN code SET STORAGE MAIN;
SET LOCAL recollect.index = '{EVERYONE}';
UPDATE terms SET term = '{MARK}' || encode(sha256(convert_to(term, 'UTF8')), 'hex')
    WHERE octet_length(term) > {LONGEST_NAME};
DELETE FROM words WHERE octet_length(word) > {LONGEST_NAME};
"""

# What a store tells of itself, as sums: how many memories of a type and of a project, vectors of a model, and links.
# Several rows (slots) make one sum where writers do not take turns: embedders and linkers do not wait for each other.
TALLIES = """
CREATE TABLE tallies (
    namespace text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    slot int NOT NULL,
    held bigint NOT NULL,
    PRIMARY KEY (namespace, kind, name, slot)
);
"""
TALLIED = """
SELECT namespace, 'type' AS kind, type AS name, count(*) AS held FROM memories GROUP BY namespace, type
UNION ALL
SELECT namespace, 'project', project, count(*) FROM memories WHERE project IS NOT NULL GROUP BY namespace, project
UNION ALL
SELECT namespace, 'vectors', model::text, count(*) FROM vectors GROUP BY namespace, model
UNION ALL
SELECT namespace, 'links', '', count(*) FROM links GROUP BY namespace
"""
TALLY_ALL = f"INSERT INTO tallies SELECT namespace, kind, name, 0, held FROM ({TALLIED}) counted"

TENANT = (
    "namespace = (SELECT current_setting('recollect.namespace', true))"
    f" OR (SELECT current_setting('recollect.namespace', true)) = '{EVERYONE}'"
)
COUNTED = (
    "namespace = (SELECT current_setting('recollect.index', true))"
    f" OR (SELECT current_setting('recollect.index', true)) = '{EVERYONE}'"
)


def _wall(table: str, condition: str, force: bool) -> str:
    forced = f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY;\n" if force else ""
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n{forced}"
        f"CREATE POLICY tenant ON {table} USING ({condition}) WITH CHECK ({condition});\n"
    )


WALLS = "".join(
    [
        *(_wall(table, TENANT, True) for table in ("memories", "links", "tombstones", "vectors", "outbox")),
        *(_wall(table, COUNTED, True) for table in ("terms", "counts")),
        # Not forced: their finders run as the owner, with the condition inside.
        _wall("texts", TENANT, False),
        _wall("words", COUNTED, False),
    ]
)

TALLIES_WALL = _wall("tallies", TENANT, True)

GRANTS = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
REVOKE INSERT, UPDATE, DELETE ON {schema}.versions, {schema}.secrets FROM {role};
"""
