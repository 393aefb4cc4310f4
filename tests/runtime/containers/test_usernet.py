"""How an ordinary user's networks are given a way outward, and why some have none."""

from __future__ import annotations

import os
import select

import pytest

from cockpit.runtime.containers.shim import usernet
from cockpit.runtime.containers.shim.usernet import HostSideProcess, arguments

pytestmark = pytest.mark.req("LA-10")


@pytest.mark.parametrize(("program", "guarded"), [("slirp4netns", "--disable-host-loopback"), ("pasta", "--no-map-gw")])
def test_no_network_program_connects_to_the_machines_localhost(program, guarded):
    words = arguments(f"/usr/bin/{program}", 7, "up")
    assert words[0] == f"/usr/bin/{program}"
    assert guarded in words
    assert {"up", "/proc/7/ns/net"} <= set(words)
    assert any(word.endswith("/proc/7/ns/user") for word in words)


@pytest.fixture
def outpost(tmp_path):
    made = HostSideProcess("up", str(tmp_path / "lock"), lambda: False)
    yield made
    made._here.close()


def test_without_a_network_program_the_supported_ones_are_named(outpost, monkeypatch):
    monkeypatch.setattr(usernet, "_FOLDERS", ())
    with pytest.raises(OSError, match="neither slirp4netns nor pasta is installed"):
        outpost.connect()


def test_forbidden_tunnel_devices_are_reported(outpost, monkeypatch, tmp_path):
    (tmp_path / "pasta").write_text("")
    (tmp_path / "pasta").chmod(0o755)
    monkeypatch.setattr(usernet, "_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(usernet, "_TUN", str(tmp_path / "none"))
    with pytest.raises(OSError, match="none is not open to this user"):
        outpost.connect()


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Install a `pasta` that runs a shell script, and return the process that would start it."""
    made: list[HostSideProcess] = []

    def installed(script: str, *, in_use=lambda: False) -> HostSideProcess:
        path, lock = tmp_path / "pasta", tmp_path / "lock"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        lock.touch()
        monkeypatch.setattr(usernet, "_FOLDERS", (str(tmp_path),))
        monkeypatch.setattr(usernet, "_TUN", str(lock))
        made.append(HostSideProcess("up", str(lock), in_use))
        return made[-1]

    yield installed
    for each in made:
        each._here.close()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo first >&2; echo 'no tunnel today' >&2; exit 1", "no tunnel today"),
        ("exit 1", "its helper ended without a word"),
    ],
)
def test_the_last_words_of_a_network_program_that_ends_are_reported(program, script, sentence):
    with pytest.raises(OSError, match=sentence):
        program(script).connect()


def test_a_network_program_that_is_never_ready_is_given_up(program, monkeypatch):
    monkeypatch.setattr(usernet, "_READY_SECONDS", 0.05)
    with pytest.raises(OSError, match=r"pasta is not ready within 0\.05 seconds"):
        program("exec sleep 100", in_use=lambda: False).connect()


def test_a_network_leads_outward_once_its_program_has_made_the_route(program, monkeypatch):
    looks = iter([False, False, True])
    monkeypatch.setattr(usernet, "_leads_outward", lambda interface: interface == "up" and next(looks))
    assert program("exec sleep 100").connect() == "pasta"


def test_a_network_program_ends_when_no_container_of_the_job_is_left(program, monkeypatch, tmp_path):
    monkeypatch.setattr(usernet, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(usernet, "_leads_outward", lambda _interface: (tmp_path / "began").exists())
    used = tmp_path / "used"
    used.touch()
    host_side = program(
        f"echo $$ >{tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/began; exec sleep 100", in_use=used.exists
    )
    host_side.connect()
    pid = int((tmp_path / "began").read_text())
    host_side._here.close()  # the maker of the network has ended
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        assert stat.read().split()[2] != "Z", "a container still uses the network"
    pidfd = os.pidfd_open(pid)
    used.unlink()
    assert select.select([pidfd], [], [], 30)[0] == [pidfd]
    os.close(pidfd)


def test_a_network_is_left_when_its_folder_is_gone_or_no_container_runs(tmp_path):
    lock = tmp_path / "lock"
    assert usernet._is_left(str(lock), lambda: True)
    lock.touch()
    assert not usernet._is_left(str(lock), lambda: True)
    assert usernet._is_left(str(lock), lambda: False)


def test_the_first_installed_network_program_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(usernet, "_FOLDERS", (str(tmp_path / "one"), str(tmp_path / "two")))
    assert usernet.installed() == ""
    for folder, name in (("one", "pasta"), ("two", "slirp4netns")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("")
    (tmp_path / "one" / "pasta").chmod(0o755)
    assert usernet.installed().endswith("one/pasta")
    (tmp_path / "two" / "slirp4netns").chmod(0o755)
    assert usernet.installed().endswith("two/slirp4netns")
