"""The SQL of the extension's copy of our tokens (`ranked.py`): made and dropped by upkeep, no part of the schema."""

from __future__ import annotations

LATER, LATER_SHARE = 1_000, 200
"""A new copy is due when so many texts came later, or one in so many of those it holds; twice as many are searched."""
LONGEST = 50_000
"""Texts of more tokens are too long for the extension, and always count as later."""

TABLES = """
CREATE UNLOGGED TABLE ranked_state (copy int NOT NULL, place text NOT NULL, held bigint NOT NULL, due bigint NOT NULL);
CREATE UNLOGGED TABLE ranked_later (namespace text COLLATE "C" NOT NULL, number bigint NOT NULL);
ALTER TABLE ranked_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE ranked_later ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION note_later() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    current int;
BEGIN
    INSERT INTO ranked_later SELECT namespace, number FROM changed;
    SELECT s.copy INTO current FROM ranked_state s WHERE to_regclass('ranked_' || s.copy) IS NOT NULL;
    IF TG_OP = 'DELETE' AND current IS NOT NULL THEN
        EXECUTE format('DELETE FROM ranked_%s r USING changed c'
            ' WHERE r.namespace = c.namespace AND r.number = c.number', current);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ranked_new AFTER INSERT ON texts REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_later();
CREATE TRIGGER ranked_gone AFTER DELETE ON texts REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_later();

-- The copy that is whole: none after a crash, and a standby must not even look.
CREATE FUNCTION ranked_copy() RETURNS TABLE (copy int, place text, held bigint, due bigint, later bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT pg_is_in_recovery() THEN
        RETURN QUERY SELECT s.*, (SELECT count(*) FROM (SELECT FROM ranked_later LIMIT 2 * s.due + 1) l)
            FROM ranked_state s WHERE to_regclass(format('ranked_%s_words', s.copy)) IS NOT NULL;
    END IF;
END $$;

-- The numbers of the tenant's most promising texts: of the copy by the extension, of later ones as find_texts has them.
CREATE FUNCTION find_ranked(
    words text, finders tsquery[], weights double precision[], average double precision, most bigint
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off AS $$
DECLARE
    tenant text := current_setting('recollect.namespace');
    known record;
    worth text;
BEGIN
    SELECT * INTO known FROM ranked_copy();
    IF known.copy IS NULL OR known.later > 2 * known.due THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format('SELECT number FROM ranked_%1$s WHERE namespace = $1 ORDER BY words'
        ' OPERATOR(%2$I.<@>) %2$I.to_bm25query($2, ''ranked_%1$s_words'') LIMIT $3', known.copy, known.place)
        USING tenant, words, most;
    SELECT string_agg(
        format('CASE WHEN t.terms @@ %L::tsquery THEN %s::double precision ELSE 0 END', finder, weight), ' + ')
        INTO worth FROM unnest(finders, weights) f (finder, weight);
    RETURN QUERY EXECUTE format('SELECT t.number FROM (SELECT DISTINCT l.number FROM ranked_later l'
        ' WHERE l.namespace = $1 OFFSET 0) l, LATERAL (SELECT * FROM texts t WHERE t.namespace = $1'
        ' AND t.number = l.number OFFSET 0) t, LATERAL (SELECT %s AS worth OFFSET 0) w WHERE w.worth > 0'
        ' ORDER BY w.worth / (1.3 + t.length * %s::double precision) DESC, t.number LIMIT $2',
        worth, 0.9 / greatest(average, 1e-9)) USING tenant, most;
END $$;

-- Whoever may use the other finders may use these.
REVOKE EXECUTE ON FUNCTION note_later, ranked_copy, find_ranked FROM PUBLIC;
DO $$
DECLARE
    reader regrole;
BEGIN
    FOR reader IN SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
        WHERE p.oid = 'find_any'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION ranked_copy, find_ranked TO %s', reader);
    END LOOP;
END $$;
"""

# Our tokens as words that the extension's parser cannot cut: the low halves of their hashes, behind an x.
COPY = rf"""
CREATE UNLOGGED TABLE ranked_{{copy}} WITH (autovacuum_enabled = off, vacuum_index_cleanup = off) AS
    SELECT namespace, number, regexp_replace(encode(substring(tokens FROM 1 FOR 4 * (length + 2)), 'hex'),
        '(........)', 'x\1 ', 'g') AS words FROM texts WHERE length <= {LONGEST};
ALTER TABLE ranked_{{copy}} ADD PRIMARY KEY (namespace, number), ENABLE ROW LEVEL SECURITY;
CREATE INDEX ranked_{{copy}}_words ON ranked_{{copy}} USING bm25 (words) WITH (text_config = 'pg_catalog.simple');
ANALYZE ranked_{{copy}};
DELETE FROM ranked_later;
INSERT INTO ranked_later SELECT namespace, number FROM texts WHERE length > {LONGEST};
DELETE FROM ranked_state;
INSERT INTO ranked_state SELECT {{copy}}, (SELECT n.nspname FROM pg_am a JOIN pg_opclass o ON o.opcmethod = a.oid
    JOIN pg_namespace n ON n.oid = o.opcnamespace WHERE a.amname = 'bm25' LIMIT 1),
    h.held, greatest({LATER}, h.held / {LATER_SHARE}) + l.later
    FROM (SELECT count(*) FROM ranked_{{copy}}) h (held), (SELECT count(*) FROM ranked_later) l (later);
"""

# What was changed while a copy was made: the trigger went to the one before. With the lock nobody is on his way there.
SETTLED = "LOCK TABLE ranked_later IN SHARE MODE"
SIFT = "DELETE FROM ranked_{copy} r USING ranked_later l WHERE r.namespace = l.namespace AND r.number = l.number"

# The end of all copies: first nobody is told of one any more, then they go, and what served them last. Each is a
# transaction of its own, so that whoever is waited for at the texts waits for no table.
END = """
DELETE FROM ranked_state;
DROP TRIGGER IF EXISTS ranked_new ON texts;
DROP TRIGGER IF EXISTS ranked_gone ON texts;
"""
DROP = """
DROP TABLE ranked_state, ranked_later;
DROP FUNCTION note_later, ranked_copy, find_ranked;
"""
