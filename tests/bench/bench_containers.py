from __future__ import annotations

import asyncio
import os
from statistics import median
from time import perf_counter

import pytest

from tests.bench.figures import Figures, Peer
from tests.runtime.containers.house import open_house

ROUNDS = 21
BARE = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--unshare-pid", "true"]


@pytest.mark.real
async def test_starting_and_entering_containers(figure: Figures):
    """From the effect until the command's first byte; from the request until the program inside has written."""
    async with open_house() as house:
        starts, entries, bare = [], [], []
        (house.folder / "out-own").mkdir(mode=0o777)
        os.mkfifo(house.folder / "out-own" / "up")
        up = os.open(house.folder / "out-own" / "up", os.O_RDWR)
        for _ in range(ROUNDS):
            job = house.job("echo >/workspace/outputs/up; exit 3")
            before = perf_counter()
            await asyncio.gather(house.executor.start(job), asyncio.to_thread(os.read, up, 1))
            starts.append((perf_counter() - before) * 1000)
            await house.ended(job.replica)
            before = perf_counter()
            entered = await house.enter(job.replica, "cat", "/proc/self/comm")
            await asyncio.to_thread(os.read, entered.pipe_fds[1], 1)
            entries.append((perf_counter() - before) * 1000)
            for fd in (*entered.pipe_fds, entered.control_fd):
                os.close(fd)
            bare.append(await bubblewrap_alone())
        os.close(up)
    figure("PF-30", "start of a contained job", median(starts), peer=Peer("bubblewrap alone", median(bare)))
    figure("PF-30", "entering a kept container", median(entries))


async def bubblewrap_alone() -> float:
    before = perf_counter()
    process = await asyncio.create_subprocess_exec(*BARE)
    await process.wait()
    return (perf_counter() - before) * 1000
