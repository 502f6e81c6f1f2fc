"""What a process of our own does when it is there to stay. A library leaves the collector of its host alone."""

from __future__ import annotations

import gc

THRESHOLDS = 10_000, 5, 5
"""A recall makes some thousand objects and leaves none in circles: by Python's own numbers the collector comes with
every recall, and now and then goes through everything that was ever imported. But every connection leaves some
(asyncio's), and those that were in use when it came are only found when it goes through all that is there: it must do
so now and then, or the process grows with every connection."""


def settle_down() -> None:
    """What is there by now stays for good: the collector looks at it no more, and comes seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
