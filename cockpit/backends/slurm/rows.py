"""Rows of the job list as the cluster tells them: states, priorities, starts and reasons are Slurm's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.reasons import reason
from cockpit.engine.views import job_row
from cockpit.model.cluster import Reservation
from cockpit.model.forecast import Holding
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Node
from cockpit.model.reasons import Explanation
from cockpit.model.spec import WHOLE_CARD, Access
from cockpit.model.view import Overview

MOST_AHEAD = 10


class Rows:
    """Made once for as long as Slurm says the same of a job: whoever compares them compares objects."""

    def __init__(self, asker: str) -> None:
        self._asker = asker
        self.admin = False
        """The asker may act on everybody's jobs."""
        self._made: dict[JobId, tuple[Listed, JobRow]] = {}

    def of(self, jobs: Iterable[Listed], reservations: Mapping[str, Reservation], now: Millis) -> dict[JobId, JobRow]:
        """By id, in order of submission."""
        known, self._made = self._made, {}
        for each in jobs:
            before = known.get(each.job.id)
            row = before[1] if before is not None and before[0] is each else self._row(each, reservations, now)
            self._made[each.job.id] = each, row
        return {job: self._made[job][1] for job in sorted(self._made, key=self._seniority)}

    def _seniority(self, job: JobId) -> tuple[Millis, JobId]:
        return self._made[job][1].submitted_at, job

    def _row(self, each: Listed, reservations: Mapping[str, Reservation], now: Millis) -> JobRow:
        expected = each.starts_at if each.starts_at is not None and each.starts_at > now else None
        row = job_row(each.job, reason(each, reservations), each.priority, expected)
        mine = self.admin or each.job.submitter.name == self._asker
        return row if mine else replace(row, may=Access.RO)


def overview_of(cluster: str, rows: Collection[JobRow], nodes: Collection[Node]) -> Overview:
    """The header's figures, out of what is listed anyway."""
    held = [row for row in rows if row.state in OCCUPYING]
    return Overview(
        cluster=cluster,
        jobs_by_state={str(state): count for state, count in Counter(row.state for row in rows).items()},
        held=sum(row.held_until is not None for row in rows),
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        used_cpus=sum(row.cpus for row in held if row.state is not JobState.SUSPENDED),
        memory_mib=sum(node.memory_mib for node in nodes),
        used_memory_mib=sum(row.memory_mib for row in held),
        card_milli=WHOLE_CARD * sum(len(node.cards) for node in nodes),
        used_card_milli=sum(row.card_milli for row in held),
    )


def holdings(jobs: Iterable[JobId], rows: Mapping[JobId, JobRow], known: Container[JobId]) -> Iterator[Holding]:
    """What these ask for, those apart that are known."""
    for row in (rows[job] for job in jobs if job not in known):
        sizes = (row.nodes, row.cpus, row.memory_mib, row.card_milli)
        yield Holding(row.id, row.name, row.user, row.state in OCCUPYING, *sizes)


def explanation(row: JobRow, rows: Mapping[JobId, JobRow]) -> Explanation | None:
    """Why a queued job waits as the cluster says, and who waits before it in any of its partitions."""
    if row.state is not JobState.QUEUED or row.reason is None:
        return None
    wanted, own = set(row.partitions), (row.priority or 0, -row.submitted_at)
    ahead = [
        each
        for each in rows.values()
        if each.state is JobState.QUEUED
        and each.id != row.id
        and wanted & set(each.partitions)
        and (each.priority or 0, -each.submitted_at) > own
    ]
    ahead.sort(key=lambda each: (-(each.priority or 0), each.submitted_at))
    return Explanation(
        job=row.id,
        reason=row.reason,
        position=len(ahead) + 1,
        ahead=tuple(each.id for each in ahead[:MOST_AHEAD]),
    )
