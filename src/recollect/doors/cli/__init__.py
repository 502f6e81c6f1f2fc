"""The command line: a skin over Engine. Importing it loads neither a model nor a numerical library."""

from recollect.doors.cli.app import app, main

__all__ = ["app", "main"]
