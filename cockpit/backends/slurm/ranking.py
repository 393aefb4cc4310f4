"""Shows queue and accounts with Slurm's own figures: those of sprio and sshare, never recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.accounts import ShareLine
from cockpit.backends.slurm.mapping.cluster import PLANNED_TASKS, components
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.model.accounts import AssocKey, assoc_key
from cockpit.model.cluster import Cluster
from cockpit.model.ids import task_of
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import Breakdown, FactorName
from cockpit.model.reasons import Held
from cockpit.model.view import AccountsShown, Priorities, PriorityRow

Printed = Mapping[int, tuple[Breakdown, ...]]
"""Priorities that sprio prints, one for each partition, by Slurm's id of the job or array."""


def priorities(rows: Iterable[JobRow], printed: Printed, cluster: Cluster) -> Priorities:
    """Return every pending job in each of its partitions, ordered by the partition's tier, then by Slurm's priority.

    Held jobs come last. A job that sprio leaves out has only its total; its reason says why.
    """
    waiting = [row for row in rows if row.state is JobState.QUEUED]
    entries = [(row, each) for row in waiting for each in _breakdowns_of(row, printed)]
    # slurm.conf(5), PriorityTier: jobs of a higher tier are considered before any of a lower one, whatever their
    # priority.
    tiers = {each.name: each.priority_tier for each in cluster.partitions}

    def turn(entry: tuple[JobRow, Breakdown]) -> tuple[bool, int, int, int]:
        row, breakdown = entry
        return isinstance(row.reason, Held), -tiers.get(breakdown.partition, 1), -breakdown.total, row.submitted_at

    entries.sort(key=turn)
    places: dict[int, int] = {}
    before = 0
    for row, _ in entries:
        # A job in several partitions takes its first place, and counts once for those behind it.
        if not isinstance(row.reason, Held) and row.id not in places:
            places[row.id] = before + 1
            before += len(row.tasks) or 1
    shown = (_row(row, each, places.get(row.id)) for row, each in entries)
    return Priorities(cluster.priority.kind, cluster.priority.weights, tuple(shown))


def printed_of(job: int, printed: Printed) -> tuple[Breakdown, ...]:
    """Return sprio's priorities of a job, or of the array that the task belongs to."""
    return printed.get(job) or printed.get(task_of(job)[0], ())


def site_factors(printed: Printed) -> dict[int, int]:
    """Return the site factors of all jobs that have one, out of sprio, since squeue does not print them."""
    parts = ((job, part) for job, breakdowns in printed.items() for each in breakdowns for part in each.parts)
    return {job: int(part.contribution) for job, part in parts if part.name is FactorName.SITE}


def _breakdowns_of(row: JobRow, printed: Printed) -> Iterable[Breakdown]:
    breakdowns = printed_of(row.id, printed)
    # A held job's priority is 0, whatever factors are printed.
    if breakdowns and not isinstance(row.reason, Held):
        return [_direct_or_counted(replace(each, job=row.id)) for each in breakdowns]
    partitions = row.partitions or ("",)
    return [Breakdown(row.id, partition, row.priority or 0, ()) for partition in partitions]


def _direct_or_counted(each: Breakdown) -> Breakdown:
    """Mark a priority that was set by hand: sprio then prints a total, and every factor as 0."""
    counted = not each.total or any(part.contribution for part in each.parts)
    return each if counted else replace(each, parts=(), direct=True)


def _row(row: JobRow, breakdown: Breakdown, position: int | None) -> PriorityRow:
    """Return the row of a job for one partition."""
    return PriorityRow(
        job=row.id,
        name=row.name,
        user=row.user,
        account=row.account,
        qos=row.qos,
        partition=breakdown.partition,
        position=position,
        breakdown=breakdown,
        task=row.array,
        tasks=row.tasks,
        uncounted=None if breakdown.parts or breakdown.direct else row.reason,
    )


def shares_shown(shown: AccountsShown, shares: Iterable[ShareLine]) -> AccountsShown:
    """Replace usage and fair share of the accounts, which the embedded engine computed, by the figures of sshare."""
    by_key = {each.key: each for each in shares}
    rows = tuple(
        row
        if (share := by_key.get(row.association.key)) is None
        else replace(
            row,
            used=share.raw_usage,
            norm_shares=share.norm_shares,
            norm_usage=share.norm_usage,
            effective_usage=share.effective_usage,
            level_fs=share.level_fs,
            fair_share=share.fair_share,
        )
        for row in shown.rows
    )
    return replace(shown, rows=rows)


def all_tasks_counted(shown: AccountsShown, jobs: Iterable[Listed]) -> AccountsShown:
    """Add the pending tasks of long arrays, of which the embedded engine has only the first `PLANNED_TASKS`, and the
    components that it has joined to the first ones of their jobs."""
    jobs = tuple(jobs)
    joined = {each.id for others in components(jobs).values() for each in others}
    more: Counter[AssocKey] = Counter()
    parents = {row.association.account: row.association.parent for row in shown.rows if not row.association.user}
    for each in jobs:
        beyond = 1 if each.id in joined else len(each.tasks) - PLANNED_TASKS
        account = each.fields["Account"]
        # Up the tree to root: each account counts the jobs of all below it.
        while beyond > 0 and account:
            more[assoc_key(account)] += beyond
            account = parents.get(account, "")
        if beyond > 0:
            more[assoc_key(each.fields["Account"], each.fields["UserName"])] += beyond
    rows = (replace(row, queued=row.queued + more[row.association.key]) for row in shown.rows)
    return replace(shown, rows=tuple(rows)) if more else shown
