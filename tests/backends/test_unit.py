"""The machine-wide engine's unit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cockpit.backends.local.unit import UNIT, install_unit, unit_text
from cockpit.errors import CockpitError


@pytest.mark.req("TR-14")
def test_the_unit_runs_the_engine_with_this_python_and_does_not_kill_jobs() -> None:
    lines = unit_text("/opt/my py/50%/bin/python").splitlines()
    assert 'ExecStart="/opt/my py/50%%/bin/python" -m cockpit.clusters.engine_process --system' in lines
    assert {"KillMode=process", "Restart=on-failure", "WantedBy=multi-user.target"} <= set(lines)


@pytest.mark.req("TR-14")
def test_the_unit_is_written_where_systemd_looks_and_passes_its_check(tmp_path: Path) -> None:
    path = install_unit(tmp_path)
    assert (path.name, path.read_text(), path.stat().st_mode & 0o777) == (UNIT, unit_text(), 0o644)
    if verify := shutil.which("systemd-analyze"):
        done = subprocess.run([verify, "verify", path], capture_output=True, text=True, timeout=60, check=False)
        assert UNIT not in done.stderr
    with pytest.raises(CockpitError, match="systemd"):
        install_unit(tmp_path / "absent")
