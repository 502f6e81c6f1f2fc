"""All links of some memories, however many they have: for exports and copies, which must not leave one out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from recollect.domain.memory import Link
from recollect.ports import MOST_LINKS, LinkIndex

PAGE = 5_000


def all_leaving(index: LinkIndex, ids: Sequence[str]) -> Iterator[Link]:
    """Every link that starts at one of these memories: in the order of creation, except those of memories with so many
    that an answer would leave some out; they come behind, by source, type and target."""
    found = [link for link in index.links(ids) if link.source in set(ids)]
    counts = Counter((link.source, link.type) for link in found)
    many = {source for (source, _), count in counts.items() if count >= MOST_LINKS}
    yield from (link for link in found if link.source not in many)
    for source in sorted(many):
        after: Link | None = None
        while page := index.leaving(source, after, PAGE):
            yield from page
            after = page[-1]
