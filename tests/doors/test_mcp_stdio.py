"""`recollect mcp` as a client meets it: a real process, only JSON-RPC on its output, gone with the client."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_cases import HANDSHAKE, MODERN, Visit, every_tool, schemas_of, visit

COMMAND = [sys.executable, "-m", "recollect", "mcp"]
PATIENCE_SECONDS = 120
"""Only so that a hanging test ends; nothing here is measured."""

# A memory whose opening never ends: the tool call that needs it is under way for ever.
STUCK = "import time; from recollect.doors.mcp.stdio import serve; serve(lambda: time.sleep(3600))"
# A parent that starts the server on descriptors it was given, tells its process id, and stays.
PARENT = """
import subprocess, sys, time
ends = int(sys.argv[1]), int(sys.argv[2])
server = subprocess.Popen([sys.executable, "-m", "recollect", "mcp"], stdin=ends[0], stdout=ends[1])
print(server.pid, flush=True)
time.sleep(3600)
"""


@pytest.fixture
def parameters(home: Path) -> StdioServerParameters:
    return StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """Start a server; whatever a test leaves behind is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*command: str, **options: Any) -> subprocess.Popen[bytes]:
        piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        started.append(subprocess.Popen(list(command or COMMAND), **piped))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def request(id: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def initialize() -> bytes:
    client = {"name": "raw", "version": "1"}
    first = request(1, "initialize", protocolVersion=HANDSHAKE, capabilities={}, clientInfo=client)
    return first + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'


def call(number: int, tool: str, **arguments: Any) -> bytes:
    return request(number, "tools/call", name=tool, arguments=arguments)


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", HANDSHAKE)])
def test_the_official_client_uses_every_tool(parameters: StdioServerParameters, mode: str, version: str) -> None:
    async def work(at: Visit) -> None:
        assert at.client.protocol_version == version
        await every_tool(at)
        assert len((await at.client.get_prompt("recall", {"topic": "database"})).messages) == 1

    visit(parameters, work, mode=mode)


def test_a_bare_session_shakes_hands_and_uses_every_tool(parameters: StdioServerParameters) -> None:
    async def run() -> None:
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            assert (await session.initialize()).protocol_version == HANDSHAKE
            await every_tool(Visit(session, await schemas_of(session)))
            await session.send_ping()

    anyio.run(run)


def test_what_one_door_writes_the_other_reads(parameters: StdioServerParameters, cli: Any) -> None:
    assert cli("remember", "The boat is called Heron").code == 0

    async def work(at: Visit) -> None:
        assert (await at.call("memory_search", query="boat"))["hits"][0]["content"] == "The boat is called Heron"
        await at.call("memory_remember", content="The boat lies at pier nine", source="harbour")

    visit(parameters, work)
    hits = cli("recall", "pier", "--json").document["hits"]
    assert [hit["source"] for hit in hits if "pier nine" in hit["content"]] == ["harbour"]


def test_initialize_is_answered_before_the_store_is_opened(start: Start, home: Path) -> None:
    process = start()
    send(process, initialize() + request(2, "tools/list"))
    assert answer(process)["result"]["serverInfo"]["name"] == "recollect"
    assert len(answer(process)["result"]["tools"]) == 11
    assert not (home / "memories.db").exists()
    send(process, call(3, "memory_status"))
    assert answer(process)["result"]["structuredContent"]["memories"] == 0
    assert (home / "memories.db").exists()


def test_standard_output_is_json_rpc_whatever_comes_in(start: Start) -> None:
    rubbish = [b"not json\n", b"\n", b"[]\n", b"{}\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\x00\n", b'{"id": 1e999}\n',
               b'{"jsonrpc": "2.0", "id": 7, "method": "nothing/here"}\n', b"[" * 5000 + b"\n"]  # fmt: skip
    process = start()
    send(process, initialize())
    answer(process)
    for line in rubbish:
        send(process, line)
    # Errors and crashes are logged, prints are diverted: none of it may reach the client's pipe.
    send(process, call(8, "memory_search", query="x", profile="nope") + call(9, "memory_expand", id="nothing"))
    send(process, call(10, "memory_status"))
    seen: dict[Any, Any] = {}
    while 10 not in seen or 9 not in seen or 8 not in seen:
        message = answer(process)
        assert message["jsonrpc"] == "2.0"
        seen[message.get("id")] = message
    assert seen[9]["result"]["isError"]
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert process.returncode == 0


def test_a_request_with_half_an_emoji_is_answered(start: Start) -> None:
    """JavaScript cuts texts between the halves of a surrogate pair, and spells what is left as \\ud83d."""
    process = start()
    send(process, initialize())
    answer(process)
    send(process, call(2, "memory_remember", content="The boat is called Heron \ud83d"))
    assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]
    remembered = answer(process)
    assert remembered["id"] == 2 and remembered["result"]["structuredContent"]["action"] == "added"
    send(process, call(3, "memory_search", query="\ude00 boat \U0001f6a4 \\ud83d"))
    found = answer(process)
    assert [hit["content"] for hit in found["result"]["structuredContent"]["hits"]] == [
        "The boat is called Heron \ufffd"
    ]
    assert found["result"]["structuredContent"]["query"] == "\ufffd boat \U0001f6a4 \\ud83d"


def test_the_end_of_input_ends_the_server(start: Start) -> None:
    process = start()
    send(process, initialize() + call(2, "memory_remember", content="Durable before it is acknowledged"))
    answer(process)
    assert answer(process)["result"]["structuredContent"]["action"] == "added"
    assert process.communicate(timeout=PATIENCE_SECONDS)[0] == b""
    assert process.returncode == 0


def test_the_end_of_input_ends_a_server_that_is_stuck_in_a_call(start: Start) -> None:
    process = start(sys.executable, "-c", STUCK)
    send(process, initialize() + call(2, "memory_status"))
    answer(process)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0


def test_a_server_whose_parent_was_killed_ends_though_its_input_stays_open(start: Start) -> None:
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()
    parent = start(sys.executable, "-c", PARENT, str(server_in), str(server_out), pass_fds=(server_in, server_out))
    os.close(server_in)
    os.close(server_out)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    os.write(to_server, initialize())
    with os.fdopen(from_server, "rb") as output:
        assert json.loads(output.readline())["id"] == 1
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        try:
            # Its output ends when it ends: nobody else holds that pipe.
            ended, _, _ = select.select([output], [], [], PATIENCE_SECONDS)
            assert ended
            assert output.read() == b""
        finally:
            os.close(to_server)
            _end(orphan)


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_many_clients_share_one_store(parameters: StdioServerParameters) -> None:
    async def one(number: int) -> None:
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            at = Visit(session, await schemas_of(session))
            for place in range(5):
                written = await at.call("memory_remember", content=f"Client{number} noted item{place}x{number}")
                assert written["action"] == "added"

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(one, number)

    anyio.run(run)

    async def count(at: Visit) -> int:
        return (await at.call("memory_status"))["memories"]

    assert visit(parameters, count) == 20


def test_a_namespace_is_chosen_at_the_start(home: Path) -> None:
    def server(namespace: str) -> StdioServerParameters:
        arguments = [*COMMAND[1:], "--namespace", namespace]
        return StdioServerParameters(command=COMMAND[0], args=arguments, env=dict(os.environ))

    async def write(at: Visit) -> None:
        await at.call("memory_remember", content="Only ours to know")

    async def read(at: Visit) -> list[str]:
        return [hit["content"] for hit in (await at.call("memory_search", query="ours"))["hits"]]

    visit(server("ours"), write)
    assert visit(server("ours"), read) == ["Only ours to know"]
    assert visit(server("theirs"), read) == []


def test_without_the_extra_the_command_says_what_to_install(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "recollect.doors.mcp.stdio", None)
    ran = cli("mcp")
    assert ran.code == 1
    assert "pip install 'mcp<3,>=2.3'" in ran.err


def test_shaking_hands_loads_no_numbers_and_no_database() -> None:
    """Clients start servers often and wait for them: the engine's modules are loaded when a tool needs them."""
    heavy = "numpy", "apsw", "onnxruntime", "recollect.engine"
    script = f"import sys, recollect.doors.mcp.stdio; print([one for one in {heavy!r} if one in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
