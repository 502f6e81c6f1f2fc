"""The docs are part of the product: generated pages are current, every name is documented, commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from recollect import profiles, settings
from recollect.settings import Settings

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def generated_pages() -> dict[str, str]:
    sys.path.insert(0, str(DOCS))
    try:
        import generate  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(DOCS))
    return {name: page() for name, page in generate.PAGES.items()}


def test_generated_pages_say_what_the_code_says() -> None:
    pages = generated_pages()
    assert {"cli.md", "hooks.md", "http.md", "library.md", "mcp.md", "models.md", "profiles.md"} == set(pages)
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name} is out of date: run `make docs`"


def test_every_setting_has_its_row() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    missing = [field.name for field in fields(Settings) if field.name != "home" and f"`{field.name}`" not in text]
    assert missing == []


def test_every_profile_is_documented() -> None:
    text = (DOCS / "profiles.md").read_text(encoding="utf-8")
    assert [name for name in profiles.builtin_names() if f"- `{name}`:" not in text] == []


def test_every_word_of_the_rooms_is_in_the_architecture_page() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "recollect"
    rooms = [path.name for path in source.iterdir() if path.is_dir() and not path.name.startswith("__")]
    assert [room for room in rooms if f"`{room}/`" not in text] == []
    modules = [path.name for path in source.glob("*.py") if not path.name.startswith("__")]
    assert [module for module in modules if f"`{module}`" not in text] == []
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert [path for path in sorted(named) if not (source / path).is_file()] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_the_readme_names_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {"demo", "test"} and named <= targets


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    done = run([sys.executable, "-c", code], tmp_path)
    assert "We use PostgreSQL 16 in production" in done.stdout and "## Relevant Memories" in done.stdout


def test_the_commands_of_the_tutorial_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)
    script = "set -e\n" + "\n".join(blocks)
    done = run(["bash", "-c", script], tmp_path)
    assert "PostgreSQL 16" in done.stdout
    assert (tmp_path / "tutorial-backup.db").is_file() and (tmp_path / "tutorial.jsonl").is_file()


def test_the_examples_of_the_reference_page_run(tmp_path: Path) -> None:
    """As they stand there, in a home that has what they name; without those that name ids, servers or downloads."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    blocks = re.findall(r"## `recollect ([a-z]+).*?```sh\n(.*?)```", page, re.DOTALL)
    left_out = {"demo", "show", "update", "forget", "link", "pin", "reindex", "restore", "copy", "import"}
    left_out |= {"serve", "mcp", "hook", "install", "uninstall", "models", "eval"}
    lines = [line for name, block in blocks if name not in left_out for line in block.splitlines()]
    assert len(lines) > 20
    (tmp_path / "backups").mkdir()
    script = (
        "set -eo pipefail\nHOME=$PWD\ngit() { echo 'Fix the login'; }\nrecollect profiles show balanced > mine.toml\n"
    )
    script += "\n".join(lines)
    done = run(["bash", "-c", script + "\nrecollect import memories.jsonl"], tmp_path)
    assert "PostgreSQL 16" in done.stdout and (tmp_path / "memories.jsonl.gz").is_file()


@pytest.mark.parametrize("page", ["README.md", "docs/hooks.md"])
def test_where_silence_is_promised_it_is_said_from_how_many_memories_on(page: str) -> None:
    """A new user has a handful: there the best of them is shown, whatever was asked."""
    recipe = profiles.load("balanced").confidence
    assert recipe is not None and recipe.unasked_from > 1
    told = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"from {recipe.unasked_from} memories on" in told


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_every_command_shown_exists(page: str) -> None:
    shown = set(re.findall(r"^(?:\$ )?recollect ([a-z]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    known = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [name for name in sorted(shown) if f"## `recollect {name}" not in known] == []


@pytest.mark.model
def test_the_readmes_recall_prints_what_stands_there(tmp_path: Path) -> None:
    """Ids, times and the last digits aside."""
    (shown,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    script = "set -e\n" + "\n".join(re.findall(r"^\$ (.*)", shown, re.MULTILINE))
    models = str(settings.load().models)
    said = run(["bash", "-c", script], tmp_path, RECOLLECT_EMBEDDER="default", RECOLLECT_MODELS=models).stdout

    def told(text: str) -> list[tuple[str, float]]:
        rows = re.findall(r"^ {4}(\w+) +█\S* +([\d.]+)  rank 1 · raw ([\d.]+) · weight ([\d.]+)", text, re.MULTILINE)
        return [(name, float(figure)) for name, *figures in rows for figure in figures]

    assert len(told(shown)) == 6
    for (name, figure), (now, new) in zip(told(shown), told(said), strict=False):
        assert name == now and figure == pytest.approx(new, abs=0.005)
    for line in ("remembered", "left out (the same text)", "note    read 'depoy' as 'deploy'"):
        assert line in shown and line in said


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A child process that finds this environment's `recollect`, a home of its own and the fake embedder."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RECOLLECT_HOME": str(folder / "home"),
        "RECOLLECT_EMBEDDER": "fake",
        "RECOLLECT_RERANKER": "none",
        **more,
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done
