"""Which cluster a command opens where Slurm is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.clusters import choosing


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    choosing._slurm_answers.cache_clear()


def a_login_node(env: pytest.MonkeyPatch, folder: Path, ping: str) -> None:
    (folder / "slurm.conf").touch()
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{ping}\n")
    program.chmod(0o755)
    env.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    env.setenv("PATH", f"{folder}:/usr/bin:/bin")
    env.setenv("XDG_CONFIG_HOME", str(folder))
    env.delenv("COCKPIT_CLUSTER", raising=False)


@pytest.mark.req("SL-01")
def test_a_controller_that_answers_is_what_one_wants_to_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_login_node(monkeypatch, tmp_path, "echo 'Slurmctld(primary) at vm is UP'")
    assert choosing.chosen(None) == choosing.SLURM
    assert choosing.chosen("local") == choosing.OWN


@pytest.mark.parametrize("ping", ["echo 'Slurmctld(primary) at vm is DOWN'; exit 1", "exit 1"])
def test_one_that_does_not_answer_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ping: str) -> None:
    a_login_node(monkeypatch, tmp_path, ping)
    assert choosing.chosen(None) == ""


def test_without_a_configuration_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_login_node(monkeypatch, tmp_path, f"touch {tmp_path}/ran; echo is UP")
    monkeypatch.setattr(choosing, "SLURM_CONFS", ())
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    assert choosing.chosen(None) == ""
    assert not (tmp_path / "ran").exists()
