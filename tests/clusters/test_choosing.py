"""Which cluster a command opens on a machine with Slurm."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit import cli
from cockpit.backends.local.control import LocalEngineControl
from cockpit.clusters import choosing
from cockpit.errors import Unreachable
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.view import EngineStatus

ANSWERS = {
    "up": "echo 'Slurmctld(primary) at vm is UP'",
    "down": "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1",
    "silent": "sleep 60",
    "garbage": "head -c 4096 /dev/urandom",
    "killed": "kill -9 $$",
}
COMMANDS = [
    *[["jobs"], ["nodes"], ["overview"], ["job", "1"], ["accounts"], ["events"], ["events", "1"]],
    *[["submit", "job.sh"], ["cancel", "1"], ["nodes", "drain", "n1", "--reason", "disk"]],
    *[["accounts", "add", "physics"], ["reservations", "end", "night"]],
]
PROGRAMS = ("scontrol", "squeue", "sinfo", "sacct", "sacctmgr", "sprio", "sshare", "sbatch", "scancel", "srun")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, on a machine where nothing but the test configures Slurm."""
    for name in ("CONFIG_HOME", "RUNTIME_DIR", "STATE_HOME"):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COCKPIT_CLUSTER", raising=False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(choosing, "FILES", (str(tmp_path / "etc/slurm.conf"),))
    return tmp_path


def install(home: Path, env: pytest.MonkeyPatch, answer: str) -> Path:
    """Slurm's programs, each of which does this; the folder that they are in."""
    folder = home / "slurm" / "bin"
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\n{ANSWERS[answer]}\n")
        (folder / name).chmod(0o755)
    env.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def configure(home: Path, env: pytest.MonkeyPatch, by: str) -> None:
    """Say by this means that a Slurm cluster is here."""
    if by == "SLURM_CONF":
        env.setenv("SLURM_CONF", "/share/that/is/not/mounted/slurm.conf")
        return
    file = home / ("slurm/etc/slurm.conf" if by == "own folder" else "etc/slurm.conf")
    file.parent.mkdir(parents=True, exist_ok=True)
    if by == "dangling link":
        file.symlink_to("/share/that/is/not/mounted/slurm.conf")
    else:
        file.touch()
    if by == "remembered":
        assert choosing.chosen(None) == choosing.SLURM
        file.unlink()


@pytest.mark.req("SL-01", "TR-04")
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("by", ["SLURM_CONF", "file", "dangling link", "own folder", "remembered"])
def test_a_configured_cluster_is_chosen_even_if_it_does_not_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch, by: str, answer: str
) -> None:
    install(home, monkeypatch, answer)
    configure(home, monkeypatch, by)
    assert choosing.chosen(None) == choosing.SLURM
    assert choosing.chosen("local") == choosing.OWN
    monkeypatch.setenv("COCKPIT_CLUSTER", "local")
    assert choosing.chosen(None) == choosing.OWN


@pytest.mark.req("SL-01")
def test_installed_packages_alone_configure_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home, monkeypatch, "up")
    assert choosing.chosen(None) == ""
    assert not list((home / "STATE_HOME").iterdir())


@pytest.mark.req("SL-01")
def test_the_choice_is_stored_for_this_machine_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home, monkeypatch, "up")
    configure(home, monkeypatch, "remembered")
    name = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((name.sysname, "workstation", *name[2:])))
    assert choosing.chosen(None) == "", "homes are shared between machines"


@pytest.mark.req("SL-01", "TR-04")
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("answer", ["down", "killed"])
def test_every_command_says_unreachable_and_starts_no_engine(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], answer: str
) -> None:
    install(home, monkeypatch, answer)
    configure(home, monkeypatch, "SLURM_CONF")
    monkeypatch.chdir(home)
    (home / "job.sh").write_text("#!/bin/sh\n#SBATCH -n1\ntrue\n")
    assert cli.main(words) == ExitCode.UNREACHABLE
    said = capfd.readouterr()
    assert said.out == ""
    assert "+ " not in said.err, "no change was sent"
    assert "`-c local` opens your own engine" in said.err
    assert not list((home / "RUNTIME_DIR").glob("*/*.sock")), "no engine runs"


@pytest.mark.req("SL-01")
def test_naming_the_cluster_suppresses_the_advice(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install(home, monkeypatch, "down")
    configure(home, monkeypatch, "SLURM_CONF")
    assert cli.main(["-c", "slurm", "jobs"]) == ExitCode.UNREACHABLE
    assert "-c local" not in capfd.readouterr().err


@pytest.mark.req("SL-01", "UI-10")
def test_among_all_clusters_the_silent_one_is_listed(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install(home, monkeypatch, "down")
    configure(home, monkeypatch, "file")
    assert cli.main(["clusters", "-o", "json"]) == 0
    rows = {row["name"]: row["state"] for row in json.loads(capfd.readouterr().out)["rows"]}
    assert rows == {"slurm": "no answer"}


@pytest.mark.req("SL-01", "UI-10")
def test_choosing_the_own_engine_is_stored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home, monkeypatch, "down")
    configure(home, monkeypatch, "SLURM_CONF")
    assert cli.main(["cluster", "use", "local"]) == 0
    assert choosing.chosen(None) == choosing.OWN


@pytest.mark.req("UI-40", "TR-04")
def test_the_doctor_reports_the_machine_although_the_engine_does_not_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: LocalEngineControl) -> EngineStatus:
        raise Unreachable("The engine does not answer within 5 s.")

    monkeypatch.setattr(LocalEngineControl, "status", refuse)
    cli.main(["doctor", "-o", "json"])
    rows = {row["subject"]: row for row in json.loads(capfd.readouterr().out)["rows"]}
    assert rows["engine"]["found"] == "The engine does not answer within 5 s."
    assert "machine" in rows


@pytest.mark.req("SL-01")
def test_the_doctor_reports_that_the_configured_cluster_does_not_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install(home, monkeypatch, "down")
    configure(home, monkeypatch, "SLURM_CONF")
    cli.main(["doctor", "-o", "json"])
    rows = json.loads(capfd.readouterr().out)["rows"]
    (found,) = [row for row in rows if row["subject"] == "Slurm"]
    assert found["level"] == "missing"
    assert "configured by SLURM_CONF=" in found["found"]


@pytest.mark.req("SL-01", "TR-04")
def test_the_cockpit_opens_at_once_and_shows_why_the_list_is_empty(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its controller hangs; nothing is known yet, and the screen is there all the same."""
    install(home, monkeypatch, "silent")
    configure(home, monkeypatch, "SLURM_CONF")
    monkeypatch.setenv("COCKPIT_PATIENCE", "3s")
    monkeypatch.setenv("TERM", "xterm-256color")
    main, side = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cockpit.cli"], stdin=side, stdout=side, stderr=side, close_fds=True
    )
    os.close(side)
    try:
        shown = b""
        while b"not answered" not in shown:
            assert select.select([main], [], [], 60)[0], shown
            shown += os.read(main, 1 << 16)
        assert b"\x1b[?1049h" in shown
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert not list((home / "RUNTIME_DIR").glob("*/*.sock")), "no engine runs"
