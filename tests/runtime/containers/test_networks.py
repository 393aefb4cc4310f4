"""The folders of networks: made by several replicas at once, and deleted with the last container of an attempt."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId, ReplicaId
from cockpit.runtime.containers import agentscript, networks
from cockpit.runtime.containers.shim import linux, nat, network, usernet
from cockpit.runtime.containers.shim.identity import identity_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("LA-10")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "containers").mkdir()
    return tmp_path


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


def test_all_replicas_of_an_attempt_share_a_folder(state):
    assert {networks.folder_of(state, ReplicaId(JobId(7), 2, rank)) for rank in (0, 1)} == {state / "networks" / "7.2"}


def test_a_network_shows_the_agent_to_every_user_whatever_the_umask_is(state):
    folder, before = state / "networks" / "7.1", os.umask(0o077)
    try:
        networks.lay_out(folder)
        agent = folder / "shown" / "agent"
        made = agent.stat().st_ino
        networks.lay_out(folder)  # by the next replica
    finally:
        os.umask(before)
    assert modes(folder) == {"shown": 0o755, "shown/bin": 0o755, "shown/agent": 0o755}
    assert agent.stat().st_ino == made, "programs that run it are not disturbed"
    assert (folder / "shown" / "bin" / "ssh").resolve() == agent
    assert agent.read_bytes() == Path(agentscript.__file__).read_bytes()


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(networks, "_forget_rules", lambda: calls.append("rules"))
    return calls


def test_the_networks_of_attempts_without_containers_are_deleted(state, forgotten):
    for name in ("7.1", "7.2", "8.1"):
        networks.lay_out(state / "networks" / name)
    for name in ("7.2.0", "7.2.1", "9.1.0"):
        (state / "containers" / name).mkdir()
    networks.tidy_up(state)
    assert [path.name for path in (state / "networks").iterdir()] == ["7.2"]
    assert forgotten == []
    for name in ("7.2.0", "7.2.1"):
        (state / "containers" / name).rmdir()
    networks.tidy_up(state)
    assert not (state / "networks").exists()
    networks.tidy_up(state)


def test_nft_is_called_only_by_root_to_delete_cockpits_own_table(monkeypatch):
    commands = []
    monkeypatch.setattr(networks.subprocess, "run", lambda command, **_: commands.append(command))
    monkeypatch.setattr(networks, "nftables", lambda: "/usr/sbin/nft")
    for uid in (0, 1000):
        monkeypatch.setattr(networks.os, "geteuid", lambda uid=uid: uid)
        networks._forget_rules()
    assert commands == [["/usr/sbin/nft", "delete", "table", "ip", "cockpit_cluster"]]
    monkeypatch.setattr(networks.os, "geteuid", lambda: 0)
    monkeypatch.setattr(networks, "nftables", lambda: None)
    networks._forget_rules()
    assert len(commands) == 1


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"by": "NAT", "why_not": ""}, "own network, outward by NAT"),
        ({"why_not": ""}, "own network, outward by NAT"),
        ({"by": "pasta", "why_not": ""}, "own network, outward by pasta"),
        ({"by": "", "why_not": "no nft"}, "own network, no way out: no nft"),
        (None, ""),
    ],
)
def test_a_jobs_page_says_how_its_network_leads_outward(tmp_path, record, text):
    if record is not None:
        (tmp_path / "outward.json").write_text(json.dumps(record))
    assert network.describe({"network": str(tmp_path)}) == text
    assert network.describe({"network": ""}) == ""


def test_why_a_network_leads_nowhere_is_recorded(monkeypatch):
    def refused(*_):
        raise OSError(101, "net.ipv4.ip_forward is 0")

    membership = network.Membership(SimpleNamespace(name="7.1.0"), {"network": "/n"})
    monkeypatch.setattr(nat, "connect", refused)
    assert membership._way_outward(3, 4) == {"by": "", "why_not": "net.ipv4.ip_forward is 0"}
    monkeypatch.setattr(nat, "connect", lambda machine, hub: f"NAT {machine} {hub}")
    assert membership._way_outward(3, 4) == {"by": "NAT 3 4", "why_not": ""}
    membership._host_side = "outpost"
    monkeypatch.setattr(nat, "connect_as_user", lambda outpost: f"by {outpost}")
    assert membership._way_outward(3, 4) == {"by": "by outpost", "why_not": ""}


@pytest.mark.parametrize(
    ("place", "end", "address"),
    [(0, 1, "198.19.0.1"), (63, 2, "198.19.0.254"), (64, 1, "198.19.1.1"), ((1 << 14) - 1, 2, "198.19.255.254")],
)
def test_every_veth_pair_has_two_addresses(place, end, address):
    assert nat._address(place, end) == address


@pytest.fixture
def cables(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[str]], list[str]]:
    """Let the machine have cables, of which names some are taken, and return what is done with them."""

    def with_taken(taken: set[str], number: int = 17) -> list[str]:
        done: list[str] = []

        def make_pair(name: str, peer: str, namespace: int) -> None:
            if name in taken:
                raise OSError(number, "taken")
            done.append(f"{name} {peer} {namespace}")

        monkeypatch.setattr(nat.os, "urandom", lambda _: (0x3FFF).to_bytes(2))
        monkeypatch.setattr(nat.netlink, "make_pair", make_pair)
        monkeypatch.setattr(nat.netlink, "give", lambda *words: done.append(" ".join(map(str, words))))
        monkeypatch.setattr(nat.netlink, "bring_up", lambda name: done.append(f"up {name}"))
        return done

    return with_taken


def test_a_veth_pair_gets_the_first_free_addresses(cables):
    done = cables({"ckp16383", "ckp0"})
    assert nat._make_veth_pair(9) == 1
    assert done == ["ckp1 up 9", "ckp1 198.19.0.5 30", "up ckp1"]


def test_without_free_addresses_the_reason_is_shown(cables):
    cables({f"ckp{number}" for number in range(1 << 14)})
    with pytest.raises(OSError, match="no address left for another job's network"):
        nat._make_veth_pair(9)
    cables({"ckp16383"}, number=1)
    with pytest.raises(OSError, match="taken"):
        nat._make_veth_pair(9)


def siblings(folder: Path, monkeypatch: pytest.MonkeyPatch, living: set[str]) -> list[str]:
    monkeypatch.setattr(network.Attempt, "holder_pid", lambda attempt: int(attempt.name in living))
    own = network.Attempt(str(folder / "containers" / "7.1.1"))
    return [each.name for each in network._siblings(own)]


def test_the_siblings_of_a_replica_are_the_living_others_of_its_attempt(state, monkeypatch):
    names = {"7.1.0", "7.1.1", "7.1.2", "7.2.0", "17.1.0", "7.1.10"}
    for name in names:
        (state / "containers" / name).mkdir()
    assert siblings(state, monkeypatch, names - {"7.1.2"}) == ["7.1.0", "7.1.10"]


def test_one_replica_has_no_network_of_its_own(tmp_path):
    membership = network.Membership(SimpleNamespace(name="7.1.0"), {"network": ""})
    for step in (membership.begin, membership.join, membership.end):
        step()
    assert not membership.needed
    assert not membership.join_user_namespace()


def is_taken(lock: str) -> bool:
    with open(lock, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.fixture
def host_sides(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Callable[[], bool]]]:
    made: list[tuple[str, str, Callable[[], bool]]] = []
    monkeypatch.setattr(usernet, "HostSideProcess", lambda *words: made.append(words))
    return made


def test_the_first_replica_of_a_users_job_starts_what_leads_its_network_outward(state, monkeypatch, host_sides):
    living: set[str] = set()
    monkeypatch.setattr(network.Attempt, "holder_pid", lambda attempt: int(attempt.name in living))
    for name in ("7.1.0", "7.1.1"):
        (state / "containers" / name).mkdir()
    lock = str(state / "lock")
    for rootless in (False, True):
        plan = {"network": str(state), "rootless": rootless}
        membership = network.Membership(network.Attempt(str(state / "containers" / "7.1.0")), plan)
        membership.begin()
        assert is_taken(lock), "siblings wait"
        membership.end()
        assert not is_taken(lock)
    ((interface, path, in_use),) = host_sides
    assert (interface, path) == (nat.HUB_END, lock)
    assert not in_use()
    living.add("7.1.1")
    assert in_use()
    membership.begin()
    membership.end()
    assert len(host_sides) == 1, "a sibling's process serves all"


def test_a_replica_opens_the_hub_of_the_first_sibling_that_has_it(state, monkeypatch):
    for name in ("7.1.0", "7.1.1", "7.1.2"):
        (state / "containers" / name).mkdir()
    pids = {"7.1.0": 2**22 + 1, "7.1.1": 0, "7.1.2": os.getpid()}
    monkeypatch.setattr(network.Attempt, "holder_pid", lambda attempt: pids[attempt.name])
    membership = network.Membership(network.Attempt(str(state / "containers" / "7.1.1")), {"network": str(state)})
    with open(state / "hub", "w+") as file:
        monkeypatch.setattr(network, "HUB_FD", file.fileno())
        hub = membership._open_hub()
        assert os.path.sameopenfile(hub, file.fileno())
        os.close(hub)
    pids["7.1.2"] = 0
    assert membership._open_hub() == -1


def test_the_user_namespace_of_a_sibling_is_joined(state, monkeypatch):
    joined: list[int] = []
    monkeypatch.setattr(linux, "setns", lambda _fd, kind: joined.append(kind))
    for name in ("7.1.0", "7.1.1"):
        (state / "containers" / name).mkdir()
    own = network.Membership(network.Attempt(str(state / "containers" / "7.1.1")), {"network": str(state)})
    assert not own.join_user_namespace()
    network.Attempt(str(state / "containers" / "7.1.0")).write("shim.json", identity_of(os.getpid()))
    assert own.join_user_namespace()
    assert joined == [linux.CLONE_NEWUSER]
    alone = network.Membership(network.Attempt(str(state / "containers" / "7.1.1")), {"network": ""})
    assert not alone.join_user_namespace()
