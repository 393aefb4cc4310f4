"""A cluster from a slurmSpec on a real engine: who may submit, what changes at once, what is fixed."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = pytest.mark.real

EXAMPLE = Path(__file__).parents[2] / "fixtures/slurmspec/training-cluster.json"


@pytest.mark.req("SC-15", "SC-16")
def test_a_training_cluster_serves_its_accounts(user: CockpitUser) -> None:
    """root always has an account of its own here, so the accounts of others are named."""
    told = user.ok("cluster", "init", "--from", str(EXAMPLE))
    assert "next: cockpit engine restart" in told
    assert user.row("nodes")["pool"] == "a4"
    me = getpass.getuser()
    job = user.job("sleep 600", name="train", account="vision")
    refused = user.run("submit", str(job))
    assert refused.returncode != 0
    assert b"vision" in refused.stderr
    user.ok("accounts", "add", "Vision", "--shares", "60", "MaxJobs=1")
    assert user.run("submit", str(job)).returncode != 0
    user.ok("accounts", "add-user", me, "--account", "vision", "--partition", "a4")
    first = user.ok("submit", str(job)).split()[-1]
    user.until(first, "running")
    removal = user.run("accounts", "remove-user", me, "--account", "vision")
    assert removal.returncode == 67
    assert f"{first} ({me}, running)" in removal.stderr.decode()
    rows = {(row["account"], row["user"]): row for row in user.rows("accounts")}
    assert (rows["vision", me]["running"], rows["vision", ""]["running"]) == (1, 1)
    user.ok("cancel", first, "--now", "--yes")
    user.wait(first)
    user.ok("accounts", "remove", "vision")
    assert [row["event"] for row in user.rows("events")].count("accounts_changed") == 3


@pytest.mark.req("SC-15")
def test_fixed_rules_do_not_change_until_another_init(user: CockpitUser) -> None:
    user.ok("cluster", "init", "--from", str(EXAMPLE))
    user.ok("engine", "start")
    file = user.folder / "config/cockpit-cluster/cluster.toml"
    file.write_text(file.read_text().replace("cpu = 100", "cpu = 999"))
    assert b"mutable = false" in user.run("engine", "restart").stderr
    assert "cpu = 100" in user.ok("cluster", "show")
    file.write_text(file.read_text().replace("mutable = false", "mutable = true"))
    assert user.run("engine", "restart").stderr == b""
    assert "cpu = 999" in user.ok("cluster", "show")
    user.ok("cluster", "init", "--from", str(EXAMPLE), "--force")
    user.ok("engine", "restart")
    assert "cpu = 100" in user.ok("cluster", "show")


@pytest.mark.req("SC-15")
def test_the_shared_home_is_mounted_in_every_container(user: CockpitUser) -> None:
    homes = user.folder / "homes"
    (homes / "somebody").mkdir(parents=True)
    user.configure("cluster.toml", f'home_directory_storage = "{homes}"\n')
    job = user.submit("ls /home; touch /home/somebody/x && echo wrote", name="looks", home="rw")
    assert user.wait(job) == 0
    assert user.ok("logs", job).split() == ["somebody", "wrote"]
    assert (homes / "somebody/x").exists()
    closed = user.submit("ls /home", name="sees-none", home="none")
    user.wait(closed)
    assert user.ok("logs", closed) == ""


@pytest.mark.req("SC-15", "JT-24")
def test_a_node_whose_prolog_fails_is_drained_and_its_job_waits_for_it(user: CockpitUser) -> None:
    marks = user.folder / "marks"
    echo = f"echo $SLURM_SCRIPT_CONTEXT $SLURM_JOB_USER $SLURM_JOB_ID >> {marks}"
    script = f"#!/bin/bash\\n{echo}\\ntest -e {user.folder}/disk"
    user.configure("cluster.toml", f'prolog_bash_scripts = ["{script}"]\nepilog_bash_scripts = ["{script}"]\n')
    job = user.submit("true", name="train")
    me = getpass.getuser()
    eventually(lambda: "epilog" in (marks.read_text() if marks.exists() else ""))
    eventually(lambda: "is drained: prolog" in user.ok("explain", job))
    (row,) = user.rows("nodes", "--all", "-o", "json", "--columns", "name,status,state_reason")
    assert row["status"] == "drained"
    assert "prolog 1 ended with 1" in row["state_reason"]
    assert marks.read_text().splitlines() == [f"prolog_slurmd {me} {job}", f"epilog_slurmd {me} {job}"]
    user.ok("engine", "restart")
    assert user.rows("nodes", "--up") == []
    (user.folder / "disk").touch()
    user.ok("nodes", "resume", row["name"])
    assert user.wait(job) == 0
    assert len(user.rows("nodes")) == 1
    events = [each["event"] for each in user.rows("events")]
    assert [each for each in events if each in {"prolog_failed", "node_drained", "node_resumed"}] == [
        "node_drained",
        "prolog_failed",
        "node_resumed",
    ]


@pytest.mark.req("SC-15", "UI-07")
def test_applied_weights_survive_a_restart(user: CockpitUser) -> None:
    user.ok("cluster", "init")
    user.ok("engine", "start")
    file = user.folder / "config/cockpit-cluster/cluster.toml"
    comments = [line for line in file.read_text().splitlines() if line.startswith("#")]
    user.ok("priority", "--weights", "age=4321,tres/cpu=7", "--apply", "--yes")
    assert "age = 4321" in user.ok("cluster", "show")
    user.ok("engine", "restart")
    shown = user.ok("cluster", "show")
    assert "age = 4321" in shown
    assert "cpu = 7" in shown
    assert [line for line in file.read_text().splitlines() if line.startswith("#")] == comments
    user.ok("cluster", "init", "--from", str(EXAMPLE), "--force")
    user.ok("engine", "restart")
    refused = user.run("priority", "--weights", "age=1", "--apply", "--yes")
    assert (refused.returncode, b"mutable = false" in refused.stderr) == (67, True)
