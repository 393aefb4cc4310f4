from __future__ import annotations

import pytest

from cockpit.runtime.containers.shim import cgroups

SIZES = {"cpus": 2, "memory_mib": 512, "pids": 100}


def table(writes) -> list[tuple[str, str]]:
    return [(write.path, write.value) for write in writes]


def test_version_1_writes_each_controller_in_its_own_hierarchy():
    assert table(cgroups.writes_v1("k.1.1.0", **SIZES)) == [
        ("cpu/cockpit-cluster/k.1.1.0/cpu.cfs_period_us", "100000"),
        ("cpu/cockpit-cluster/k.1.1.0/cpu.cfs_quota_us", "200000"),
        ("memory/cockpit-cluster/k.1.1.0/memory.limit_in_bytes", "536870912"),
        ("memory/cockpit-cluster/k.1.1.0/memory.memsw.limit_in_bytes", "536870912"),
        ("pids/cockpit-cluster/k.1.1.0/pids.max", "100"),
    ]


def test_version_2_offers_the_controllers_first():
    assert table(cgroups.writes_v2("k.1.1.0", **SIZES)) == [
        ("cgroup.subtree_control", "+cpu +memory +pids"),
        ("cockpit-cluster/cgroup.subtree_control", "+cpu +memory +pids"),
        ("cockpit-cluster/k.1.1.0/cpu.max", "200000 100000"),
        ("cockpit-cluster/k.1.1.0/memory.max", "536870912"),
        ("cockpit-cluster/k.1.1.0/memory.swap.max", "0"),
        ("cockpit-cluster/k.1.1.0/pids.max", "100"),
    ]


def test_only_files_that_kernels_may_lack_are_optional():
    writes = [*cgroups.writes_v1("k", **SIZES), *cgroups.writes_v2("k", **SIZES)]
    assert {write.path.rpartition("/")[2] for write in writes if write.optional} == {
        "memory.memsw.limit_in_bytes",
        "memory.swap.max",
    }


def test_oom_kills_are_counted_in_both_versions_files():
    assert cgroups.oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n") == 3
    assert cgroups.oom_kills("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n") == 1
    assert cgroups.oom_kills("") == 0


def test_soft_limits_name_their_gaps():
    text = cgroups.soft_text(["/sys/fs/cgroup: Permission denied"])
    assert text.startswith("soft: ")
    assert "/sys/fs/cgroup: Permission denied" in text


@pytest.mark.req("EL-08")
def test_a_best_effort_job_has_no_limits_and_the_lowest_weight():
    bare = SIZES | {"cpus": 0, "memory_mib": 0}
    assert table(cgroups.writes_v1("k", **bare)) == [
        ("cpu/cockpit-cluster/k/cpu.shares", "2"),
        ("pids/cockpit-cluster/k/pids.max", "100"),
    ]
    assert table(cgroups.writes_v2("k", **bare))[2:] == [
        ("cockpit-cluster/k/cpu.weight", "1"),
        ("cockpit-cluster/k/pids.max", "100"),
    ]
