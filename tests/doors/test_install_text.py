"""Editing somebody's configuration as text: what is not ours stays, to the character."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.doors.install import entries, jsontext, tomltext

COMMAND = ["/opt/my tools/recollect"]

scalars = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=4)
layouts = st.sampled_from([None, 1, 2, 4, "\t"])


@given(values, layouts)
def test_reading_agrees_with_json(value: Any, indent: Any) -> None:
    assert jsontext.parse(json.dumps(value, indent=indent)).value == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2", '{"a" 1}', "{'a': 1}", '{"a": 1} x', '{"a": tru}', '{"a": 01x}', '{"a": 1, "a": 2}', "{,}",
     '"\\q"', '{"a": "b\nc"}', "nan", "[" * 5000],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(jsontext.Malformed, match="line"):
        jsontext.parse(text)


def test_comments_and_trailing_commas_are_read() -> None:
    text = '// top\n{\n  "a": [1, 2,], /* b */ "b": {"c": "// no comment",},\n}\n'
    assert jsontext.parse(text).value == {"a": [1, 2], "b": {"c": "// no comment"}}


@given(documents, layouts, st.sampled_from(["\n", "\r\n"]), values)
@settings(max_examples=300)
def test_adding_and_removing_are_inverse(document: dict[str, Any], indent: Any, newline: str, value: Any) -> None:
    document.pop("ours", None)
    text = json.dumps(document, indent=indent).replace("\n", newline) + newline
    added = jsontext.appended(text, (), "ours", value)
    assert jsontext.parse(added).value == {**document, "ours": value}
    assert list(jsontext.parse(added).value) == [*document, "ours"]
    assert jsontext.removed(added, ("ours",)) == text


@given(st.lists(scalars, min_size=1, max_size=4), layouts, st.data())
def test_any_item_can_be_removed(items: list[Any], indent: Any, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(items) - 1))
    text = json.dumps({"x": items}, indent=indent)
    left = jsontext.parse(jsontext.removed(text, ("x", place))).value
    assert left == {"x": items[:place] + items[place + 1 :]}


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": 1 // why\n}\n',
        '{\n  "a": 1, // why\n}\n',
        '{\n  // only a comment\n  "a": 1\n  // last words\n}',
        '{\n\t"a": [\n\t\t1\n\t]\n}\n',
        '{"a": 1}',
        '{ "a": {"b": 2} }\n\n',
        '\ufeff{\n  "a": 1\n}\n',
        '{\r\n    "a": 1 /* x */\r\n}\r\n',
    ],
)
def test_comments_layout_and_line_ends_survive(text: str) -> None:
    added = jsontext.appended(text, (), "ours", {"x": ["y"]})
    assert jsontext.parse(added).value == {**jsontext.parse(text).value, "ours": {"x": ["y"]}}
    assert jsontext.removed(added, ("ours",)) == text
    for piece in ("// why", "// only a comment", "// last words", "/* x */", "\ufeff"):
        assert (piece in text) == (piece in added)
    assert ("\r\n" in added) == ("\r\n" in text) and ("\n" in added.replace("\r\n", "")) == (
        "\n" in text.replace("\r\n", "")
    )


SETTINGS = [
    '{\n  "model": "opus",\n  "permissions": {\n    "allow": ["Bash(ls:*)"]\n  }\n}\n',
    '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "x": 1}',
    '{\n    "hooks": {\n        "UserPromptSubmit": [\n            {\n                "matcher": "",\n'
    '                "hooks": [\n                    {"type": "command", "command": "echo recollect hook"}\n'
    "                ]\n            }\n        ]\n    }\n}",
    '// mine\n{\n\t"hooks": {\n\t\t"Stop": [], // none yet\n\t\t"Notification": []\n\t},\n\t"theme": "dark",\n}\n',
]  # fmt: skip


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "cursor"])
@pytest.mark.parametrize("text", SETTINGS)
def test_hooks_go_in_beside_what_is_there_and_come_out_again(agent: str, text: str) -> None:
    once = entries.with_server(entries.with_hooks(text, agent, COMMAND, False), agent, COMMAND)
    again = entries.with_server(entries.with_hooks(once, agent, COMMAND, False), agent, COMMAND)
    assert again == once != text
    before, after = jsontext.parse(text).value, jsontext.parse(once).value
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    for event, (wanted,) in entries.hooks_document(agent, COMMAND).items():
        assert after["hooks"][event][-1] == wanted
    left = jsontext.parse(entries.without_hooks(entries.without_server(once), agent)).value
    left.pop("version", None)
    # An event that had an empty list may have lost it: the copy kept beside the file brings that back as well.
    for event, groups in before.get("hooks", {}).items():
        if not groups:
            left["hooks"].setdefault(event, [])
    assert left == before


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "cursor"])
def test_a_comment_where_nothing_else_was_comes_out_again(agent: str) -> None:
    """Hooks that somebody has commented out, say."""
    event = next(iter(entries.hooks_document(agent, COMMAND)))
    for inner in ("// none yet", f'"{event}": [\n      /* {{"command": "say done"}} */\n    ]'):
        hooks = f'"hooks": {{\n    {inner}\n  }}'
        text = f'{{\n  "version": 1,\n  {hooks},\n  "mcpServers": {{\n    // "docs": {{}}\n  }}\n}}\n'
        once = entries.with_server(entries.with_hooks(text, agent, COMMAND, False), agent, COMMAND)
        assert entries.without_hooks(entries.without_server(once), agent) == text


def test_an_older_installation_is_brought_up_to_date_in_place() -> None:
    old = entries.with_server(
        entries.with_hooks("{}\n", "claude", ["/old/bin/recollect"], False), "claude", ["/old/bin/recollect"]
    )
    new = entries.with_server(entries.with_hooks(old, "claude", COMMAND, False), "claude", COMMAND)
    assert new == entries.with_server(entries.with_hooks("{}\n", "claude", COMMAND, False), "claude", COMMAND)
    assert "/old/" not in new


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", " --only-project"),
        ("RECOLLECT_HOME='/home/me/at work' A=\"b c\" ", " --only-project 2>>'/tmp/my log'"),
        ("nice -n 5 ", ""),
    ],
)
@pytest.mark.parametrize("old", [["/old/bin/recollect"], ["/my 'old' tools/python", "-P", "-m", "recollect"]])
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "cursor"])
def test_what_stands_around_our_hook_stays_when_it_is_brought_up_to_date(
    agent: str, old: list[str], before: str, behind: str
) -> None:
    """Above all `--only-project`: another install must not show every project's memories again."""

    def written(command: list[str]) -> str:
        text = entries.with_hooks("{}\n", agent, command, False)
        for event in entries.hooks_document(agent, command):
            line = entries.hook_line(command, agent, event)
            text = text.replace(json.dumps(line), json.dumps(before + line + behind))
        return text

    assert entries.with_hooks(written(old), agent, COMMAND, False) == written(COMMAND)
    assert entries.with_hooks(written(old), agent, COMMAND, "--only-project" in behind) == written(COMMAND)
    assert entries.with_hooks(written(COMMAND), agent, COMMAND, False) == written(COMMAND)
    chosen = entries.with_hooks(entries.with_hooks("{}\n", agent, COMMAND, False), agent, COMMAND, True)
    assert chosen == entries.with_hooks("{}\n", agent, COMMAND, True)
    assert jsontext.parse(entries.without_hooks(written(old), agent)).value in ({}, {"version": 1})


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("/opt/bin/recollect hook Stop --agent claude", True),
        ("'/opt/my tools/recollect' hook Stop --agent claude --only-project", True),
        ("/usr/bin/python3 -P -m recollect hook Stop --agent claude", True),
        ("/opt/bin/recollect hook Stop --agent codex", False),
        ("echo recollect hook", False),
        ("my-recollect hook Stop --agent claude", False),
        ("recollect recall hook", False),
        ("unbalanced ' quote", False),
        (None, False),
    ],
)
def test_only_our_own_commands_are_ours(line: Any, ours: bool) -> None:
    assert entries.is_ours(line, "claude") is ours


OWN_SERVER = """{
  "mcpServers": {
    // for work
    "recollect": {
      "command": "/old/bin/recollect", /* moved */
      "args": ["mcp", "--namespace", "work"],
      "env": {"RECOLLECT_HOME": "/home/me/work"}
    }
  }
}
"""


def test_what_was_added_to_our_server_by_hand_stays_when_it_is_brought_up_to_date() -> None:
    new = entries.with_server(OWN_SERVER, "cursor", ["/new/bin/recollect"])
    assert new == OWN_SERVER.replace("/old/bin", "/new/bin")
    assert entries.with_server(new, "cursor", ["/new/bin/recollect"]) == new
    module = entries.with_server(new, "cursor", ["/usr/bin/python", "-P", "-m", "recollect"])
    read = jsontext.parse(module).value["mcpServers"]["recollect"]
    assert read["args"] == ["-P", "-m", "recollect", "mcp", "--namespace", "work"]
    assert (read["command"], read["env"]) == ("/usr/bin/python", {"RECOLLECT_HOME": "/home/me/work"})
    assert "recollect" not in entries.without_server(module)


def test_what_was_added_to_our_toml_table_by_hand_stays_when_it_is_brought_up_to_date() -> None:
    text = tomltext.with_table("", ("mcp_servers", "recollect"), entries.server("codex", ["/old/bin/recollect"]))
    edited = text.replace('["mcp"]', '["mcp", "--namespace", "work"]\nstartup_timeout_sec = 20')
    new = entries.with_toml_server(edited, "codex", ["/new/bin/recollect"])
    assert new == edited.replace("/old/bin", "/new/bin")
    assert tomltext.without_table(new) == ""


def test_a_server_of_our_name_that_is_not_ours_is_left_alone() -> None:
    text = '{"mcpServers": {"recollect": {"command": "npx", "args": ["other"]}}}'
    assert entries.with_server(text, "claude", COMMAND) == text
    assert entries.without_server(text) == text


CONFIGS = [
    "",
    'model = "gpt-5"\n',
    '# mine\nmodel = "x" # why\n\n[mcp_servers.other]\ncommand = "npx"\nargs = ["a"]\n',
    'model = "no newline at the end"',
    'a = 1\r\n[b]\r\nc = "d"\r\n',
    "x = 1\n\n\n",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_a_toml_table_goes_in_at_the_end_and_comes_out_again(text: str) -> None:
    once = entries.with_toml_server(text, "codex", COMMAND)
    assert entries.with_toml_server(once, "codex", COMMAND) == once
    found = tomllib.loads(once.replace("\r\n", "\n"))
    assert found["mcp_servers"].pop("recollect") == {"command": COMMAND[0], "args": ["mcp"]}
    before = tomllib.loads(text.replace("\r\n", "\n"))
    assert found == {"mcp_servers": {}, **before}
    assert once.startswith(text)
    out = tomltext.without_table(once)
    assert out == text or out == text + "\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_codex_writes_before_our_last_mark_stays(newline: str) -> None:
    """It keeps a comment at the end of the file there, and puts new tables before it: which folders it trusts."""
    before = 'model = "x"\n\n[mcp_servers.docs]\ncommand = "npx"\n'.replace("\n", newline)
    once = entries.with_toml_server(before, "codex", COMMAND)
    own = '\n[mcp_servers.recollect.env]\nRECOLLECT_HOME = "/w"\nlist = [\n  [1],\n[2]]\n'.replace("\n", newline)
    theirs = '\n# mine\n[projects."/home/me/shop"]\ntrust_level = "trusted"\n\n[[mcp_servers.z]]\n[tui]\na = 1\n'
    theirs = theirs.replace("\n", newline)
    for added in (theirs, own + theirs):
        mixed = once.replace(tomltext.END, added + tomltext.END)
        assert entries.with_toml_server(mixed, "codex", COMMAND) == mixed
        moved = entries.with_toml_server(mixed, "codex", ["/new/bin/recollect"])
        assert tomllib.loads(moved)["mcp_servers"]["recollect"]["command"] == "/new/bin/recollect"
        assert tomltext.without_table(moved) == tomltext.without_table(mixed) == before + theirs
        assert tomltext.without_table(f"b = = 2\n{mixed}") == f"b = = 2\n{before}{theirs}"


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_marks_within_a_text_of_several_lines_are_not_taken_for_ours(quotes: str) -> None:
    """Somebody may keep a copy of our table in his instructions, before ours or without it."""
    block = tomltext.with_table("", ("mcp_servers", "recollect"), entries.server("codex", ["/bin/recollect"]))
    text = f"odd = nan\nnotes = {quotes}\n{block}{quotes}\n"
    theirs = tomllib.loads(text)["notes"]
    assert tomltext.without_table(text) == text and not entries.is_toml_taken(text)
    once = entries.with_toml_server(text, "codex", COMMAND)
    assert tomllib.loads(once)["notes"] == theirs and once.startswith(text)
    again = entries.with_toml_server(once, "codex", ["/new/bin/recollect"])
    assert tomllib.loads(again)["mcp_servers"]["recollect"]["command"] == "/new/bin/recollect"
    assert tomllib.loads(again)["notes"] == theirs
    assert tomltext.without_table(again) == text


def test_what_is_no_toml_any_more_loses_our_table_by_its_marks() -> None:
    text = tomltext.with_table("a = 1\n", ("mcp_servers", "recollect"), entries.server("codex", ["/bin/recollect"]))
    assert tomltext.without_table(f"b = = 2\n{text}") == "b = = 2\na = 1\n"


def test_toml_that_cannot_take_the_table_is_refused_or_left_alone() -> None:
    with pytest.raises(tomltext.Malformed):
        entries.with_toml_server("a = = 1\n", "codex", COMMAND)
    with pytest.raises(tomltext.Malformed):
        entries.with_toml_server('mcp_servers = { other = { command = "x" } }\n', "codex", COMMAND)
    theirs = '[mcp_servers.recollect]\ncommand = "something else"\n'
    assert entries.with_toml_server(theirs, "codex", COMMAND) == theirs
