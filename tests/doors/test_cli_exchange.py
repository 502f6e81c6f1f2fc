"""import and export."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest

from recollect.doors.cli import exchange


def contents(cli: Any, *args: str) -> set[str]:
    return {one["content"] for one in cli("list", *args, "--json").document["memories"]}


@pytest.mark.covers("more.export")
def test_export_and_import_lose_nothing_and_are_idempotent(cli: Any, tmp_path: Path) -> None:
    old = cli("remember", "we queue with rabbitmq", "--tag", "queue", "--project", "shop", "--json").document["id"]
    new = cli("remember", "nats carries all our messages now", "--pin", "--json").document["id"]
    cli("link", new, "supersedes", old)
    cli("show", old)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert cli("export", str(first), "--json").document == {
        "path": str(first),
        "memories": 2,
        "links": 1,
        "left_out": 0,
    }
    other = ("--store", str(tmp_path / "other.db"))
    assert cli(*other, "import", str(first), "--json").document["added"] == 2
    again = cli(*other, "import", str(first), "--json").document
    assert (again["added"], again["skipped"], again["problem_count"]) == (0, 2, 0)
    assert cli(*other, "export", str(second)).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o077 == 0
    assert cli(*other, "stats", "--json").document["embedding"]["pending"] == 0


@pytest.mark.parametrize("place", [("--namespace", "team"), ("--project", "shop"), ("--session", "s1")])
def test_an_export_is_not_put_into_another_place_than_its_own(cli: Any, tmp_path: Path, place: tuple[str, str]) -> None:
    """Who names a tenant must not find the memories in another one."""
    cli("remember", "we queue with rabbitmq")
    file = tmp_path / "all.jsonl"
    cli("export", str(file))
    other = ("--store", str(tmp_path / "other.db"))
    ran = cli(*other, "import", str(file), *place, "--json")
    assert (ran.code, ran.document["error"]["type"]) == (2, "InvalidInput")
    assert "--namespace" in ran.document["error"]["hint"]
    assert contents(cli, *other) == set()


def test_export_goes_to_standard_output_and_comes_back_through_standard_input(cli: Any, tmp_path: Path) -> None:
    cli("remember", "Bodø is a port ⚓")
    lines = cli("export").out
    assert [json.loads(line).get("kind") for line in lines.splitlines()] == [None, "memory"]
    other = ("--store", str(tmp_path / "other.db"))
    assert cli(*other, "import", "-", input=lines).code == 0
    assert contents(cli, *other) == {"Bodø is a port ⚓"}
    assert cli("export", "--json").code == 2


def test_a_pipe_that_never_ends_does_not_fill_the_disk(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_PIPED", 100)
    other = ("--store", str(tmp_path / "other.db"))
    ran = cli(*other, "import", "-", "--json", input="a line of a note\n" * 7)
    assert (ran.code, ran.document["error"]["type"]) == (2, "InvalidInput")
    assert "from a file" in ran.document["error"]["hint"]
    assert contents(cli, *other) == set()


def test_export_replaces_only_when_told(cli: Any, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("precious")
    assert cli("export", str(target)).code == 1
    assert target.read_text() == "precious"
    assert cli("export", str(target), "--force").code == 0
    assert target.read_text() != "precious"
    assert cli("export", str(tmp_path / "no" / "folder.jsonl")).code == 1


def test_a_folder_of_notes(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    (tmp_path / "vault" / ".obsidian" / "workspace.json").write_text('{"not": "a note"}')
    (tmp_path / "vault" / "harbour.md").write_text("# Harbour\n\nThe harbour opens at six in the morning.\n")
    (tmp_path / "vault" / "picture.png").write_bytes(b"\x89PNG")
    document = cli("import", str(tmp_path / "vault"), "--project", "notes", "--json").document
    assert [one["source"] for one in document["sources"]] == ["harbour.md"]
    assert any("opens at six" in one for one in contents(cli, "--project", "notes"))
    (tmp_path / "empty").mkdir()
    assert cli("import", str(tmp_path / "empty")).code == 1


def test_what_cannot_be_read_in_a_folder_keeps_nothing_else_out(cli: Any, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.json").write_text('{"name": "some package"}')
    (vault / "b.txt").write_bytes("Grüße".encode("utf-16"))
    (vault / "c.md").write_text("# Harbour\n\nThe harbour opens at six in the morning.\n")
    ran = cli("import", str(vault))
    assert (ran.code, "2 problems" in ran.out) == (0, True)
    assert "a.json: 'a.json' has no known format" in ran.err and "b.txt: 'b.txt' is not UTF-8 but UTF-16" in ran.err
    assert any("opens at six" in one for one in contents(cli))
    assert cli("import", str(vault / "a.json")).code == 2


def test_a_file_that_is_no_text_is_refused_not_read_as_lines(cli: Any, tmp_path: Path, home: Path) -> None:
    cli("remember", "a store is no text")
    packed = tmp_path / "memories.jsonl.gz"
    packed.write_bytes(gzip.compress(cli("export").out.encode() * 20))
    for file, next_step in ((packed, "gunzip"), (home / "memories.db", "recollect copy")):
        error = cli("import", str(file), "--json").document["error"]
        assert (error["type"], "is not text" in error["message"], next_step in error["hint"]) == (
            "InvalidInput",
            True,
            True,
        )
    assert contents(cli) == {"a store is no text"}


def test_a_zip_of_an_export(cli: Any, tmp_path: Path) -> None:
    message = {"uuid": "m1", "sender": "human", "text": "We sail at noon", "created_at": "2026-05-01T12:00:00Z"}
    talk = [{"uuid": "c1", "name": "Sailing", "created_at": "2026-05-01T12:00:00Z", "chat_messages": [message]}]
    archive = tmp_path / "claude.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("conversations.json", json.dumps(talk))
        file.writestr("users.json", "[]")
    document = cli("import", str(archive), "--json").document
    assert [(one["source"], one["format"]) for one in document["sources"]] == [
        ("claude.zip/conversations.json", "claude")
    ]
    assert any("We sail at noon" in one for one in contents(cli))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("users.json", "[]")
    assert cli("import", str(tmp_path / "other.zip")).code == 2


def test_a_zip_may_hold_what_nobody_can_read_beside_its_conversations(cli: Any, tmp_path: Path) -> None:
    message = {"uuid": "m1", "sender": "human", "text": "We sail at noon", "created_at": "2026-05-01T12:00:00Z"}
    archive = tmp_path / "claude.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data/conversations.json", json.dumps([{"uuid": "c1", "chat_messages": [message]}]))
        file.writestr("data/memories.json", json.dumps([{"conversations_memory": "Emma lives in Leeds."}]))
        file.writestr("data/memories/a1.json", '{"something": "new"}')
    ran = cli("import", str(archive))
    assert (ran.code, "2 added, 1 problem" in ran.out, "memories/a1.json" in ran.err) == (0, True, True)
    assert contents(cli) == {"We sail at noon", "Emma lives in Leeds."}


def test_one_source_of_several_that_cannot_be_read_keeps_the_others_not_out(cli: Any, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.md", "b.json", "c.md")]
    for file, text in zip(files, ("We sail at noon", '{"name": "some package"}', "Emma lives in Leeds."), strict=True):
        file.write_text(text)
    ran = cli("import", *map(str, files), "--json")
    assert (ran.code, ran.document["added"], ran.document["problem_count"]) == (1, 2, 1)
    assert contents(cli) == {"We sail at noon", "Emma lives in Leeds."}
    told = cli("import", *map(str, files))
    assert (told.code, "3 files: 2 skipped, 1 problem" in told.out, "b.json" in told.err) == (1, True, True)


@pytest.mark.parametrize("damage", ["bits", "checksum", "cut", "password"])
def test_a_damaged_archive_is_told_in_a_line_and_keeps_nobody_out(cli: Any, tmp_path: Path, damage: str) -> None:
    message = {"uuid": "m1", "sender": "human", "text": "We sail at noon " * 40, "created_at": "2026-05-01T12:00:00Z"}
    archive, note = tmp_path / "claude.zip", tmp_path / "a.md"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED if damage == "checksum" else zipfile.ZIP_DEFLATED) as file:
        file.writestr("conversations.json", json.dumps([{"uuid": "c1", "chat_messages": [message]}]))
    packed = bytearray(archive.read_bytes())
    entry = packed.find(b"PK\x01\x02")
    if damage == "password":
        packed[entry + 8] |= 1
        packed[6] |= 1
    elif damage == "cut":
        packed[entry + 20 : entry + 24] = (5).to_bytes(4, "little")
    else:
        packed[48:52] = b"\x07noo"  # no kind of block is called 3, and a text is no longer what was added up
    archive.write_bytes(packed)
    note.write_text("Emma lives in Leeds.")
    alone = cli("import", str(archive), "-q")
    assert (alone.code, alone.err.count("\n")) == (2, 1), alone.err
    assert "claude.zip/conversations.json' cannot be read" in alone.err
    both = cli("import", str(archive), str(note), "--json")
    assert (both.code, both.document["added"], both.document["problem_count"]) == (1, 1, 1)
    assert contents(cli) == {"Emma lives in Leeds."}


def test_a_note_that_may_not_be_read_keeps_the_others_of_its_folder_not_out(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("a.md", "We sail at noon"), ("b.md", "of another user"), ("c.md", "Emma lives in Leeds.")):
        (folder / name).write_text(text)
    opened = Path.open

    def open_own(path: Path, *mode: Any, **more: Any) -> Any:
        if path.name == "b.md":  # rights do not stop the superuser, whom tests may run as
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *mode, **more)

    monkeypatch.setattr(Path, "open", open_own)
    ran = cli("import", str(folder))
    assert (ran.code, "3 files: 2 added, 1 problem" in ran.out) == (0, True), ran.err
    assert "b.md: 'b.md' cannot be read: Permission denied" in ran.err
    assert contents(cli) == {"We sail at noon", "Emma lives in Leeds."}


def test_a_folder_without_notes_keeps_the_sources_beside_it_not_out(cli: Any, tmp_path: Path) -> None:
    note, folder = tmp_path / "a.md", tmp_path / "empty"
    note.write_text("We sail at noon")
    folder.mkdir()
    ran = cli("import", str(folder), str(note), "--json")
    assert (ran.code, ran.document["added"], ran.document["problem_count"]) == (1, 1, 1)
    assert cli("import", str(folder)).code == 1


def test_a_source_that_is_not_there_is_told_before_anything_is_read(cli: Any, tmp_path: Path) -> None:
    note = tmp_path / "a.md"
    note.write_text("We sail at noon")
    assert cli("import", str(note), str(tmp_path / "nosuch.md")).code == 1
    assert contents(cli) == set()


def test_problems_are_told_and_the_rest_is_read(cli: Any, tmp_path: Path) -> None:
    cli("remember", "a good line")
    good = cli("export").out
    broken = tmp_path / "broken.jsonl"
    broken.write_text(good + "{not json\n")
    ran = cli("--store", str(tmp_path / "other.db"), "import", str(broken))
    assert ran.code == 0
    assert "1 added, 1 problem" in ran.out and "problems" not in ran.out
    assert "broken.jsonl, entry 3" in ran.err


def test_wrong_sources(cli: Any, tmp_path: Path) -> None:
    assert cli("import", str(tmp_path / "nosuch.jsonl")).code == 1
    plain = tmp_path / "x.txt"
    plain.write_text("one line\n")
    assert cli("import", str(plain), "--format", "nosuch").code == 2


def test_a_folder_that_is_imported_again_has_its_edited_notes_changed_in_place(
    cli: Any, tmp_path: Path, home: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("We sail at noon")
    (vault / "b.md").write_text("Emma lives in Leeds.")
    cli("import", str(vault))
    (vault / "a.md").write_text("We sail at one, when the tide turns")
    assert "2 files: 1 updated, 1 skipped" in cli("import", str(vault)).out
    assert contents(cli) == {"We sail at one, when the tide turns", "Emma lives in Leeds."}
    assert cli("import", str(vault / "b.md"), "--json").document["updated"] == 0


def test_a_pipe_is_never_held_in_memory_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"line\n" * 3_000_000

    class Pipe(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and 0 < size <= 2**20
            return super().read(size)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(lines)))
    tracemalloc.start()
    (part,) = exchange._parts("-")  # pyright: ignore[reportPrivateUsage]
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (part.name, part.size, used < len(lines)) == ("standard input", len(lines), True)
    with io.TextIOWrapper(cast(Any, part.open())) as text:
        assert text.seekable() and sum(1 for _ in text) == 3_000_000
