from __future__ import annotations

from pathlib import Path

import pytest

from cockpit import elastic
from tests.launch.elastic_workers import Workers, listed


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Those that this process sees, as replica 1 of 0, 1 and 2."""
    made = Workers(tmp_path)
    made.show(listed(0, 1, 2))
    for name, value in {"FILE": made.file, "SOCKET": made.socket}.items():
        monkeypatch.setenv(f"COCKPIT_WORKERS_{name}", str(value))
    monkeypatch.setenv("COCKPIT_REPLICA", "1")
    monkeypatch.setattr(elastic, "_LOOK_SECONDS", 0.01)
    elastic.init()
    return made
