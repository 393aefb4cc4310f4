"""Makes the rows of the job list from squeue's records: states, priorities, starts and reasons are Slurm's own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import jobparts, outputs, states, values
from cockpit.backends.slurm.mapping.accounting import Past
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.reasons import never_starts, reason
from cockpit.engine.views.rows import job_row
from cockpit.model.cluster import Reservation
from cockpit.model.forecast import HoldingJob
from cockpit.model.ids import JobId, Millis, seniority
from cockpit.model.job import ENDED, OCCUPYING, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Explanation, Reason
from cockpit.model.spec import Access

MOST_AHEAD = 10


class Rows:
    """Makes rows and keeps them: a job that has not changed has the same row object as before.

    Callers therefore find changes by comparing identities, also among tens of thousands of rows.
    """

    def __init__(self, user: str) -> None:
        self._user = user
        self.admin = False
        """Whether the user may change all users' jobs."""
        self._built: dict[JobId, tuple[Listed, JobRow]] = {}

    def of(self, jobs: Iterable[Listed], reservations: Mapping[str, Reservation], now: Millis) -> dict[JobId, JobRow]:
        """Return the rows by job id, in order of submission."""
        # Rows of jobs that are gone are dropped with the old dictionary.
        known, self._built = self._built, {}
        for each in jobs:
            before = known.get(each.id)
            # `Reading` returns the same record for a job that has not changed.
            row = before[1] if before is not None and before[0] is each else self._row(each, reservations, now)
            self._built[each.id] = each, row
        # After all rows are made: components may be listed in any order.
        self._join_components(now)
        return {job: self._built[job][1] for job in sorted(self._built, key=self._seniority)}

    def _join_components(self, now: Millis) -> None:
        """Give all components of a heterogeneous job the latest of their starts.

        Slurm plans each component by itself, but they start together.
        """
        groups: dict[int, list[Listed]] = {}
        for each, row in self._built.values():
            if row.component is not None and each.waits:
                groups.setdefault(row.component[0], []).append(each)
        for parts in groups.values():
            starts = [expected_start(each, now) for each in parts]
            # One component that never starts keeps all of them from starting.
            last = None if any(map(never_starts, parts)) else max((at for at in starts if at is not None), default=None)
            for each in parts:
                row = self._built[each.id][1]
                # A new object only where it differs: watchers compare identities.
                if row.starts_by != last:
                    self._built[each.id] = each, replace(row, starts_by=last)

    def job(self, job: JobId) -> Job:
        """Return the job of a row."""
        return self._built[job][0].job

    def _seniority(self, job: JobId) -> tuple[Millis, int]:
        return self._built[job][1].submitted_at, seniority(job)

    def _row(self, each: Listed, reservations: Mapping[str, Reservation], now: Millis) -> JobRow:
        expected = expected_start(each, now)
        mine = self.admin or each.fields["UserName"] == self._user
        return row(each, reason(each, reservations), expected, Access.RW if mine else Access.RO)


def expected_start(each: Listed, now: Millis) -> Millis | None:
    """Return the start that Slurm expects for a pending job; None if that time has passed or the job never starts."""
    at = each.starts_at
    return at if at is not None and at > now and not never_starts(each) else None


def row(each: Listed, why: Reason | None, expected: Millis | None, may: Access) -> JobRow:
    """Return the row of a record, equal to what `engine.views.rows.job_row` makes of the whole job.

    It is made directly from the record, because a list is long and the whole job is needed only for a few of its rows:
    of 20 000 jobs the rows take 1 s so, and 4 s by way of the jobs.
    """
    # Debug holds are parsed only by way of the whole job; they are rare.
    if each.fields.get("Comment", "").startswith(("cockpit:held", "cockpit:released")):
        whole = job_row(each.job, why, each.priority, expected)
        return replace(whole, may=may, output=outputs.listed_path(each))
    fields, waits = each.fields, each.waits
    request, nodes = jobparts.node_spec(fields, each.shards), jobparts.node_count(fields)
    submitted = each.at("SubmitTime") or Millis(0)
    started = None if waits else each.at("StartTime")
    placed = started is not None and bool(each.nodes)
    ended = each.at("EndTime") if each.kind in ENDED else None
    how = states.exit_of(each.state, fields.get("exit_code", "")) if each.kind in ENDED else None
    partitions, account = values.names(fields["Partition"]), values.text(fields["Account"])
    return JobRow(
        id=each.id,
        version=0,
        name=fields["Name"],
        user=fields["UserName"],
        state=each.kind,
        state_since=ended or started or submitted,
        submitted_at=submitted,
        started_at=started if placed else None,
        ended_at=ended,
        held_until=None,
        ending=None,
        end_cause=states.end_cause(each.state),
        exit_code=how.shell_code if how is not None else None,
        nodes=nodes,
        cpus=request.cpus * nodes,
        memory_mib=request.memory_mib * nodes,
        card_milli=request.card_milli * nodes,
        card_models=request.card_models,
        placed_on=each.nodes if placed else (),
        time_limit_seconds=jobparts.limit_seconds(fields),
        reason=why if waits or each.kind is JobState.SUSPENDED else None,
        command=jobparts.command(fields),
        project=account,
        output=outputs.listed_path(each),
        oom=how is not None and how.oom,
        lost=how.lost if how is not None else "",
        partitions=partitions[:1] if placed else partitions,
        account=account,
        qos=values.text(fields["QOS"]),
        priority=each.priority if waits else None,
        array=each.array,
        starts_by=expected if waits else None,
        attempt=jobparts.attempt_number(fields) if each.nodes and each.at("StartTime") is not None and not waits else 1,
        may=may,
        tasks=each.tasks,
        component=each.component,
    )


def past_row(past: Past) -> JobRow:
    return ended_row(past.job, past.fields)


def ended_row(job: Job, fields: Mapping[str, str]) -> JobRow:
    """Return the row of a job that only accounting knows, by its record there."""
    leader, plus, offset = fields["JobID"].partition("+")
    component = (int(leader), int(offset)) if plus and offset.isdigit() else None
    return replace(job_row(job, None), output=outputs.ended_path(job, fields), component=component)


def task_row(row: JobRow, job: Job) -> JobRow:
    """Return the row of one task of the array that a row describes."""
    return row if row.id == job.id else replace(row, id=job.id, array=job.array, tasks=())


def holdings(jobs: Iterable[JobId], rows: Mapping[JobId, JobRow], known: Container[JobId]) -> Iterator[HoldingJob]:
    """Yield the names and sizes of these jobs, except those in `known`."""
    for row in (rows[job] for job in dict.fromkeys(jobs) if job in rows and job not in known):
        sizes = (row.nodes, row.cpus, row.memory_mib, row.card_milli)
        yield HoldingJob(row.id, row.name, row.user, row.state in OCCUPYING, *sizes, component=row.component)


def explanation(row: JobRow, rows: Mapping[JobId, JobRow]) -> Explanation | None:
    """Return Slurm's reason why a queued job waits, and the jobs before it in any of its partitions."""
    if row.state is not JobState.QUEUED or row.reason is None:
        return None
    # Slurm's order: the higher priority first, then the earlier submission.
    wanted, own = set(row.partitions), (row.priority or 0, -row.submitted_at)
    ahead = [
        each
        for each in rows.values()
        if each.state is JobState.QUEUED
        and not _same(each, row)
        and wanted & set(each.partitions)
        and (each.priority or 0, -each.submitted_at) > own
    ]
    ahead.sort(key=lambda each: (-(each.priority or 0), each.submitted_at))
    return Explanation(
        job=row.id,
        reason=row.reason,
        position=sum(len(each.tasks) or 1 for each in ahead) + 1,
        ahead=tuple(each.id for each in ahead[:MOST_AHEAD]),
    )


def _same(one: JobRow, other: JobRow) -> bool:
    """Return whether both are one job, or one is a task of the array that the other describes."""
    # Not between two tasks that have rows of their own: each of them is a job that may be ahead.
    mine = one.array is not None and other.array is not None and one.array.array == other.array.array
    return one.id == other.id or (mine and bool(one.tasks or other.tasks))
