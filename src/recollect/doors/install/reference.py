"""The page about hooks, made from the tables that the hooks themselves use."""

from __future__ import annotations

import json
from pathlib import Path

from recollect.doors.hook import block, capturing, deadline, events, injecting, transcript
from recollect.doors.install import changing, entries, places
from recollect.profiles import load
from recollect.stages import prose

COMMAND = ["/home/you/.local/bin/recollect"]
HOME = "/home/you"
MOMENTS = {
    events.START: "a session starts, is resumed, or was compacted",
    events.PROMPT: "you send a prompt",
    events.ANSWERED: "the agent has finished its turn",
    events.COMPACTING: "the conversation is about to be compacted",
    events.END: "the session ends",
}
PAYLOADS = {
    "claude": '{"session_id": "s1", "cwd": "/home/you/shop", "prompt": "which database do we run?"}',
    "codex": '{"session_id": "s1", "turn_id": "t1", "cwd": "/home/you/shop", "prompt": "which database do we run?"}',
    "gemini": '{"session_id": "s1", "cwd": "/home/you/shop", "prompt": "which database do we run?"}',
    "cursor": '{"conversation_id": "s1", "workspace_roots": ["/home/you/shop"], "prompt": "which database do we run?"}',
}
TITLES = {"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI", "cursor": "Cursor"}
LIMITS = {
    "gemini": "Gemini CLI shows the context of a prompt to that turn, and does not wait for the end of a session.",
    "cursor": "Cursor documents context at the start of a session; that it also takes it with a prompt is undocumented "
    "and may differ between versions.",
}
EXAMPLE = (
    "- [decision] We use PostgreSQL 16 in production (confidence: 0.9, age: 12d) "
    "[2026-05-01, source: claude-code, id: 01m7fbngrn1eqwrrk38m90we71]"
)

INTRODUCTION = """\
# Memory inside coding agents

This page is generated from the program (`make docs`).

    recollect install                    # every agent that is found here; or claude-code, codex, gemini, cursor

writes two things into an agent's own configuration: **hooks**, so that what is remembered arrives with the prompt it
matters for, and the **MCP server**, so that the agent can search and write by itself. It shows a diff; `--dry-run` only
shows it. Everything that was there stays, to the character; running it again changes nothing; `recollect uninstall`
takes out exactly what was put in. A file that cannot be read as what it should be is named and left alone. The old file
is kept beside the new one (`{backup}`) until uninstall.

`--user` (the default) is for all your projects; `--project` changes the files of the repository you are in. They then
hold the path of this machine's `recollect`, so keep them out of version control. At a terminal it asks whether to fetch
the embedder, if there is none (`--fetch`, `--no-fetch`).

The hooks need the daemon and the MCP server: `pip install '.[server,mcp]'` in the checkout.

## What the hooks do

| moment | what happens |
|---|---|
{moments}

**Speaking.** At most {lines} memories and {characters:,} characters, between `{open}` and `{close}`, said to be
reference data and no instructions. Each stands on one line with its kind, confidence, age, date, source and id; what is
marked sensitive is never among them. Text
that tries to close the fence or to pass for a part of the conversation is disarmed. No memory is shown twice in one
conversation, unless it was compacted since or your prompt contains `{asked}`. A session starts with what is recent and
important in its project (in general, if the project has nothing yet). A prompt is answered by the profile in
`recollect_profile` with at most `recollect_limit` memories, and with none where `balanced` finds nothing that has to do
with it; while prompts stay on their topic nothing new is said (`topic_gate`). That silence begins where there is
something to choose from, from {from_memories} memories on (those of the project with `--only-project`): among fewer the
best are shown for every prompt that asks something. A profile of your own may have another number (`unasked_from`).

**Reading a prompt.** A prompt is prose: quotes, `NOT`, `-flags` and `type:` in it mean nothing. Of a long one, with a
log or a source file in it, both ends are read, the words are searched for that are rarest among the memories, and
{meant:,} characters of both ends are compared by meaning. Who only nods ("ok, do it", "danke") is told nothing. What
coding prompts get is measured in [decision 12](decisions/0012-abstention.md).

**Listening.** From the agent's own words, `[MEMORY]` lines and phrasings such as "Decision: …" or "The fix was …"
become memories. Tools, side conversations, code blocks and what recollect itself had shown are not
listened to. Of a transcript at most the last {tail} MiB are read, from where the last hook stopped, each turn once.
Nothing is printed that would make the agent go on.

**Heeding.** Of your own prompts only what you ask for becomes a memory, in your words and at once: "remember that we
deploy on Tuesdays", "don't forget that …", "note to self: …", "for future reference, …", "from now on, …", "merk dir:
…", in the first or last paragraph of a prompt, of a long one only at its very beginning (the rest is mostly pasted, and
what others write is no wish of yours), never in code and quotes, nor in a prompt that the agent sends itself. Bullets
behind "remember:" are a memory each. The agent is told that it is stored. Questions ("do you remember …?") and orders
for now ("remember to …") are no such wish. What you had made recollect forget comes back that way; if no daemon runs
yet, the wish waits for it.

**Project and session.** The project is the name of the Git repository of the agent's folder (all its worktrees are one
project), else the name of the folder; your home folder is no project. What is heard is stored under project and
session. Prompts recall from all projects; `recollect install AGENT --only-project` keeps them to their own
(where there is no project, nothing is recalled), until `uninstall`.

**Never in the way.** A hook has {budget} ms, counted from the start of its process, and always exits with 0. It talks
to the daemon over its Unix socket, else over the port that a living daemon has written down. If none runs, it starts
one in the background and meanwhile uses the session's last recollection if it was not shown yet (an answer that came
too late for one prompt is there for the next), else nothing; what the start of a session could not say comes with its
first prompt. A turn that ends before the daemon is up waits for it in
the background for up to {patience} seconds.

**One home, one daemon, one store.** A hook whose `RECOLLECT_STORE` (or, without it, whose home) means another store
than the one that the running daemon serves neither reads nor writes there. Give such a store a home of its own
(`RECOLLECT_HOME`). A daemon whose store's file was moved, deleted or replaced ends within a second or two; the next
hook starts one for what is there. So does a daemon that a hook started, when a setting was changed, a model fetched or
recollect upgraded; one that you started by hand goes on as it began, and its log says so. `recollect doctor` tells
whether one runs and how to end it (`kill PROCESS`); `uninstall` leaves it running and the memories where they are.

| variable | meaning |
|---|---|
| `RECOLLECT_HOOK_DEBUG=1` | tell on standard error what happened |
| `RECOLLECT_HOOK_BUDGET_MS` | another budget than {budget} |
| `RECOLLECT_NO_DAEMON=1` | never start a daemon |
| `RECOLLECT_HOME`, `RECOLLECT_STORE` | as everywhere ([configuration.md](configuration.md)) |

## Events

| moment | {agents} |
|---|{rules}
{events}

Other agents that send what Claude Code sends can use the same command with a name of their own:
`recollect hook UserPromptSubmit --agent NAME`.
"""

PLUGIN = """\
### As a plugin

Instead of `recollect install claude-code`, with `recollect` on the `PATH`:

    /plugin marketplace add PATH-OF-THIS-REPOSITORY
    /plugin install recollect@recollect

It brings the same hooks, the MCP server and a skill that tells the model how to use them. Use one of the two ways.
"""


def page() -> str:
    """The whole page as Markdown."""
    moments = {
        events.START: "speaks",
        events.PROMPT: "heeds what you ask to remember, and speaks",
        events.ANSWERED: "listens",
        events.COMPACTING: "listens; what was shown may be shown again",
        events.END: "listens",
    }
    recipe = load("balanced").confidence
    parts = [
        INTRODUCTION.format(
            backup=f"*{changing.BACKUP_SUFFIX}",
            moments="\n".join(f"| {MOMENTS[kind]} | {what} |" for kind, what in moments.items()),
            lines=block.MOST_LINES,
            characters=block.BLOCK_CHARACTERS,
            open=block.FENCE_OPEN,
            close=block.FENCE_CLOSE,
            asked=injecting.ASKED_BY_NAME,
            from_memories=recipe.unasked_from if recipe is not None else 0,
            meant=prose.MEANT,
            tail=transcript.MOST_BYTES // 2**20,
            budget=round(deadline.BUDGET_SECONDS * 1000),
            patience=round(capturing.PATIENCE_SECONDS),
            agents=" | ".join(TITLES.values()),
            rules="---|" * len(TITLES),
            events="\n".join(_event_row(kind) for kind in MOMENTS),
        )
    ]
    parts += [_quick_start(name, agent) for name, agent in places.AGENTS.items()]
    return "\n".join(parts)


def _event_row(kind: str) -> str:
    return f"| {MOMENTS[kind]} | " + " | ".join(f"`{events.native_name(agent, kind)}`" for agent in TITLES) + " |"


def _quick_start(name: str, agent: str) -> str:
    """Install, what changes where, and what a prompt then brings."""
    prompt = events.native_name(agent, events.PROMPT)
    found = places.targets(agent, COMMAND, project=None, environment={"HOME": HOME})
    in_project = places.targets(agent, COMMAND, project=Path(), environment={})
    files = ", ".join(f"`{str(one.path).replace(HOME, '~')}`" for one in found)
    project_files = ", ".join(f"`{one.path}`" for one in in_project)
    handler = entries.hooks_document(agent, COMMAND)[prompt]
    answer = events.rendered(agent, events.PROMPT, block.fenced([EXAMPLE]))
    lines = [
        f"## {TITLES[agent]}\n",
        f"    recollect install {name}\n",
        f"Files: {files}; with `--project`: {project_files}.\n",
        *([places.NOTES[agent] + "\n"] if agent in places.NOTES else []),
        *([LIMITS[agent] + "\n"] if agent in LIMITS else []),
        f'Under `"hooks"`, for each event as here for `{prompt}`:\n',
        f"```json\n{json.dumps({prompt: handler}, indent=2)}\n```\n",
        "Try it without the agent:\n",
        f"```\n$ echo '{PAYLOADS[agent]}' \\\n    | recollect hook {prompt} --agent {agent}\n{answer}\n```\n",
    ]
    if agent == "claude":
        lines.append(PLUGIN)
    return "\n".join(lines)
