"""Routes by family. Each module has a `router`; every route has a line in `rules.RULES`."""
