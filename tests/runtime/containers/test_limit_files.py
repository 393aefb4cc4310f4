"""The cgroup files that a container's limits are written to, and the steps that connect a job's network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.runtime.containers.shim import cgroups, limits, nat

PLAN = {"cgroup": "g", "cpus": 2, "memory_mib": 64, "pids": 50}


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cgroups, "MOUNT", str(tmp_path))
    return tmp_path


def files(mount: Path, *paths: str) -> None:
    for path in paths:
        (mount / path).parent.mkdir(parents=True, exist_ok=True)
        (mount / path).touch()


OF_V2 = ("cpu.max", "memory.max", "pids.max", "cgroup.procs")
OF_V1 = (
    *(f"cpu/{cgroups.PARENT}/g/{name}" for name in ("cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs")),
    *(f"memory/{cgroups.PARENT}/g/{name}" for name in ("memory.limit_in_bytes", "memory.oom_control", "cgroup.procs")),
    *(f"pids/{cgroups.PARENT}/g/{name}" for name in ("pids.max", "cgroup.procs")),
)


@pytest.fixture
def version_2(mount: Path) -> Path:
    """The group's folder."""
    group = f"{cgroups.PARENT}/g"
    files(mount, "cgroup.controllers", "cgroup.subtree_control", f"{cgroups.PARENT}/cgroup.subtree_control")
    files(mount, *(f"{group}/{name}" for name in OF_V2))
    (mount / group / "memory.events").write_text("oom 1\noom_kill 0\n")
    return mount / group


@pytest.mark.req("JT-48")
def test_limits_of_version_2_are_written_and_a_kill_is_seen(version_2: Path) -> None:
    made = limits.make(PLAN)
    assert made.text == "cgroup v2"
    assert (version_2 / "cpu.max").read_text() == "200000 100000"
    assert (version_2 / "memory.max").read_text() == str(64 << 20)
    assert (version_2 / "pids.max").read_text() == "50"
    assert (version_2.parent / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert not (version_2 / "memory.swap.max").exists(), "a kernel without swap accounting has no such file"
    assert len(made.procs) == 1
    assert not made.saw_oom()
    (version_2 / "memory.events").write_text("oom 1\noom_kill 2\n")
    assert made.saw_oom()


@pytest.mark.req("JT-48")
def test_limits_of_version_1_are_written_into_each_hierarchy(mount: Path) -> None:
    files(mount, *OF_V1)
    made = limits.make(PLAN)
    assert (made.text, len(made.procs)) == ("cgroup v1", 3)
    assert (mount / OF_V1[1]).read_text() == "200000"
    assert (mount / OF_V1[3]).read_text() == str(64 << 20)
    assert not made.saw_oom()
    assert limits.find(PLAN).text == "cgroup v1"


@pytest.mark.req("JT-48")
def test_without_a_file_for_a_limit_programs_are_limited_one_by_one(version_2: Path) -> None:
    (version_2 / "memory.max").unlink()
    made = limits.make(PLAN)
    assert (made.procs, made.saw_oom()) == ([], False)
    assert made.text.startswith("soft: memory and processes by rlimit for each program, CPUs not limited (")
    assert f"{version_2}/memory.max: No such file or directory" in made.text


@pytest.mark.req("JT-48")
def test_a_limit_that_the_kernel_refuses_is_named(version_2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _value: bytes) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(limits.os, "write", refuse)
    assert "cgroup.subtree_control: Invalid argument" in limits.make(PLAN).text


@pytest.mark.req("JT-48")
def test_a_group_that_was_never_made_is_found_as_none(mount: Path) -> None:
    found = limits.find(PLAN)
    assert found.procs == []
    assert "cgroup.procs: No such file" in found.text


@pytest.mark.req("JT-48")
def test_empty_groups_are_removed_and_missing_ones_are_no_error(mount: Path) -> None:
    for folder in (*cgroups.folders_v1("g"), *cgroups.folders_v2("g")):
        (mount / folder).mkdir(parents=True)
    assert limits.remove("g")
    assert not any((mount / folder).exists() for folder in (*cgroups.folders_v1("g"), *cgroups.folders_v2("g")))
    assert limits.remove("g")


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(
    ("procs", "cpus", "lowered", "score"),
    [(True, 2, [], b"300"), (False, 2, [64 << 20], b"300"), (False, 0, [64 << 20], b"1000")],
)
def test_a_program_joins_the_groups_or_gets_limits_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, procs: bool, cpus: int, lowered: list[int], score: bytes
) -> None:
    own: list[int] = []
    scores: list[bytes] = []
    monkeypatch.setattr(limits, "_lower", lambda _which, value: own.append(value))
    monkeypatch.setattr(limits, "_raise_oom_score", scores.append)
    fd = os.open(tmp_path / "procs", os.O_RDWR | os.O_CREAT)
    limits.ReplicaLimits("", [fd] if procs else [], None).join(PLAN | {"cpus": cpus})
    assert (own, scores) == (lowered, [score])
    assert (tmp_path / "procs").read_bytes() == (b"0" if procs else b"")
    limits.ReplicaLimits("", [], None).join(PLAN | {"memory_mib": 0})
    assert own == lowered, "a job without a limit of memory has none"
    os.close(fd)


class Machine:
    """Notes the steps of a connection; `forwards`: whether the machine forwards packets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, forwards: bool = True) -> None:
        self.steps: list[str] = []
        for module, name in (
            (nat.linux, "setns"),
            (nat.netlink, "give"),
            (nat.netlink, "bring_up"),
            (nat.netlink, "send_all_by"),
            (nat, "_translate"),
        ):
            monkeypatch.setattr(module, name, self._noting(name.strip("_")))
        monkeypatch.setattr(nat, "_nftables", lambda: "nft")
        monkeypatch.setattr(nat, "_forwards", lambda: forwards)
        monkeypatch.setattr(
            nat, "_run", lambda _program, rules: self.steps.append(f"rules {rules.count('masquerade')}")
        )
        monkeypatch.setattr(nat, "_make_veth_pair", lambda hub: self.steps.append(f"veth pair {hub}") or 3)

    def _noting(self, name: str):
        return lambda *words: self.steps.append(" ".join([name, *map(str, words)]))


@pytest.mark.req("LA-10")
def test_a_hub_is_connected_through_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert nat.connect(8, 9) == "NAT"
    net = nat.linux.CLONE_NEWNET
    assert machine.steps == [
        f"setns 8 {net}",
        "veth pair 9",
        "rules 1",
        f"setns 9 {net}",
        "give up 198.19.0.14 30",
        "bring_up up",
        "send_all_by 198.19.0.13",
        "translate nft",
    ]


@pytest.mark.req("LA-10")
def test_a_machine_that_forwards_nothing_connects_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, forwards=False)
    with pytest.raises(OSError, match=r"net\.ipv4\.ip_forward is 0"):
        nat.connect(8, 9)
    net = nat.linux.CLONE_NEWNET
    assert machine.steps == [f"setns 8 {net}", f"setns 9 {net}"], "the process is in the hub again"


@pytest.mark.req("LA-10")
def test_a_users_hub_is_connected_by_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)

    class HostSide:
        def connect(self) -> str:
            machine.steps.append("program")
            return "pasta"

    assert nat.connect_as_user(HostSide()) == "pasta"
    assert machine.steps == ["program", "translate nft"]


@pytest.mark.req("LA-10")
def test_nftables_is_looked_for_where_users_have_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert nat.nftables(str(tmp_path)) is None
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "nft").touch()
    assert nat.nftables(str(tmp_path)) == "/usr/bin/nft"
    monkeypatch.setattr(nat, "nftables", lambda: None)
    with pytest.raises(OSError, match="nftables is not installed"):
        nat._nftables()


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(("text", "forwards"), [("1\n", True), ("0\n", False)])
def test_a_machine_says_whether_it_forwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, forwards: bool
) -> None:
    (tmp_path / "ip_forward").write_text(text)
    monkeypatch.setattr(nat, "_FORWARDS", str(tmp_path / "ip_forward"))
    assert nat._forwards() is forwards
    monkeypatch.setattr(nat, "_run", lambda *_: None)
    nat._translate("nft")
    assert nat._forwards()


@pytest.mark.req("LA-10")
def test_rules_are_given_to_nft_on_its_standard_input(tmp_path: Path) -> None:
    program = tmp_path / "nft"
    program.write_text(
        f'#!/bin/sh\necho "$*" >{tmp_path}/words\ncat >{tmp_path}/rules\ngrep -q good {tmp_path}/rules\n'
    )
    program.chmod(0o755)
    nat._run(str(program), "a good rule\n")
    assert (tmp_path / "rules").read_text() == "a good rule\n"
    assert (tmp_path / "words").read_text() == "-f -\n"
    with pytest.raises(OSError, match="nftables does not accept the rules for it"):
        nat._run(str(program), "a bad rule\n")
