"""consolidate, upkeep, doctor, reindex, stats, backup, restore, copy."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

import recollect
from recollect.adapters import open_store
from recollect.ports import Store
from tests.chat_server import chat_server, names


def contents(cli: Any) -> set[str]:
    return {one["content"] for one in cli("list", "--json").document["memories"]}


def test_stats(cli: Any, home: Path) -> None:
    cli("remember", "one fact", "--project", "shop")
    cli("remember", "another, quite different decision", "--type", "decision")
    document = cli("stats", "--json").document
    assert (document["memories"], document["types"], document["projects"]) == (
        2,
        {"decision": 1, "fact": 1},
        {"shop": 1},
    )
    assert document["location"] == str(home / "memories.db")
    assert "decision 1 · fact 1" in cli("stats").out


def test_doctor_is_content_with_a_fresh_store(cli: Any) -> None:
    document = cli("doctor", "--json").document
    assert (document["healthy"], document["findings"]) == (True, [])
    assert "nothing wrong" in cli("doctor").out


def test_doctor_finds_damage_and_mends_what_is_derived(cli: Any, home: Path) -> None:
    cli("remember", "the lighthouse keeper counts ships")
    connection = apsw.Connection(str(home / "memories.db"))
    connection.execute("INSERT INTO fulltext (fulltext) VALUES ('delete-all')")
    connection.close()
    sick = cli("doctor", "--json")
    assert sick.document["findings"]
    mended = cli("doctor", "--repair", "--json").document
    assert mended["findings"] and all(one["repaired"] for one in mended["findings"])
    assert (mended["healthy"], cli("doctor", "--json").document["findings"]) == (True, [])
    assert cli("recall", "lighthouse", "--mode", "bm25", "--json").document["hits"]


def test_doctor_exits_1_while_something_is_broken(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.engine import Engine
    from recollect.ports import Finding

    monkeypatch.setattr(Engine, "check", lambda self, repair=False: [Finding("pages", "page 7 is torn", "error")])
    ran = cli("doctor", "--json")
    assert (ran.code, ran.document["healthy"]) == (1, False)
    told = cli("doctor")
    assert (told.code, "page 7 is torn" in told.out, "restore" in told.err) == (1, True, True)


@pytest.mark.covers("budget.consolidate")
def test_consolidate_has_a_dry_run(cli: Any) -> None:
    for _ in range(2):
        cli("remember", "SQLite WAL mode matters for us", "--no-dedupe", "--no-wait")
    dry = cli("consolidate", "--dry-run", "--json").document
    assert (dry["dry_run"], len(dry["merges"])) == (True, 1)
    assert len(cli("consolidate", "--json").document["merges"]) == 1
    assert cli("consolidate", "--json").document["merges"] == []


def test_consolidate_looks_at_one_namespace(cli: Any) -> None:
    for _ in range(2):
        cli("remember", "SQLite WAL mode matters for us", "--no-dedupe", "--no-wait", "--namespace", "team")
    assert cli("consolidate", "--json").document["examined"] == 0
    assert len(cli("consolidate", "--namespace", "team", "--json").document["merges"]) == 1


def test_consolidate_tells_people_which_texts_are_one(cli: Any) -> None:
    assert cli("consolidate").out == "0 memories looked at: none says the same as another\n"
    for _ in range(2):
        cli("remember", "SQLite WAL mode matters for us", "--no-dedupe", "--no-wait")
    dry = cli("consolidate", "--dry-run")
    assert "1 of 2 memories would be merged into another that says the same" in dry.err
    head, row = dry.out.splitlines()
    assert head.split("\t") == ["merged", "into", "why", "content"]
    assert row.split("\t")[2:] == ["same words", "SQLite WAL mode matters for us"]
    assert "1 of 2 memories were merged" in cli("consolidate").err
    assert "goes on" not in cli("consolidate", "--limit", "1", "--dry-run").err
    assert "the next run goes on" in cli("consolidate", "--limit", "1").err
    assert cli("consolidate", "--quiet").out == ""


def test_upkeep_and_reindex_speak_in_sentences(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("the harbour opens at six", "logs are kept for ninety days"):
        cli("remember", text, "--no-wait")
    told = cli("upkeep").out.splitlines()
    assert told == ["embedded 2 memories with fake-64", "tidied the store"]
    assert cli("upkeep").out.splitlines()[0] == "all 2 memories are embedded with fake-64"
    assert "nothing to mend" in cli("reindex").out
    assert cli("reindex", "--concepts").out.splitlines()[1] == "dropped 0 links that a language model had made"
    assert cli("upkeep", "--quiet").out == ""
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    assert "by words alone" in cli("upkeep").out


def test_upkeep_says_why_something_still_waits_and_what_comes_next(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.engine import Engine
    from recollect.upkeep import EmbedReport, Merge, UpkeepReport

    report = EmbedReport(3, 1, 5, (Merge("id1", "id2", "cosine 0.93", 0.5, 0.93),), "out of time")
    monkeypatch.setattr(Engine, "upkeep", lambda self, **_: UpkeepReport(report))
    told = cli("upkeep").out.splitlines()
    assert told[:4] == [
        "embedded 3 memories with fake-64",
        "id2 is now behind id1, which says the same (cosine 0.93)",
        "1 memory could not be embedded and will be tried again",
        "still waiting (out of time): 5 memories; `recollect upkeep` goes on",
    ]


@pytest.mark.covers("more.model-change")
def test_reindex_embeds_everything_with_the_current_model(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    cli("remember", "written before there was a model")
    assert cli("stats", "--json").document["embedding"]["model"] is None
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "fake")
    assert cli("reindex", "--json").document["embedding"] == {"model": "fake-64", "done": 1, "pending": 0, "failed": 0}


def test_reindex_embeds_anew_what_has_vectors_only_when_asked(cli: Any) -> None:
    cli("remember", "the harbour opens at six")
    assert cli("reindex", "--json").document["embedded"]["embedded"] == 0
    again = cli("reindex", "--vectors", "--json").document
    assert (again["embedded"]["embedded"], again["embedding"]["done"], again["embedding"]["pending"]) == (1, 1, 0)
    assert cli("recall", "harbour", "--mode", "semantic", "--json").document["hits"]


def test_backup_and_restore_go_round(cli: Any, tmp_path: Path, home: Path) -> None:
    copy = tmp_path / "copy.db"
    cli("remember", "in the backup")
    made = cli("backup", str(copy), "--json").document
    assert made == {"path": str(copy), "bytes": copy.stat().st_size}
    again = cli("backup", str(copy), "--json")
    assert (again.code, again.document["error"]["type"]) == (1, "Conflict")
    assert cli("backup", str(copy), "--force").code == 0
    cli("remember", "written after the backup was made")
    refused = cli("restore", str(copy), "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "Conflict")
    assert len(contents(cli)) == 2
    restored = cli("restore", str(copy), "--force", "--json").document
    assert (restored["memories"], contents(cli)) == (1, {"in the backup"})
    aside = Path(restored["old_store"])
    assert aside.parent == home
    old = cli("--store", str(aside), "list", "--json").document["memories"]
    assert {one["content"] for one in old} == {"in the backup", "written after the backup was made"}


@pytest.mark.parametrize("command", ["export", "restore"])
def test_what_a_killed_command_left_goes_with_the_next(cli: Any, tmp_path: Path, home: Path, command: str) -> None:
    """A whole copy of the store, which nobody else would look for in a hidden folder."""
    backup, listing = tmp_path / "copy.db", tmp_path / "memories.jsonl"
    cli("remember", "in the backup")
    cli("backup", str(backup))
    place = {"export": tmp_path / ".exporting-", "restore": home / ".restoring-"}[command]
    lefts = {name: place.with_name(place.name + name) for name in ("dead", "alive", "file")}
    for name in ("dead", "alive"):
        lefts[name].mkdir()
        (lefts[name] / "store.db").write_text("everything")
        os.utime(lefts[name], (0, 0))
    lefts["file"].write_text("somebody else's")
    for one in (lefts["dead"] / "store.db", lefts["file"]):
        os.utime(one, (0, 0))
    given = {"export": (str(listing),), "restore": (str(backup), "--force")}[command]
    assert cli(command, *given).code == 0
    assert {name: one.exists() for name, one in lefts.items()} == {"dead": False, "alive": True, "file": True}


def test_a_restored_store_is_on_the_disk_before_it_has_its_name(
    cli: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("remember", "in the backup")
    cli("backup", str(tmp_path / "copy.db"))
    order: list[int] = []
    synced, replaced = os.fsync, Path.replace

    def noted(descriptor: int) -> None:
        order.append(os.fstat(descriptor).st_ino)
        synced(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        order.append(0)
        return replaced(self, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "replace", renamed)
    assert cli("restore", str(tmp_path / "copy.db"), "--force").code == 0
    assert order[-4:] == [
        (home / "memories.db").stat().st_ino,
        0,
        0,
        home.stat().st_ino,
    ]  # the old one goes aside first


def test_restore_refuses_what_is_no_good_store_and_leaves_the_old_one(cli: Any, tmp_path: Path, home: Path) -> None:
    cli("remember", "still here afterwards")
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"this is no database" * 100)
    ran = cli("restore", str(junk), "--force", "--json")
    assert ran.code == 1
    assert contents(cli) == {"still here afterwards"}
    assert junk.read_bytes() == b"this is no database" * 100
    assert not list(home.glob("*before-restore*")) and not list(home.glob(".restoring*"))
    assert cli("restore", str(home / "memories.db"), "--force").code == 2


def test_restore_refuses_a_damaged_backup(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.engine import Engine
    from recollect.ports import Finding

    cli("remember", "good and safe")
    copy = tmp_path / "copy.db"
    cli("backup", str(copy))
    monkeypatch.setattr(Engine, "check", lambda self, repair=False: [Finding("checksum", "memory 1 changed", "error")])
    ran = cli("restore", str(copy), "--force", "--json")
    assert (ran.code, ran.document["error"]["type"]) == (1, "Corrupt")
    assert contents(cli) == {"good and safe"}


def test_restore_names_the_file_that_is_no_store(cli: Any, tmp_path: Path) -> None:
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"this is no database" * 100)
    told = cli("restore", str(junk), "--json").document["error"]
    assert (told["type"], str(junk) in told["message"], "backup" in told["hint"]) == ("Corrupt", True, True)


def test_restore_waits_until_nobody_has_the_store_open(cli: Any, tmp_path: Path, home: Path) -> None:
    """A daemon would go on writing into the file that was moved aside, and acknowledge it."""
    copy = tmp_path / "copy.db"
    cli("remember", "in the backup")
    cli("backup", str(copy))
    with recollect.open(home / "memories.db", embedder=None) as somebody:
        assert len(somebody.list()) == 1
        refused = cli("restore", str(copy), "--force", "--json")
        assert (refused.code, refused.document["error"]["type"]) == (1, "StoreInUse")
        somebody.remember("acknowledged while it was open")
    assert contents(cli) == {"in the backup", "acknowledged while it was open"}
    assert cli("restore", str(copy), "--force").code == 0
    assert contents(cli) == {"in the backup"}


def test_a_restored_store_is_as_private_as_any(cli: Any, tmp_path: Path, home: Path) -> None:
    copy = tmp_path / "copy.db"
    cli("remember", "for my eyes only")
    cli("backup", str(copy))
    copy.chmod(0o644)
    cli("restore", str(copy), "--force")
    assert stat.S_IMODE((home / "memories.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("command", [("backup",), ("export",), ("eval", "strata", "--out")])
def test_nothing_is_written_over_the_store_or_what_is_no_file(
    cli: Any, tmp_path: Path, home: Path, command: tuple[str, ...]
) -> None:
    cli("remember", "the store stays what it is")
    link, pipe = tmp_path / "a-link", tmp_path / "a-pipe"
    link.symlink_to(home / "memories.db")
    os.mkfifo(pipe)
    for place in (home / "memories.db", home / "memories.db.lock", link, tmp_path, pipe):
        ran = cli(*command, str(place), "--force", "--json")
        assert (ran.code, ran.document["error"]["type"]) == (2, "InvalidInput"), place
    assert contents(cli) == {"the store stays what it is"}
    assert pipe.is_fifo() and link.is_symlink()


def test_what_a_link_leads_to_is_replaced_not_the_link(cli: Any, tmp_path: Path) -> None:
    cli("remember", "travels well")
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old")
    link.symlink_to(real)
    assert cli("export", str(link), "--force").code == 0
    assert link.is_symlink() and "travels well" in real.read_text(encoding="utf-8")


def test_restore_into_an_empty_home(cli: Any, tmp_path: Path, home: Path) -> None:
    copy = tmp_path / "copy.db"
    cli("remember", "travels well")
    cli("backup", str(copy))
    elsewhere = tmp_path / "new" / "memories.db"
    document = cli("restore", str(copy), "--store", str(elsewhere), "--json").document
    assert document == {"store": str(elsewhere), "memories": 1, "old_store": None}
    assert cli("--store", str(elsewhere), "recall", "travels", "--json").document["hits"]


def test_copy_moves_a_store_to_another(cli: Any, tmp_path: Path, home: Path) -> None:
    cli("remember", "the release train leaves on Tuesdays")
    cli("remember", "logs are kept for ninety days")
    source, target = str(home / "memories.db"), str(tmp_path / "other.db")
    report = cli("copy", source, target, "--json").document
    assert (report["memories"], report["written"] >= 2) == (2, True)
    assert contents(lambda *words: cli("--store", target, *words)) == contents(cli)
    assert "equal on both sides" in cli("copy", source, str(tmp_path / "third.db")).out
    refused = cli("copy", source, target, "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "Conflict")
    missing = cli("copy", str(tmp_path / "nowhere.db"), target, "--json")
    assert (missing.code, missing.document["error"]["type"]) == (1, "NotFound")


def test_a_copy_into_what_is_no_store_closes_its_source(
    cli: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, closed = list[str](), list[str]()

    def watched(target: str, *, read_only: bool = False) -> Store:
        store = open_store(target, read_only=read_only)
        opened.append(target)
        return replace(store, close=lambda: (store.close(), closed.append(target))[0])

    cli("remember", "the release train leaves on Tuesdays")
    source, target = str(home / "memories.db"), tmp_path / "notes.txt"
    target.write_text("no store at all, but a text that somebody wrote" * 9)
    monkeypatch.setattr("recollect.adapters.open_store", watched)
    assert cli("copy", source, str(target)).code == 1
    assert opened == closed == [source]


def test_concepts_are_read_counted_and_made_anew(cli: Any) -> None:
    texts = ("ana looks after the ledger daemon", "the ledger daemon is restarted with care")
    for text in texts:
        cli("remember", text)
    assert "concepts" not in cli("doctor", "--json").document
    with chat_server(lambda text: names("ana", "ledger daemon") if "ana" in text else names("ledger daemon")) as server:
        for name, value in (("language_model", server.url), ("language_model_name", "m"), ("extract_concepts", "true")):
            assert cli("settings", "set", name, value).code == 0
        cli("remember", "a third thing")
        assert server.notes == []
        assert cli("upkeep", "--json").document["extracted"]["extracted"] == 3
        assert cli("stats", "--json").document["links"] == 1
        again = cli("reindex", "--concepts", "--json").document
        assert (again["dropped"], again["extracted"]["linked"], again["concepts"]["done"]) == (1, 1, 3)
        server.answer = lambda text: names("") if "minutes" in text else "no"
        cli("remember", "a fourth thing")
        assert "1 memory gave the language model trouble" in cli("upkeep").out
        assert "1 memories gave the language model trouble" in cli("doctor").out
        counted = cli("doctor", "--json").document["concepts"]
        assert (counted["done"], counted["pending"], counted["failed"]) == (3, 0, 1)
        assert cli("settings", "set", "extract_concepts", "false").code == 0
        assert cli("reindex", "--concepts", "--json").document["dropped"] == 1
        assert cli("stats", "--json").document["links"] == 0


def test_a_language_model_that_does_not_answer_is_told_with_what_waits_for_it(cli: Any) -> None:
    for text in ("ana looks after the ledger daemon", "the ledger daemon is restarted with care"):
        cli("remember", text)
    with chat_server(lambda _: 503) as server:
        for name, value in (("language_model", server.url), ("language_model_name", "m"), ("extract_concepts", "true")):
            assert cli("settings", "set", name, value).code == 0
        told = cli("upkeep")
        assert (told.code, "a language model read" in told.out) == (0, False)
        assert "the language model does not answer: 2 memories wait for it" in told.out
        server.answer = lambda text: names("ana", "ledger daemon")
        assert "a language model read 2 memories" in cli("upkeep").out
    cli("remember", "nobody listens at that address any more")
    assert "the language model does not answer: 1 memory waits for it" in cli("upkeep").out
    assert "the language model does not answer: 3 memories wait for it" in cli("reindex", "--concepts").out
    document = cli("upkeep", "--json").document
    assert (document["extracted"]["stopped"], document["concepts"]["pending"]) == ("the model is unavailable", 3)
    assert "3 memories wait for the language model" in cli("doctor").out


def test_one_memory_is_told_as_one(cli: Any) -> None:
    cli("remember", "alone", "--no-wait")
    assert "1 memory waits for its embedding" in cli("doctor").out
    cli("upkeep")
    assert cli("upkeep").out.splitlines()[0] == "the one memory is embedded with fake-64"
