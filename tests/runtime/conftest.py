from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.doubles.http_service import HttpService


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Write a real program: `tools("nvidia-smi", "echo …")`. Nothing else but /bin's basics is on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    basics = tmp_path / "basics"
    basics.mkdir()
    for name in ("sleep", "cat", "yes", "head"):
        real = next(path for path in (Path("/usr/bin") / name, Path("/bin") / name) if path.exists())
        (basics / name).symlink_to(real)
    monkeypatch.setenv("PATH", f"{folder}:{basics}")

    def write(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def machine_root(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """A folder that is used as `/`, with these files in it."""

    def build(files: dict[str, str]) -> Path:
        root = tmp_path / "root"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return build


@pytest.fixture
def http_service() -> Iterator[HttpService]:
    """A real HTTP server on the loopback address, whose answers a test sets."""
    service = HttpService()
    yield service
    service.close()
