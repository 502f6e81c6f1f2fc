"""Ranking recipes: one TOML file each, data only. `load` reads, checks and returns them."""

from recollect.profiles.loading import builtin_names, load, names, read, require, withholding

__all__ = ["builtin_names", "load", "names", "read", "require", "withholding"]
