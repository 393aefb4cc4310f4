"""What the kernel has counted of a container, from either version's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.view import ReplicaUse
from cockpit.runtime.containers.measuring import used

if TYPE_CHECKING:
    from pathlib import Path


def group(mount: Path, name: str, **files: str) -> None:
    folder = mount / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file.replace("_", ".", 1)).write_text(text)


@pytest.mark.req("UI-03")
def test_version_2(tmp_path: Path) -> None:
    group(
        tmp_path,
        "cockpit-cluster/ab.1",
        cpu_stat="usage_usec 7200000\nuser_usec 7000000\n",
        memory_current=f"{300 << 20}\n",
        memory_peak=f"{512 << 20}\n",
    )
    assert used("ab.1", 2, tmp_path) == ReplicaUse(2, cpu_ms=7_200, memory_mib=300, peak_memory_mib=512)


@pytest.mark.req("UI-03")
def test_version_1_with_and_without_cpu_time(tmp_path: Path) -> None:
    group(tmp_path, "memory/cockpit-cluster/ab.1", memory_usage_in_bytes="1048576", memory_max_usage_in_bytes="3145728")
    assert used("ab.1", 0, tmp_path) == ReplicaUse(0, cpu_ms=None, memory_mib=1, peak_memory_mib=3)
    group(tmp_path, "cpu/cockpit-cluster/ab.1", cpuacct_usage="1500000000")
    assert used("ab.1", 0, tmp_path) == ReplicaUse(0, cpu_ms=1_500, memory_mib=1, peak_memory_mib=3)


def test_without_a_group_nothing_is_known(tmp_path: Path) -> None:
    assert used("ab.1", 0, tmp_path) is None
