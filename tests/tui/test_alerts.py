"""What the cockpit says by itself while a job runs."""

from __future__ import annotations

import pytest

from cockpit.engine import faults
from cockpit.model.attempt import Slow
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.resilience import Performance, Resume
from cockpit.runtime.host import Act
from tests.tui.lab import a_lab, job

SLOW = Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0)
RESUME = Resume(max_resumes=1, grace_seconds=60, performance=Performance(threshold=0.9))


@pytest.mark.req("EL-13", "UI-02")
async def test_an_own_slow_job_shows_a_notice_and_remains_an_alert() -> None:
    async with a_lab(job("train", pool="gpu", resume=RESUME)) as lab:
        await lab.cockpit.sees("train", "running").misses("slow")
        host, act = lab.demo.host, Act(actor="engine", origin="runtime")
        await host.act(lambda machine, now: faults.report_slow(machine, ReplicaId(JobId(1), 1, 0), SLOW, now), act)
        await lab.cockpit.sees("1 train: its iterations", "⚠ its iterations are slow")


@pytest.mark.req("EL-11", "UI-02")
async def test_an_own_job_on_a_faulty_node_shows_a_notice() -> None:
    async with a_lab(job("train", pool="gpu", resume=RESUME)) as lab:
        await lab.cockpit.sees("train", "running").misses("a fault was found")
        host, act = lab.demo.host, Act(actor="engine", origin="runtime")
        (node,) = {part.node for each in host.machine.occupied.values() for part in each}
        await host.act(lambda machine, now: faults.drain_faulty(machine, node, "card 2 does not answer", now), act)
        await lab.cockpit.sees(f"1 train: a fault was found on {node}: card 2 does not answer")
