"""Markers and fixtures shared by all suites."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "covers(*ids): behaviours of the requirements manifest that this test proves")
