"""Results as tables: rows of text, for the terminal, for Markdown and for the page alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

SHOWN = ("recall@5", "recall@10", "any@5", "all@5", "ndcg@10", "mrr@10")
MEGABYTE = 1_000_000

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.columns, tuple("---" for _ in self.columns), *self.rows]
        body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return f"### {self.title}\n\n{body}\n"


def tables(documents: Sequence[Entry]) -> list[Table]:
    """Every table that the documents give."""
    found: list[Table] = []
    runs = [one for one in documents if one["kind"] == "run"]
    if runs:
        results = [result for one in runs for result in one["results"]]
        found += [quality(results), strata(results), cost(results), reach(results), lists(results)]
        found += [abstention(results), typos(results)]
    found += [comparison(one) for one in documents if one["kind"] == "compare"]
    found += [sweep(one) for one in documents if one["kind"] == "sweep"]
    fits = [fit for one in documents if one["kind"] == "abstain" for fit in one["fits"]]
    found += [calibrations(fits), transfers(fits)]
    return [one for one in found if one.rows]


def markdown(documents: Sequence[Entry]) -> str:
    """All tables as one Markdown text, with what they rest on."""
    return "\n".join([*(one.markdown() for one in tables(documents)), *(f"{line}\n" for line in origins(documents))])


def origins(documents: Sequence[Entry]) -> list[str]:
    """For each document: when, with which commit, on what machine; and what is to be known of each set."""
    lines: list[str] = []
    notes: dict[str, None] = {}
    for one in documents:
        machine = one["machine"]
        place = f"{machine['cores']} cores, {machine['processor'] or machine['system']}, Python {machine['python']}"
        commit = f", commit {one['commit'][:12]}{'+' * one['commit'].endswith('+')}" if one.get("commit") else ""
        lines.append(f"{one['kind']} of {one['made_at']}: recollect {one['recollect']}{commit}; {place}.")
        sets = [found["data"] for found in (*one.get("results", ()), *one.get("sets", ()))]
        notes |= {f"{data['name']}: {note}": None for data in sets if (note := data.get("note"))}
    return [*lines, *notes]


def quality(results: Sequence[Entry]) -> Table:
    """Sets and systems with their measures and intervals; below, the macro average of systems on several sets.

    A set that was measured again belongs to another average.
    """
    names = _shown(results)
    rows = [
        (
            one["data"]["name"],
            one["system"],
            str(one["data"]["counted"]),
            *(interval(one["measures"].get(n)) for n in names),
        )
        for one in sorted(results, key=lambda one: one["data"]["name"])
    ]
    seen: Counter[tuple[str, str]] = Counter()
    rounds: dict[tuple[str, int], list[Entry]] = {}
    for one in results:
        if one["measures"]:
            seen[key := (one["system"], one["data"]["name"])] += 1
            rounds.setdefault((one["system"], seen[key]), []).append(one["measures"])
    for (system, _), measured in rounds.items():
        if len(measured) > 1:
            found = ([one[name]["mean"] for one in measured if name in one] for name in names)
            means = (fmean(values) if len(values) == len(measured) else None for values in found)
            rows.append(("macro average", system, str(len(measured)), *(number(mean) for mean in means)))
    return Table("Quality (mean and 95 % interval)", ("set", "system", "questions", *names), tuple(rows))


def strata(results: Sequence[Entry]) -> Table:
    names = _shown(results)
    rows = [
        (
            one["data"]["name"],
            stratum,
            one["system"],
            str(part["questions"]),
            *(interval(part["measures"].get(n)) for n in names),
        )
        for one in results
        for stratum, part in one["strata"].items()
    ]
    return Table("By stratum", ("set", "stratum", "system", "questions", *names), tuple(sorted(rows)))


def cost(results: Sequence[Entry]) -> Table:
    """Times are those of whole answers with the question's vector at hand; the model's own time stands beside."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        ms, model = one["milliseconds"], one["milliseconds"].get("embedding a question", {})
        tokens = one["tokens"].get("mean")
        rows.append(
            (
                one["data"]["name"], one["system"], *(_ms(ms.get(point)) for point in ("p50", "p95", "p99")),
                _ms(model.get("p50")), "–" if tokens is None else f"{tokens:.0f}", f"{one['bytes'] / MEGABYTE:.1f}",
                str(one["degraded"]),
            )
        )  # fmt: skip
    columns = (
        "set",
        "system",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "model p50 ms",
        "tokens injected",
        "MB on disk",
        "degraded",
    )
    return Table("Cost", columns, tuple(rows))


def reach(results: Sequence[Entry]) -> Table:
    """Over all sets: what the weights allow, and what became of best hits that no other list had."""
    sums: dict[tuple[str, ...], Counter[str]] = {}
    tops = {top for one in results for found in one["reach"].values() for top in found["seen"]}
    top = "10" if "10" in tops else max(tops, key=int, default="")
    for one in results:
        for name, found in one["reach"].items() if len(one["reach"]) > 1 else ():
            allowed = "–" if found["allowed"] is None else "yes" if found["allowed"].get(top) else "no"
            total = sums.setdefault((one["system"], name, f"{found['weight']:g}", allowed), Counter())
            total.update({"alone": found["alone"], "seen": found["seen"].get(top, 0)})
    rows = ((*row, str(total["alone"]), str(total["seen"])) for row, total in sums.items())
    columns = (
        "system",
        "list",
        "weight",
        f"can reach the top {top} alone",
        "best hits of its own",
        f"in the top {top}",
    )
    return Table("Reach", columns, tuple(rows))


def lists(results: Sequence[Entry]) -> Table:
    """Ablation: what happens without a list, and the relevant memories in the top 10 because of it alone."""
    rows: list[tuple[str, ...]] = []
    for one in results:
        ablated: Entry = one.get("ablation") or {}
        for path, found in ablated.items():
            top = "10" if "10" in found["only_with"] else max(found["only_with"], key=int)
            rows.append(
                (
                    one["data"]["name"], one["system"], path, change(found["without"].get("ndcg@10")),
                    change(found["without"].get(f"recall@{top}")), f"{found['only_with'][top]} (top {top})",
                    f"{found['only_without'][top]}", f"{found['sole'][top]}",
                )
            )  # fmt: skip
    columns = (
        "set",
        "system",
        "without",
        "ndcg@10",
        "recall",
        "only because of it",
        "only without it",
        "no other list",
    )
    return Table("Leave one list out", columns, tuple(rows))


def abstention(results: Sequence[Entry]) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in results:
        found = one.get("abstention")
        if found:
            at = found["injected_at"]
            shipped = found["shipped"]
            rows.append(
                (
                    one["data"]["name"], one["system"], str(found["unanswerable"]), share(shipped["kept"]),
                    share(shipped["injected"]), found["signal"],
                    *(share(at[kept]) for kept in ("0.95", "0.97", "0.99")),
                    f"{found['auc']:.3f}",
                )
            )  # fmt: skip
    columns = (
        "set", "system", "unanswerable", "kept as shipped", "injected as shipped", "threshold on",
        "injected at 95 % kept", "at 97 %", "at 99 %", "AUC",
    )  # fmt: skip
    return Table("Unanswerable questions", columns, tuple(rows))


def calibrations(fits: Sequence[Entry]) -> Table:
    """What unanswerable questions inject at each share of answerable ones kept, on scopes left out of the fit."""
    kept = ("0.9", "0.95", "0.97", "0.99")
    rows = [
        (
            one["name"], str(one["answerable"]), str(one["unanswerable"]), f"{one['auc']:.3f}",
            *(interval(one["injected_at"][rate]) for rate in kept),
        )
        for one in fits
    ]  # fmt: skip
    columns = ("calibration", "answerable", "unanswerable", "AUC", *(f"injected at {rate} kept" for rate in kept))
    return Table("Confidence, each scope left out in turn (95 % interval)", columns, tuple(rows))


def transfers(fits: Sequence[Entry]) -> Table:
    """Sets that were not fitted on, with the floor that keeps 0.97 where it was."""
    rows = [
        (
            one["name"], name, str(found["answerable"]), str(found["unanswerable"]), f"{found['auc']:.3f}",
            share(found["kept at 0.97"]), share(found["injected at 0.97"]),
        )
        for one in fits
        for name, found in one["tests"].items()
    ]  # fmt: skip
    columns = ("calibration", "set", "answerable", "unanswerable", "AUC", "kept at 0.97", "injected at 0.97")
    return Table("Confidence on other sets", columns, tuple(rows))


def typos(results: Sequence[Entry]) -> Table:
    names = _shown(results)
    rows = [
        (one["data"]["name"], one["system"], str(found["edits"]), *(_kept(found, name) for name in names))
        for one in results
        if (found := one.get("typos"))
    ]
    return Table("With typos (mean, and share kept)", ("set", "system", "errors", *names), tuple(rows))


def comparison(document: Entry) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in document["sets"]:
        for name, gap in one["difference"].items():
            if name in SHOWN or name.startswith("recall"):
                rows.append(
                    (
                        one["data"]["name"], name, *(number(one[side][name]["mean"]) for side in ("first", "second")),
                        change(gap), f"{gap['wins']} / {gap['ties']} / {gap['losses']}",
                    )
                )  # fmt: skip
    columns = ("set", "measure", document["first"], document["second"], "difference", "wins / ties / losses")
    return Table(f"{document['second']} against {document['first']}", columns, tuple(rows))


def sweep(document: Entry) -> Table:
    """Best first; the profile as it is stands where its average puts it."""
    by, base = document["by"], document["unchanged"]
    sets: list[str] = list(base["sets"])
    unchanged: Entry = {"options": {}, "change": {}, **base}
    points: list[Entry] = [*document["combinations"], unchanged]
    rows: list[tuple[str, ...]] = []
    for one in sorted(points, key=lambda one: -one["macro"].get(by, 0.0)):
        options = ", ".join(f"{path}={value}" for path, value in one["options"].items()) or "(unchanged)"
        cells = [number(one["sets"][name]["measures"].get(by, {}).get("mean")) for name in sets]
        moved = [change(one["change"].get(name, {}).get(by)) for name in sets]
        slowest = max((float(one["sets"][name]["milliseconds"]["p95"] or 0.0) for name in sets), default=0.0)
        both = (f"{cell} ({gap})" if gap else cell for cell, gap in zip(cells, moved, strict=True))
        rows.append((options, number(one["macro"].get(by)), *both, _ms(slowest)))
    columns = ("options", f"macro {by}", *sets, "p95 ms, slowest set")
    return Table(f"Sweep of {document['profile']} by {by}", columns, tuple(rows))


def interval(found: Mapping[str, float] | None) -> str:
    return "–" if found is None else f"{number(found['mean'])} [{number(found['low'])}, {number(found['high'])}]"


def change(found: Mapping[str, float] | None) -> str:
    """A difference with its interval; a star where the interval leaves out 0."""
    if found is None:
        return ""
    star = "*" if found["low"] > 0 or found["high"] < 0 else ""
    return f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]{star}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def share(value: float) -> str:
    return f"{value * 100:.1f} %"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _kept(found: Entry, name: str) -> str:
    kept = found["kept"].get(name)
    return number(found["means"].get(name)) + (f" ({share(kept)})" if kept is not None else "")


def _shown(results: Sequence[Entry]) -> tuple[str, ...]:
    """The usual measures that were taken; with other cut-offs, all recalls stand in for them."""
    known = dict.fromkeys(_measured(results))
    usual = [name for name in SHOWN if name in known]
    recalls = [name for name in known if name.startswith("recall")]
    chosen = usual if any(name.startswith("recall") for name in usual) else [*recalls, *usual]
    return tuple(chosen)


def _measured(results: Sequence[Entry]) -> Iterator[str]:
    """Of all questions and, where none of them counts, of the strata that stand apart."""
    for one in results:
        yield from one["measures"]
        for part in one["strata"].values():
            yield from part["measures"]
