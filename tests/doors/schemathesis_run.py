"""schemathesis against a real daemon: every route of the OpenAPI description, at least 2,000 cases, no server error.

`python -m tests.doors.schemathesis_run [EXAMPLES]` from the repository's folder; exits 1 on any finding. The endless
stream /v1/events is left out; tests/doors/test_http_streams.py covers it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST_CASES = 2000
EXAMPLES = 100


def main(examples: int = EXAMPLES) -> int:
    """Start a daemon, run schemathesis, count the cases it made."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "RECOLLECT_HOME": f"{folder}/home",
            "RECOLLECT_EMBEDDER": "fake",
            "RECOLLECT_RERANKER": "none",
        }
        command = [sys.executable, "-m", "recollect", "serve", "--port", "0", "--json"]
        with Path(folder, "log").open("wb") as log:
            daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
        try:
            assert daemon.stdout is not None
            started = json.loads(daemon.stdout.readline())
            token = Path(started["token_file"]).read_text(encoding="ascii")
            code, cases = _fuzz(started["url"], token, examples, Path(folder))
        finally:
            daemon.terminate()
            daemon.wait(60)
        bugs = [line for line in Path(folder, "log").read_text(encoding="utf-8").splitlines() if '"failure"' in line]
    sys.stdout.write("".join(f"{line}\n" for line in bugs[:20]))
    sys.stdout.write(f"{cases} cases, {len(bugs)} server errors, schemathesis exit code {code}\n")
    return 0 if code == 0 and not bugs and cases >= LEAST_CASES else 1


def _fuzz(url: str, token: str, examples: int, folder: Path) -> tuple[int, int]:
    """The exit code, and how many cases were made; `folder` takes what schemathesis leaves behind.

    One check is off: a request of the right shape may still be refused with a documented 412 or 422 for what no schema
    can say (an unknown profile, a memory linked to itself, bytes instead of characters).
    """
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {token}",
        "--exclude-path", "/v1/events",
        "--exclude-checks", "positive_data_acceptance",
        "--max-examples", str(examples),
        "--continue-on-failure",
        "--generation-database", ":memory:",
        "--seed", "1",
        "--no-color",
    ]  # fmt: skip
    ran = subprocess.run(command, check=False, cwd=folder, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(ran.stdout)
    counted = re.search(r"(\d+) generated", ran.stdout)
    return ran.returncode, int(counted[1]) if counted else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES))
