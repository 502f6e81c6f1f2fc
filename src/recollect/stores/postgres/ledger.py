"""What a write adds up to: the counts of the index, kept exact in the same transaction, so that no search counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from recollect.domain.memory import Memory
from recollect.domain.trigrams import trigrams
from recollect.stores.postgres.connection import Connection, one, rows, run
from recollect.stores.postgres.lexemes import Tokens, counted_name, fits_index
from recollect.stores.tokens import Text

WRITING = 0x5243_4C55
"""The class of the advisory locks of tenants: the writers of one take turns, those of others do not wait."""
REGISTERING = 0x5243_4C56
"""Held by all writers together, and alone by whoever makes a model known: nobody's memory misses a model."""

SLOTS = 16
"""So many rows share a sum to which transactions add at the same time."""

Named = tuple[str, str]
TallyKind = Literal["type", "project", "vectors", "links"]


class Writing:
    """One transaction: its connection, and the sums of what it did."""

    def __init__(self, connection: Connection, tokens: Tokens) -> None:
        self.connection = connection
        self.tokens = tokens
        self.left_work = False
        """Memories wait for vectors now that did not before: whoever embeds is told after the commit."""
        self._memories: Counter[str] = Counter()
        self._able: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._tallies: Counter[tuple[str, TallyKind, str]] = Counter()
        self._terms: Counter[Named] = Counter()
        self._words: Counter[Named] = Counter()

    def lock(self, namespaces: Iterable[str]) -> None:
        """Let no other writer into these tenants until the end, asked for in one order by everyone."""
        run(
            self.connection,
            "SELECT pg_advisory_xact_lock_shared(%s, hashtext(current_schema())),"
            " (SELECT count(pg_advisory_xact_lock(%s, number)) FROM"
            " (SELECT DISTINCT hashtext(current_schema() || chr(1) || name) AS number FROM unnest(%s::text[]) name"
            " ORDER BY number) ordered)",
            (REGISTERING, WRITING, sorted(set(namespaces))),
        )

    def lock_all(self) -> None:
        """Let no other writer in at all."""
        run(self.connection, "SELECT pg_advisory_xact_lock(%s, hashtext(current_schema()))", (REGISTERING,))

    def count(self, memory: Memory, text: Text, sign: int) -> None:
        """Enter a memory into the sums, or take it out."""
        namespace, project = memory.scope.namespace, memory.scope.project
        self._memories[namespace] += sign
        self._able[namespace] += sign * (not memory.sensitive)
        self.tally(namespace, "type", memory.type, sign)
        if project is not None:
            self.tally(namespace, "project", project, sign)
        self._tokens[namespace] += sign * text.size
        for term in text.terms:
            self._terms[namespace, counted_name(term)] += sign
        for word in filter(fits_index, text.words):
            self._words[namespace, word] += sign

    def tally(self, namespace: str, kind: TallyKind, name: str, change: int) -> None:
        """Add to one of the sums that stats are made of."""
        self._tallies[namespace, kind, name] += change

    def tally_gone(self, namespace: str, numbers: Sequence[int]) -> None:
        """Take the vectors of some memories away, and count them."""
        found = rows(
            self.connection,
            "WITH gone AS (DELETE FROM vectors WHERE namespace = %s AND number = ANY (%s) RETURNING model)"
            " SELECT model::text, count(*) FROM gone GROUP BY model",
            (namespace, list(numbers)),
        )
        for model, count in found:
            self.tally(namespace, "vectors", model, -count)

    def leave_tallies(self) -> None:
        """Memories were entered into the full text anew: there are no more of them than before."""
        self._tallies.clear()

    def models(self) -> list[int]:
        """Every model that is known."""
        return [model for (model,) in rows(self.connection, "SELECT model FROM models ORDER BY model")]

    def settle(self) -> None:
        """Write the sums, just before the commit."""
        self._settle_counts()
        self._settle_tallies([(*name, change) for name, change in sorted(self._tallies.items()) if change])
        self._settle_terms([(*name, change) for name, change in sorted(self._terms.items()) if change])
        self._settle_words([(*name, change) for name, change in sorted(self._words.items()) if change])

    def _settle_counts(self) -> None:
        for namespace in sorted(self._memories):
            changes = self._memories[namespace], self._able[namespace], self._tokens[namespace]
            if any(changes):
                run(
                    self.connection,
                    "INSERT INTO counts VALUES (%s, %s, %s, %s) ON CONFLICT (namespace) DO UPDATE SET"
                    " memories = counts.memories + excluded.memories, able = counts.able + excluded.able,"
                    " tokens = counts.tokens + excluded.tokens",
                    (namespace, *changes),
                )
            if changes[0] < 0:
                run(self.connection, "DELETE FROM counts WHERE namespace = %s AND memories <= 0", (namespace,))

    def _settle_tallies(self, changed: Sequence[tuple[str, str, str, int]]) -> None:
        if not changed:
            return
        columns = [list(column) for column in zip(*changed)]
        run(
            self.connection,
            "INSERT INTO tallies SELECT n, k, x,"
            " CASE WHEN k IN ('vectors', 'links') THEN pg_backend_pid() %% %s ELSE 0 END,"
            " c FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) AS u (n, k, x, c) ORDER BY n, k, x"
            " ON CONFLICT (namespace, kind, name, slot) DO UPDATE SET held = tallies.held + excluded.held",
            (SLOTS, *columns),
        )
        if any(change < 0 for *_, change in changed):
            run(
                self.connection,
                "DELETE FROM tallies t USING unnest(%s::text[], %s::text[], %s::text[]) AS u (n, k, x)"
                " WHERE t.namespace = u.n AND t.kind = u.k AND t.name = u.x AND t.held <= 0"
                " AND t.kind IN ('type', 'project')",
                columns[:3],
            )
            run(
                self.connection,
                "DELETE FROM tallies WHERE namespace = ANY (%s) AND namespace NOT IN (SELECT namespace FROM counts)",
                ([namespace for namespace, change in self._memories.items() if change < 0],),
            )

    def _settle_terms(self, changed: Sequence[tuple[str, str, int]]) -> None:
        if not changed:
            return
        run(
            self.connection,
            "INSERT INTO terms SELECT * FROM unnest(%b::text[], %b::text[], %b::bigint[])"
            " ON CONFLICT (namespace, term) DO UPDATE SET memories = terms.memories + excluded.memories",
            _columns(changed),
        )
        self._drop_unused("terms", "term", changed)

    def _settle_words(self, changed: Sequence[tuple[str, str, int]]) -> None:
        if not changed:
            return
        run(
            self.connection,
            "INSERT INTO words SELECT n, w, c, string_to_array(t, ' ') FROM"
            " unnest(%b::text[], %b::text[], %b::bigint[], %b::text[]) AS u (n, w, c, t)"
            " ON CONFLICT (namespace, word) DO UPDATE SET memories = words.memories + excluded.memories",
            (*_columns(changed), [_trigrams(word) for _, word, _ in changed]),
        )
        self._drop_unused("words", "word", changed)

    def _drop_unused(self, table: str, column: str, changed: Sequence[tuple[str, str, int]]) -> None:
        fewer = [(namespace, name) for namespace, name, change in changed if change < 0]
        if fewer:
            run(
                self.connection,
                f"DELETE FROM {table} t USING unnest(%s::text[], %s::text[]) AS u (namespace, name)"
                f" WHERE t.namespace = u.namespace AND t.{column} = u.name AND t.memories <= 0",
                ([namespace for namespace, _ in fewer], [name for _, name in fewer]),
            )


@lru_cache(maxsize=200_000)
def _trigrams(word: str) -> str:
    return " ".join(sorted(trigrams(word)))


def _columns(changed: Sequence[tuple[str, str, int]]) -> tuple[list[str], list[str], list[int]]:
    return [one[0] for one in changed], [one[1] for one in changed], [one[2] for one in changed]


def totals(connection: Connection) -> tuple[int, int, int]:
    """Memories, those that may be embedded, and tokens of the whole index."""
    found = one(
        connection,
        "SELECT coalesce(sum(memories), 0)::bigint, coalesce(sum(able), 0)::bigint, coalesce(sum(tokens), 0)::bigint"
        " FROM counts",
    )
    return int(found[0]), int(found[1]), int(found[2])
