"""`python -m recollect` and the `recollect` command."""

from __future__ import annotations


def main() -> None:
    """Hand over to the command line."""
    from recollect.doors.cli import main as run

    run()


if __name__ == "__main__":
    main()
