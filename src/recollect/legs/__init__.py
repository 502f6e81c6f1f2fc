"""Finders. Each leg asks one port and returns hits, best first; add one here and in `running`."""

from recollect.legs.bridge import bridge
from recollect.legs.dense import dense
from recollect.legs.graph import graph
from recollect.legs.latest import latest
from recollect.legs.lexical import lexical
from recollect.legs.recent import recent

LEGS = {
    "lexical": lexical,
    "dense": dense,
    "recent": recent,
    "latest": latest,
    "graph": graph,
    "bridge": bridge,
}

__all__ = ["LEGS"]
