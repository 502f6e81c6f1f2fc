"""The store for teams: PostgreSQL with pgvector, shared by many servers and workers.

`opening.py` opens it, `docs/postgres.md` tells how to set it up, the tables are in `tables.py`. The vendor packages
come with the extra `postgres`; only `address.py` does without them.
"""
