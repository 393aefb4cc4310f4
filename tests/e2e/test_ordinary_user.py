"""An ordinary user's own engine, without any privilege: the same story as for root."""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.people import ANN, BOB

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CHANGES_THE_SYSTEM = """
echo note > /etc/cockpit-note && echo tool > /usr/cockpit-tool && echo "$USER" && id -un && id -u && id -g
rm /etc/os-release && echo more >> /etc/passwd
echo model > /workspace/outputs/model.bin
exit 3
"""


@pytest.mark.req("JT-40", "JT-30")
def test_a_shell_opens_in_the_held_container_of_a_failed_job(ann: CockpitUser) -> None:
    release = Path("/etc/os-release").read_bytes()
    job = ann.submit(CHANGES_THE_SYSTEM, terminal=True)
    assert ann.wait(job) == 3
    assert "error · held 3:59" in ann.ok("jobs")
    entry = pwd.getpwnam(ANN)
    assert ann.ok("logs", job).split()[-3:] == [ANN, str(entry.pw_uid), str(entry.pw_gid)]
    assert ann.ok("shell", job, "--", "sh", "-c", "whoami; cat /etc/cockpit-note /usr/cockpit-tool").split() == [
        ANN,
        "note",
        "tool",
    ]
    assert ann.run("shell", job, "--", "cat", "/etc/os-release").returncode == 1
    assert Path("/etc/os-release").read_bytes() == release
    assert not Path("/etc/cockpit-note").exists()
    assert not Path("/usr/cockpit-tool").exists()
    model = ann.work / "job/out/model.bin"
    assert (model.read_text(), model.stat().st_uid) == ("model\n", entry.pw_uid)


@pytest.mark.req("JT-40")
def test_bytes_exit_codes_and_two_shells_at_once(ann: CockpitUser) -> None:
    job = ann.submit("exit 1", terminal=True)
    ann.wait(job)
    data = bytes(range(256)) * 512
    assert ann.run("shell", job, "--", "cat", stdin=data).stdout == data
    waits = ann.start("shell", job, "--", "sh", "-c", "until test -e /tmp/seen; do sleep 0.02; done; exit 7")
    assert ann.run("shell", job, "--", "touch", "/tmp/seen").returncode == 0
    assert waits.wait(60) == 7


@pytest.mark.req("JT-30")
@pytest.mark.parametrize(
    ("access", "found"), [("ro", "mine\nread-only"), ("rw", "mine\nwritten"), ("none", "nothing\nnothing")]
)
def test_the_home_is_mounted_as_configured(ann: CockpitUser, access: str, found: str) -> None:
    home = Path(pwd.getpwnam(ANN).pw_dir)
    (home / "mine").write_text("mine\n")
    script = f"""
cat {home}/mine 2>/dev/null || echo nothing
if ! test -d {home}; then echo nothing
elif touch {home}/written 2>/dev/null; then echo written
else echo read-only; fi
"""
    job = ann.submit(script, home=access)
    assert ann.wait(job) == 0
    assert ann.ok("logs", job).strip() == found
    assert (home / "written").exists() == (access == "rw")
    (home / "written").unlink(missing_ok=True)


@pytest.fixture
def ann_at_home(everybodys_python: str, people: None) -> Iterator[CockpitUser]:
    """Ann, whose engine keeps its state and its socket in her home."""
    somebody = CockpitUser(Path(pwd.getpwnam(ANN).pw_dir), python=everybodys_python, user=ANN)
    yield somebody
    somebody.leave()


@pytest.mark.req("JT-30", "TR-09")
def test_a_container_sees_neither_the_engine_nor_other_homes(ann_at_home: CockpitUser) -> None:
    home, other = ann_at_home.folder, pwd.getpwnam(BOB).pw_dir
    script = f"""
find {home} /workspace/volume -path '*cockpit-cluster/*'
find / -xdev '(' -name engine.sock -o -name journal.db ')' 2>/dev/null
ls -d {other} 2>/dev/null
ls -A /root /run /var/tmp | grep -v -e '^$' -e ':$'
echo seen
"""
    job = ann_at_home.submit(script, home="rw", volumes=[{"name": "home", "path": str(home)}])
    assert ann_at_home.wait(job) == 0, ann_at_home.ok("logs", job, "--stderr")
    assert ann_at_home.ok("logs", job).split() == ["cockpit-python", "seen"]


@pytest.mark.req("JT-30", "TR-09")
@pytest.mark.parametrize("within", ["state/cockpit-cluster", "run/cockpit-cluster"])
def test_the_engines_own_folders_are_refused_as_volumes(ann: CockpitUser, within: str) -> None:
    ann.ok("jobs")
    job = ann.submit("true", volumes=[{"name": "v", "path": str(ann.folder / within)}])
    ann.wait(job)
    assert "volumes[0]" in ann.ok("job", job)
    assert "the engine's own folder" in ann.ok("job", job)


@pytest.mark.req("JT-30")
def test_limits_are_reported_as_soft_and_set_as_rlimits(ann: CockpitUser) -> None:
    job = ann.submit("ulimit -d; ulimit -u", specs=[{"cpus": 1, "memory": "300M"}])
    assert ann.wait(job) == 0
    assert ann.ok("logs", job).split() == [str(300 * 1024), "4096"]
    assert "limits: soft" in ann.ok("events", job)


@pytest.mark.req("JT-40")
def test_a_killed_holder_is_replaced_and_the_user_informed(ann: CockpitUser) -> None:
    job = ann.submit("echo kept > /etc/kept; echo gone > /tmp/gone; exit 5", terminal=True)
    assert ann.wait(job) == 5
    holder = ann.holder_pid(job)
    os.kill(holder, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{holder}").exists())
    entered = ann.run("shell", job, "--", "sh", "-c", "cat /etc/kept; ls /tmp")
    assert entered.stdout == b"kept\n"
    assert b"/tmp" in entered.stderr
    assert ann.holder_pid(job) != holder


@pytest.mark.req("JT-40", "TR-14")
def test_a_users_engine_refuses_other_users(ann: CockpitUser, everybodys_python: str) -> None:
    """Neither its folder, nor its socket where that were open, not even root through it."""
    ann.ok("jobs")
    socket = ann.folder / "run/cockpit-cluster/engine.sock"
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.stat().st_mode & 0o777 == 0o600
    for folder in (ann.folder / "run", socket.parent):
        folder.chmod(0o755)
    socket.chmod(0o666)
    asks = f"""
import socket
s = socket.socket(socket.AF_UNIX); s.connect({str(socket)!r})
print(s.recv(4096)[4:])
"""
    bob = CockpitUser(ann.folder / "bob", python=everybodys_python, user=BOB)
    assert "This engine serves user" in bob.python(asks)
    assert "denied" in CockpitUser(ann.folder / "root", python=everybodys_python).python(asks)
    for folder in (ann.folder / "run", socket.parent):
        folder.chmod(0o700)
