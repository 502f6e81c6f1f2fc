"""What the extras bring, by the names of their packages.

The package index knows another project as `recollect`: who asks it for that name gets that one in our place. So nobody
is told to.
"""

from __future__ import annotations


def install(*extras: str) -> str:
    """The command that brings what these extras need."""
    from importlib.metadata import PackageNotFoundError, requires  # slow to load, and hardly ever asked

    marks = tuple(f'extra == "{extra}"' for extra in extras)
    try:
        stated = [entry.partition(";") for entry in requires("recollect") or ()]
    except PackageNotFoundError:  # run from its sources
        stated = []
    wanted = [name.strip() for name, _, condition in stated if condition.strip().replace("'", '"') in marks]
    ours = f".[{','.join(extras)}]"
    return " ".join(["pip install", *(f"'{one}'" for one in wanted or [ours])])
