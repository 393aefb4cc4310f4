"""How an ordinary user's networks are given a way outward, and why some have none."""

from __future__ import annotations

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
    made._holder_side.close()


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
