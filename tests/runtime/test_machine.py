from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.model.image import Mpi
from cockpit.model.node import CardVendor
from cockpit.runtime import allowance
from cockpit.runtime.machine import detect_mpi, inspect_machine, os_name, probe_machine
from cockpit.runtime.probe_command import Answer, Outcome, probe_command

MEMINFO = "MemTotal:       24681236 kB\nMemFree:        1000 kB\n"
MOUNTS_V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
MOUNTS_V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
UNLIMITED_V1 = "9223372036854771712\n"


def absent(_command):
    return Answer(Outcome.ABSENT)


@pytest.mark.req("JT-43")
def test_this_machine_is_detected() -> None:
    node = probe_machine()
    assert node.name == os.uname().nodename.partition(".")[0]
    assert 1 <= node.cpus <= len(os.sched_getaffinity(0))
    assert 0 < node.memory_mib <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert node.kernel == os.uname().release
    assert node.os
    assert not node.virtual


def test_memory_is_the_smallest_limit_above_v2(machine_root) -> None:
    root = machine_root(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/mountinfo": MOUNTS_V2,
            "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-2.scope\n",
            "sys/fs/cgroup/user.slice/memory.max": "8589934592\n",
            "sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/cpu.max": "100000 100000\n",
        }
    )
    assert allowance.usable_memory_mib(root) == 8192
    assert allowance.usable_cpus(root) == 1


def test_the_limits_of_other_controllers_groups_do_not_count(machine_root) -> None:
    root = machine_root(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/mountinfo": MOUNTS_V1,
            "proc/self/cgroup": "4:memory:/docker/abc/job\n2:cpu,cpuacct:/docker/abc/other\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4294967296\n",
            "sys/fs/cgroup/memory/other/memory.limit_in_bytes": "1048576\n",
        }
    )
    assert allowance.usable_memory_mib(root) == 4096


def test_limits_of_a_container_under_v1(machine_root) -> None:
    root = machine_root(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/mountinfo": MOUNTS_V1,
            "proc/self/cgroup": "4:memory:/docker/abc/job\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "4294967296\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": UNLIMITED_V1,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        }
    )
    assert allowance.usable_memory_mib(root) == 4096
    assert allowance.usable_cpus(root) == 1


def test_no_limits_at_all(machine_root) -> None:
    root = machine_root(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/mountinfo": MOUNTS_V1,
            "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        }
    )
    assert allowance.usable_memory_mib(root) == 24681236 // 1024
    assert allowance.usable_cpus(root) == len(os.sched_getaffinity(0))


def test_affinity_counts() -> None:
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert allowance.usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, mine)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME=Arch\\ Linux\n", "Arch Linux"),
        ('PRETTY_NAME="half', '"half'),
        ("PRETTY_NAME='\x1b[2Jevil'\n", "?[2Jevil"),
        ("", "Linux"),
    ],
)
def test_the_name_of_the_os(text: str, name: str) -> None:
    assert os_name(text) == name


def test_an_unreadable_machine_is_a_node_too(machine_root) -> None:
    node = inspect_machine(machine_root({"dev/null": ""}), absent).node
    assert (node.cpus >= 1, node.memory_mib, node.cards, node.os) == (True, 0, (), "Linux")


def test_cards_of_two_vendors_are_numbered_in_one_row(tools, machine_root) -> None:
    tools(
        "nvidia-smi",
        '[ "$1" = -L ] || echo "0, GPU-5d5ba0d6-d33d, 24564, 00000000:07:00.0, 535.104.05, NVIDIA GeForce RTX 4090"',
    )
    tools("cnmon", "echo '| 0     /   MLU370-X4    v1.1.6 | x |'; echo '| 0% | 0 MiB/ 23308 MiB |'")
    seen = inspect_machine(machine_root({"dev/nvidia0": "", "proc/meminfo": MEMINFO}), probe_command)
    assert [(card.index, card.model, card.vendor) for card in seen.node.cards] == [
        (0, "RTX 4090", CardVendor.NVIDIA),
        (1, "MLU370-X4", CardVendor.MLU),
    ]
    assert seen.node.driver_version == "535.104.05"
    assert seen.findings == ()


@pytest.mark.req("TR-03")
def test_hostile_tool_output_raises_no_error_and_is_escaped(tools, machine_root) -> None:
    for name in ("nvidia-smi", "npu-smi", "cnmon"):
        tools(name, r"printf '\033[2J\377\000| 0 910B | OK | \n%s%n'; head -c 100000 /dev/zero; exit 7")
    seen = inspect_machine(machine_root({"proc/meminfo": MEMINFO}), probe_command)
    assert seen.node.cards == ()
    assert len(seen.findings) == 3
    assert all(finding.found.isprintable() for finding in seen.findings)


@pytest.mark.req("LA-12")
@pytest.mark.parametrize(
    ("links", "found"),
    [
        (
            {"usr/bin/mpirun": "/etc/alternatives/mpirun", "etc/alternatives/mpirun": "/usr/bin/mpirun.openmpi"},
            "openmpi",
        ),
        ({"usr/bin/mpirun": "mpirun.mpich"}, "mpich"),
        ({"usr/local/bin/mpirun": "mpiexec.hydra"}, "mpich"),
        ({"usr/local/bin/mpirun": "../lib/prterun"}, "openmpi"),
        ({"usr/bin/mpirun": "/usr/bin/mpirun"}, None),
        ({}, None),
    ],
)
def test_mpirun_is_identified_by_the_program_behind_its_links(
    tmp_path: Path, links: dict[str, str], found: str | None
) -> None:
    for place, target in links.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(target)
    assert detect_mpi(tmp_path) == (Mpi(found) if found else None)
