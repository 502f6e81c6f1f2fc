"""Results as JSON documents: what was measured, with what, on which machine. Private stores leave totals only."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

import recollect
from recollect.domain.errors import InvalidInput, NotFound
from recollect.evals import page
from recollect.evals.calibrating import Fit, as_toml, fit_to_dict
from recollect.evals.running import Result, macro
from recollect.evals.variations import Combination

VERSION = 1
KINDS = {"run": "results", "sweep": "combinations", "compare": "sets", "abstain": "fits"}
"""Every kind of document, and the list that it holds."""
DIGITS = 5


def document(kind: str, options: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The frame of every document."""
    return {
        "recollect_eval": VERSION,
        "kind": kind,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "recollect": recollect.__version__,
        "commit": commit(),
        "machine": machine(),
        "options": plain(options),
        **plain(body),
    }


def run_document(results: Sequence[Result], options: Mapping[str, Any]) -> dict[str, Any]:
    """Every result, and for each system the macro average over the sets."""
    averages: dict[str, Any] = {}
    for name in dict.fromkeys(one.system.name for one in results):
        averages[name] = macro([one for one in results if one.system.name == name])
    return document("run", options, {"results": [result_to_dict(one) for one in results], "macro": averages})


def sweep_document(
    plain_results: Sequence[Result], combinations: Sequence[Combination], by: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The grid, best first, against the profile as it is."""
    return document(
        "sweep",
        options,
        {
            "by": by,
            "profile": plain_results[0].system.name,
            "unchanged": {"macro": macro(plain_results), "sets": _sets(plain_results)},
            "combinations": [
                {"options": one.options, "macro": one.macro, "sets": _sets(one.results), "change": one.change}
                for one in combinations
            ],
        },
    )


def compare_document(
    pairs: Sequence[tuple[Result, Result, Mapping[str, Any]]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """A, B and B − A on every set."""
    first, second = pairs[0][0].system, pairs[0][1].system
    body = {
        "first": first.name,
        "second": second.name,
        "sets": [
            {
                "data": one.data,
                "first": one.measures,
                "second": other.measures,
                "difference": difference,
                "milliseconds": {"first": one.milliseconds, "second": other.milliseconds},
            }
            for one, other, difference in pairs
        ],
    }
    return document("compare", options, body)


def abstain_document(fits: Sequence[Fit], options: Mapping[str, Any]) -> dict[str, Any]:
    """Calibrations with their curves, as `recollect eval abstain` fits them."""
    return document("abstain", options, {"fits": [fit_to_dict(one) for one in fits], "toml": as_toml(fits)})


def result_to_dict(one: Result) -> dict[str, Any]:
    """One result. Only of public data are the questions' own values kept, under their ids."""
    found = {
        "system": one.system.name,
        "profile": one.system.profile if one.system.profile is None else Path(one.system.profile).stem,
        "options": one.system.options,
        "data": one.data,
        "measures": one.measures,
        "strata": one.strata,
        "milliseconds": one.milliseconds,
        "tokens": one.tokens,
        "bytes": one.bytes,
        "degraded": one.degraded,
        "reranked": one.reranked,
        "reach": one.reach,
        "abstention": one.abstention,
        **one.more,
    }
    if not one.private:
        found["questions"] = {
            "measures": one.scores.names,
            "values": dict(zip(one.scores.ids, one.scores.values, strict=True)),
        }
    return plain(found)


def _sets(results: Sequence[Result]) -> dict[str, Any]:
    return {
        one.data["name"]: {
            "questions": len(one.scores.ids),
            "measures": one.measures,
            "milliseconds": {name: one.milliseconds.get(name) for name in ("p50", "p95", "p99")},
        }
        for one in results
    }


def write(folder: Path, found: Mapping[str, Any]) -> Path:
    """`run.json`, `sweep.json` or `compare.json` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found['kind']}.json"
    put(path, json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    return path


def put(path: Path, text: str, mode: int = 0o666) -> None:
    """The whole text under its name, or nothing. What UTF-8 cannot carry is escaped, as JSON reads it."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
        fresh = Path(folder) / path.name
        fresh.touch(mode)
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
        fresh.replace(path)


def check_folder(folder: Path) -> None:
    """Whether results can be written there later; nothing is made yet."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InvalidInput(f"{folder} cannot be a folder for results", "give one that can be written", "--out")


def read(place: Path) -> list[dict[str, Any]]:
    """The documents of a folder, or the one of a file."""
    files = [place] if place.is_file() else [place / f"{kind}.json" for kind in KINDS]
    found: list[dict[str, Any]] = []
    for path in (one for one in files if one.is_file()):
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise InvalidInput(f"{path} is not JSON", "give what `recollect eval run --out DIR` wrote") from None
        if not _is_document(entry):
            raise InvalidInput(f"{path} holds no results of this version", "measure again with `recollect eval run`")
        found.append(cast(dict[str, Any], entry))
    if not found:
        raise NotFound(f"there are no results in {place}", "make some with `recollect eval run --out DIR`")
    return found


def _is_document(entry: Any) -> bool:
    """Whether it says so, and a report can be made of it: files of others, and edited ones, may lack anything."""
    found = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
    if found.get("recollect_eval") != VERSION or not isinstance(found.get(KINDS.get(str(found.get("kind")), "")), list):
        return False
    try:
        page.html([found])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return False
    return True


def machine() -> dict[str, Any]:
    """What the times depend on; nothing that names the machine or its owner."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def commit() -> str | None:
    """The commit of the checkout that recollect runs from, with + where files were changed; None when installed."""
    root = Path(recollect.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def plain(value: Any) -> Any:
    """As JSON knows it, floats rounded to five digits."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, np.ndarray):
        return plain(cast(Any, value).tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast(Sequence[Any], value)]
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, str | int | None):
        return value
    return str(value)
