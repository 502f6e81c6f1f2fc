"""How long a memory rests that a model could not take: a second, twice as long after every attempt, an hour at most."""

FIRST_RETRY_MS = 1_000
LAST_RETRY_MS = 3_600_000
