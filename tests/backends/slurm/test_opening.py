"""Which cluster a command opens where Slurm is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit import cli


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    cli._slurm_answers.cache_clear()


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
    assert cli._cluster_name(None) == cli.SLURM
    assert cli._cluster_name("local") == cli.OWN


@pytest.mark.parametrize("ping", ["echo 'Slurmctld(primary) at vm is DOWN'; exit 1", "exit 1"])
def test_one_that_does_not_answer_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ping: str) -> None:
    a_login_node(monkeypatch, tmp_path, ping)
    assert cli._cluster_name(None) == ""


def test_without_a_configuration_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_login_node(monkeypatch, tmp_path, f"touch {tmp_path}/ran; echo is UP")
    monkeypatch.setattr(cli, "SLURM_CONFS", ())
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    assert cli._cluster_name(None) == ""
    assert not (tmp_path / "ran").exists()
