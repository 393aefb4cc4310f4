"""What the kernel has counted of a container, from either version's files, and from its processes where no group is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.measuring import NOTHING, Reading, last_reading, of_group, of_processes
from cockpit.runtime.containers.shim.attempt import Attempt

if TYPE_CHECKING:
    from pathlib import Path

TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
PAGES_PER_MIB = (1 << 20) // os.sysconf("SC_PAGE_SIZE")


def group(mount: Path, name: str, **files: str) -> None:
    folder = mount / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file.replace("_", ".", 1)).write_text(text)


@pytest.mark.req("JT-48")
def test_version_2(tmp_path: Path) -> None:
    group(
        tmp_path,
        "cockpit-cluster/ab.1",
        cpu_stat="usage_usec 7200000\nuser_usec 7000000\n",
        memory_current=f"{300 << 20}\n",
        memory_peak=f"{512 << 20}\n",
    )
    assert of_group("ab.1", tmp_path) == Reading(7_200, 300, 512)


@pytest.mark.req("JT-48")
def test_version_1_with_and_without_cpu_time(tmp_path: Path) -> None:
    group(tmp_path, "memory/cockpit-cluster/ab.1", memory_usage_in_bytes="1048576", memory_max_usage_in_bytes="3145728")
    assert of_group("ab.1", tmp_path) == Reading(None, 1, 3)
    group(tmp_path, "cpu/cockpit-cluster/ab.1", cpuacct_usage="1500000000")
    assert of_group("ab.1", tmp_path) == Reading(1_500, 1, 3)


def process(proc: Path, pid: int, *children: int, own: int, waited: int, mib: int) -> None:
    """Its command's name holds what breaks a careless reader."""
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "task" / str(pid) / "children").write_text("".join(f"{child} " for child in children))
    before = f"{pid} (a ) b) S 1 1 1 0 -1 0 0 0 0 0"
    behind = f"20 0 1 0 99 0 {mib * PAGES_PER_MIB} 0"
    (proc / str(pid) / "stat").write_text(f"{before} {own} 1 {waited} 2 {behind}\n")


@pytest.mark.req("JT-48")
def test_without_a_cgroup_cpu_time_sums_live_processes_and_their_waited_for_children(
    tmp_path: Path,
) -> None:
    process(tmp_path, 7, 8, own=1000, waited=40, mib=500)  # the holder: what it did itself is not the job's
    process(tmp_path, 8, 9, 10, own=100, waited=10, mib=3)
    process(tmp_path, 9, own=200, waited=0, mib=4)
    ticks = (100 + 1 + 10 + 2) + (200 + 1 + 0 + 2) + (40 + 2)
    assert of_processes(7, tmp_path) == Reading(ticks * TICK_MS, 7)
    assert of_group("ab.1", tmp_path) is None
    assert of_processes(11, tmp_path) == NOTHING


@pytest.mark.req("JT-48")
def test_the_figures_of_the_holder_count_where_no_cgroup_has_counted(tmp_path: Path) -> None:
    attempt = Attempt(str(tmp_path))
    attempt.write_exit({"code": 0, "cpu_ms": 77, "peak_memory_mib": 5})
    assert last_reading(attempt) == Reading(77, None, 5)
