"""Limits that hold in real containers, and the text that names them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from cockpit.runtime.containers.shim import cgroups

pytestmark = pytest.mark.real

EAT = "import sys\nblock = bytearray(int(sys.argv[1]) << 20)\nprint(len(block) >> 20)"
CGROUPS = all(os.access(Path(cgroups.MOUNT, controller), os.W_OK) for controller in cgroups.CONTROLLERS)


def eat(mebibytes: int) -> str:
    return f"/usr/bin/python3 -c '{EAT}' {mebibytes}"


@pytest.fixture
def grouped(house):
    if not CGROUPS:
        pytest.skip("cgroups are not writable here")
    return house


async def test_the_kind_of_limits_is_reported_at_the_start(grouped):
    job = grouped.job("true")
    await grouped.run(job)
    assert await grouped.started(job.replica) == "cgroup v1"


@pytest.mark.req("JT-40")
async def test_too_much_memory_is_an_oom_kill(grouped):
    status = await grouped.run(grouped.job(f"exec {eat(200)}", memory_mib=64))
    assert (status.signal, status.oom) == (9, True)


async def test_an_oom_kill_of_a_child_is_recognised(grouped):
    status = await grouped.run(grouped.job(f"{eat(200)}; exit 5", memory_mib=64))
    assert (status.code, status.oom) == (5, True)


async def test_the_holder_survives_and_the_shell_is_limited_too(grouped):
    job = grouped.job(f"{eat(200)}; exit 5", memory_mib=64)
    await grouped.kept(job)
    assert (await grouped.shell(job.replica, eat(200)))[0] == 137
    assert await grouped.shell(job.replica, "echo there") == (0, "there\n")


async def test_a_fork_bomb_meets_its_limit(grouped):
    bomb = (
        "import os, time\nfor n in range(300):\n  try: os.fork() or time.sleep(60)\n  except OSError: print(n); break"
    )
    job = grouped.job(f"exec /usr/bin/python3 -c {shlex.quote(bomb)}")
    await grouped.run(job)
    assert int(grouped.out(job)) == grouped.bounds.pids - 1


async def test_the_command_runs_under_its_cpu_quota(grouped):
    job = grouped.job("cat /sys/fs/cgroup/cpu$(sed -n s/.*:cpu://p /proc/self/cgroup)/cpu.cfs_quota_us", cpus=2)
    await grouped.run(job)
    assert int(grouped.out(job)) == 200_000


async def test_scratch_space_is_bounded(house):
    job = house.job("head -c 100M /dev/zero >/tmp/big; stat -c %s /tmp/big", memory_mib=512)
    await house.run(job)
    assert "No space left on device" in house.err(job)
    assert int(house.out(job)) == 64 << 20


@pytest.mark.skipif(CGROUPS, reason="cgroups are writable here")
async def test_without_groups_memory_is_bounded_for_each_program(house):
    job = house.job(eat(400), memory_mib=128)
    status = await house.run(job)
    assert (await house.started(job.replica)).startswith("soft: ")
    assert "MemoryError" in house.err(job)
    assert status.code == 1
