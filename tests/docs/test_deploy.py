"""The files in deploy/ say nothing that the program does not know. Containers run in tests/compose.py."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from recollect.doors.cli.app import app
from recollect.settings import Settings, load

DEPLOY = Path(__file__).parents[2] / "deploy"
SETTINGS = {f"RECOLLECT_{field.name.upper()}" for field in fields(Settings)}
COMPOSE = ("compose.yaml", "compose.qdrant.yaml")


def composed(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", COMPOSE)
def test_every_variable_of_the_daemon_is_a_setting(name: str) -> None:
    given = composed(name)["services"]["recollect"]["environment"]
    assert given and set(given) <= SETTINGS | {"PGPASSWORD"}
    assert load({**given, "RECOLLECT_HOME": "/data"}).store.startswith(("postgresql://", "/data"))


@pytest.mark.parametrize("name", COMPOSE)
def test_every_variable_that_must_be_given_is_in_the_commands_at_the_head(name: str) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    head = text.partition("services:")[0]
    wanted = set(re.findall(r"\$\{(\w+):\?", text))
    assert wanted and wanted <= set(re.findall(r"(\w+)=…", head))


def test_a_password_may_hold_what_an_address_may_not() -> None:
    daemon = composed("compose.yaml")["services"]["recollect"]["environment"]
    assert "$" not in daemon["RECOLLECT_STORE"]
    assert daemon["PGPASSWORD"] == "${RECOLLECT_PASSWORD}"


@pytest.mark.parametrize("name", COMPOSE)
def test_every_volume_and_service_that_is_used_is_there(name: str) -> None:
    whole = {**composed("compose.yaml")["services"], **composed(name)["services"]}
    document = composed(name)
    for service in document["services"].values():
        assert set(service.get("depends_on", {})) <= set(whole)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in document["volumes"] or (DEPLOY / source).is_file()


def test_the_image_starts_a_command_that_exists() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    program, command, *words = json.loads(re.findall(r"^CMD (\[.*\])$", text, re.M)[0])
    options = {flag for one in typer.main.get_command(app).commands[command].params for flag in one.opts}  # type: ignore[attr-defined]
    assert program == "recollect"
    assert {word for word in words if word.startswith("--")} <= options
    assert set(re.findall(r"(RECOLLECT_\w+)=", text)) <= SETTINGS
    for line in re.findall(r"^COPY (.*) \S+$", text, re.M):
        assert all((DEPLOY.parent / name).exists() for name in line.split())


def test_only_the_loopback_of_the_host_is_bound() -> None:
    assert all(port.startswith("127.0.0.1:") for port in composed("compose.yaml")["services"]["recollect"]["ports"])
