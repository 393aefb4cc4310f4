"""Job rows kept ready: made once per change, given to every asker, told to subscribers at most ten times a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.engine.access import access_to, is_owner, may_see
from cockpit.engine.sharing import catalogued_projects
from cockpit.engine.views.ranking import best_priority
from cockpit.engine.views.rows import job_row, slowest
from cockpit.engine.views.shown import shown_reason, shown_to
from cockpit.model.job import JobState
from cockpit.model.reasons import NotEvaluated
from cockpit.protocol.pages import LIST_ROWS, PAGE_ROWS, JobsChange, changed_columns, encoded_pages, page_of, start_over
from cockpit.sched.explain import reason_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from cockpit.engine.access import Actor
    from cockpit.model.catalogue import AnyEntry, EntryKey
    from cockpit.model.cluster import Project
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow
    from cockpit.runtime.host import Host
    from cockpit.sched.plan import Plan
    from cockpit.sched.priority.scale import Scale

TICK_SECONDS = 0.1
RESYNC_ROWS = 20_000
"""More changed rows than this: a subscriber was too slow, and starting over is cheaper for both."""
REASONS_AT_ONCE = 1_000
"""Rows a tick that are made anew for their reason alone: one start can give a hundred thousand waiting jobs another."""


class JobFeed:
    """The rows of all live jobs, brought up to date when somebody looks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._rows: dict[JobId, JobRow] = {}
        self._live: dict[bool, list[msgspec.Raw]] = {}
        """Encoded pages of live and held jobs, brief ones and others, as long as no row changes."""
        self._plan: Plan | None = None
        self._starts: dict[JobId, Millis] = {}
        """When jobs for which `_plan` keeps room start at the latest."""
        self._outdated: list[JobId] = []
        """Rows whose reason was another before `_plan`, and that still say so."""
        self._subscribers: list[Subscription] = []

    def rows(self, actor: Actor) -> list[JobRow]:
        """The rows that the actor may see, in order of submission."""
        self._refresh()
        jobs = self._host.machine.state.jobs
        if actor.admin:
            return list(self._rows.values())
        return [self._shown(actor, row, jobs[job]) for job, row in self._rows.items() if may_see(actor, jobs[job])]

    def row(self, actor: Actor, job: Job) -> JobRow:
        """Of a job that the actor may see, live or ended, as of now."""
        return self._shown(actor, self._made(job), job)

    def live_pages(self, actor: Actor, *, brief: bool = False) -> list[msgspec.Raw]:
        """Encoded pages of the live and held jobs that the actor may see; made once for all who see everything."""
        rows = self.rows(actor)
        if actor.admin and brief in self._live:
            return self._live[brief]
        pages = list(self.pages([row for row in rows if _is_live(row)], LIST_ROWS, brief=brief))
        if actor.admin:
            self._live[brief] = pages
        return pages

    def pages(self, rows: list[JobRow], first: int = PAGE_ROWS, *, brief: bool = False) -> Iterator[msgspec.Raw]:
        """Rows in encoded pages; the first one is small enough for a screen and has the counts. At least one page."""
        counts = dict(Counter(str(row.state) for row in rows))
        yield from encoded_pages(rows[:first], counts, brief=brief)
        for start in range(first, len(rows), PAGE_ROWS):
            yield from encoded_pages(rows[start : start + PAGE_ROWS], brief=brief)

    def subscribe(self, actor: Actor, *, anything: bool = False) -> Subscription:
        """A subscription that has been given everything as of now."""
        seen = self._host.machine.state.seq if anything else None
        state = self._host.machine.state
        sent = {row.id: row for row in self.rows(actor)}
        subscription = Subscription(actor, sent, seen, state.catalogue, catalogued_projects(state))
        self._subscribers.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscribers.remove(subscription)

    async def changes(self, subscription: Subscription) -> AsyncIterator[JobsChange]:
        """What the subscriber's rows miss, whenever something does, coalesced to ten times a second; nothing, where it
        wants to know of anything and something else has happened."""
        while True:
            async with self._host.changed:
                await self._host.changed.wait_for(lambda: self._pending(subscription))
            await asyncio.sleep(TICK_SECONDS)
            self._refresh(REASONS_AT_ONCE)
            if self._regrouped(subscription) or len(subscription.dirty) > RESYNC_ROWS:
                yield start_over(self._host.machine.state.seq)
                return
            change = self._change_for(subscription)
            if change is not None:
                yield change

    @property
    def told(self) -> bool:
        """Every subscriber knows everything."""
        return not any(map(self._pending, self._subscribers))

    def _pending(self, subscription: Subscription) -> bool:
        plan_is_new = self._host.plan is not self._plan
        rows_change = subscription.dirty or self._host.machine.touched or self._outdated or plan_is_new
        others = self._host.machine.state.catalogue is not subscription.catalogue
        return bool(rows_change) or others or self._unheard(subscription)

    def _regrouped(self, subscription: Subscription) -> bool:
        """Others are in the projects than when it began, so who may see what has to be asked anew."""
        state = self._host.machine.state
        if state.catalogue is subscription.catalogue:
            return False
        subscription.catalogue = state.catalogue
        return catalogued_projects(state) != subscription.projects

    def _unheard(self, subscription: Subscription) -> bool:
        return subscription.seen is not None and subscription.seen != self._host.machine.state.seq

    def _refresh(self, reasons: int | None = None) -> None:
        """`reasons`: how many rows may be made anew for their reason alone; None: all that need it."""
        machine = self._host.machine
        stale = set(machine.touched)
        machine.touched.clear()
        if self._host.plan is not self._plan and (reasons is None or not self._outdated):
            self._outdated = [*{**dict.fromkeys(self._with_new_reason(self._host.plan)), **self._with_new_start()}]
            self._plan = self._host.plan
        stale.update(self._outdated[:reasons])
        del self._outdated[:reasons]
        if stale:
            self._live.clear()
        self._make_rows(stale)
        for subscription in self._subscribers:
            subscription.dirty |= stale

    def _with_new_reason(self, plan: Plan | None) -> list[JobId]:
        """Rows that tell another reason than the plan gives, or a priority of an earlier count. One that is held is
        told when it is touched."""
        recounted = plan is not None and _count(plan) != (self._plan and _count(self._plan))
        as_before = self._plan is not None and plan is not None and self._plan.refusals == plan.refusals
        if plan is None or (as_before and not recounted and not self._outdated):
            return []
        rows = self._rows
        waiting = (job for job in self._host.machine.queue.values() if not job.held_by and job.id in rows)
        return [job.id for job in waiting if recounted or rows[job.id].reason != reason_of(plan, job)]

    def _with_new_start(self) -> dict[JobId, None]:
        """Rows for which the plan has moved the start that it promises."""
        plan, before = self._host.plan, self._starts
        self._starts = {each.job: each.reserved_at for each in plan.reservations} if plan is not None else {}
        moved = before.items() ^ self._starts.items()
        return {job: None for job, _ in sorted(moved) if job in self._rows}

    def _make_rows(self, stale: Iterable[JobId]) -> None:
        jobs = self._host.machine.state.jobs
        for job_id in sorted(stale):  # new ones come last, in the order of their ids
            job = jobs.get(job_id)
            if job is None or job.deleted:
                self._rows.pop(job_id, None)
            else:
                self._rows[job_id] = self._made(job)

    def _made(self, job: Job) -> JobRow:
        plan = self._host.plan
        if job.id not in self._host.machine.queue:
            return self._staging(job) if job.state is JobState.STAGING else job_row(job, None)
        if plan is None:
            return job_row(job, NotEvaluated())
        starts_by = self._starts.get(job.id)
        row = job_row(job, reason_of(plan, job), best_priority(plan.priorities, job), starts_by)
        failure = self._host.faults.of(job)
        return replace(row, failure=failure) if failure else row

    def _staging(self, job: Job) -> JobRow:
        replicas = job.attempt.replica_ids(job.id) if job.attempt is not None else ()
        parts = (self._host.executor.staging(each) for each in replicas)
        return replace(job_row(job, None), staged=slowest(filter(None, parts)))

    def _change_for(self, subscription: Subscription) -> JobsChange | None:
        new, changed, removed = [], [], []
        for job_id in sorted(subscription.dirty):
            row, sent = self._row_for(subscription.actor, job_id), subscription.sent.get(job_id)
            if row is None:
                if sent is not None:
                    removed.append(job_id)
                    del subscription.sent[job_id]
                continue
            if sent is None:
                new.append(row)
                subscription.sent[job_id] = row
            elif columns := changed_columns(sent, row):
                changed.append((job_id, row.version, columns))
                subscription.sent[job_id] = row
        subscription.dirty.clear()
        if not (new or changed or removed or self._unheard(subscription)):
            return None
        seq = self._host.machine.state.seq
        subscription.seen = None if subscription.seen is None else seq
        return JobsChange(seq, page_of(new), tuple(changed), tuple(removed))

    def _row_for(self, actor: Actor, job_id: JobId) -> JobRow | None:
        """None where there is none, or none for the actor any more: what was shared need not stay so."""
        row = self._rows.get(job_id)
        if row is None or actor.admin:
            return row
        job = self._host.machine.state.jobs[job_id]
        return self._shown(actor, row, job) if may_see(actor, job) else None

    def _shown(self, actor: Actor, row: JobRow, job: Job) -> JobRow:
        if actor.admin:
            return row
        own = is_owner(actor, job)
        reason = shown_reason(shown_to(actor, self._host.machine.state.jobs), row.reason, own=own)
        may = row.may if own else access_to(actor, job)
        return row if reason is row.reason and may is row.may else replace(row, reason=reason, may=may)


def _count(plan: Plan) -> tuple[Scale, Millis] | None:
    """Tells one count of all priorities from the next; None without priorities. What a job's end adds to its user's
    usage shows with the next."""
    measure = plan.priorities.measure
    return (measure.scale, measure.at) if measure is not None else None


def _is_live(row: JobRow) -> bool:
    return row.ended_at is None or row.held_until is not None


class Subscription:
    """What one view was told, and what has changed since."""

    def __init__(
        self,
        actor: Actor,
        sent: dict[JobId, JobRow],
        seen: int | None,
        catalogue: Mapping[EntryKey, AnyEntry],
        projects: tuple[Project, ...],
    ) -> None:
        self.actor = actor
        self.sent = sent
        self.seen = seen
        """The last event that it was told of, for who wants to know of anything; else None."""
        self.dirty: set[JobId] = set()
        self.catalogue = catalogue
        """The last one that was looked at,"""
        self.projects = projects
        """and its projects: those by which `actor` sees what was sent."""
