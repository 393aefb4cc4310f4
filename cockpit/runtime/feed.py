"""Keep the rows of all live jobs ready, and send subscribers the changes, at most ten times a second.

1. `_refresh` makes new rows for the jobs that have changed, or for which the last plan has another reason or start.
2. Subscribers who may see every job (administrators) share one log of changed rows (`RowLog`); each remembers only the
   number of the last batch it has received. A change is computed and encoded once for all with the same number.
3. For each other subscriber the feed remembers the rows that were sent, and compares.
"""

from __future__ import annotations

import asyncio
import ctypes
import weakref
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.engine.access import access_to, is_owner, may_see
from cockpit.engine.sharing import catalogued_projects
from cockpit.engine.views.ranking import best_priority
from cockpit.engine.views.redaction import shown_reason, shown_to
from cockpit.engine.views.rows import job_row, slowest
from cockpit.model.job import JobState
from cockpit.model.reasons import NotEvaluated
from cockpit.protocol.frames import raw
from cockpit.protocol.pages import LIST_ROWS, PAGE_ROWS, JobsChange, changed_columns, encoded_pages, page_of, start_over
from cockpit.runtime.rowlog import RowLog, SharedPages
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
    from cockpit.sched.priority.priority_context import PriorityContext


TICK_SECONDS = 0.1
"""Shortest interval between two changes that are sent."""
RESYNC_ROWS = 20_000
"""A subscriber that misses more changed rows than this must start over, which is cheaper for both."""
REASONS_AT_ONCE = 1_000
"""Most rows per tick that are made again for their reason alone: one start can change the reason of a hundred thousand
queued jobs."""


class JobFeed:
    """The rows of all live jobs, brought up to date when they are read."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._rows: dict[JobId, JobRow] = {}
        self._live: dict[bool, list[msgspec.Raw]] = {}
        """Cached encoded pages of live and held jobs, by `brief`, valid until a row changes."""
        self._plan: Plan | None = None
        self._starts: dict[JobId, Millis] = {}
        """The latest starts of the jobs for which `_plan` reserves resources."""
        self._outdated: list[JobId] = []
        """Jobs whose rows still have the reason of the plan before `_plan`."""
        self._subscribers: list[Subscription] = []
        self._log = RowLog()
        """The changed rows that the subscribers who see every job share."""
        self._changes: dict[int, JobsChange | None] = {}
        """The changes since a batch, by the number of the batch that a subscriber received last."""
        self._encoded: tuple[JobsChange, msgspec.Raw] | None = None
        self._first_load: dict[tuple[int, bool], weakref.ref[SharedPages]] = {}
        self._reasons_at = 0.0
        """When rows were last made again for their reasons alone (event loop's clock, seconds)."""
        self._trimmer = Trimmer()

    def rows(self, actor: Actor) -> list[JobRow]:
        """Return the rows that the actor may see, in order of submission."""
        self._refresh()
        jobs = self._host.machine.state.jobs
        if actor.admin:
            return list(self._rows.values())
        return [self._redact(actor, row, jobs[job]) for job, row in self._rows.items() if may_see(actor, jobs[job])]

    def row(self, actor: Actor, job: Job) -> JobRow:
        """Return the current row of a job that the actor may see, live or ended."""
        return self._redact(actor, self._make_row(job), job)

    def live_pages(self, actor: Actor, *, brief: bool = False) -> list[msgspec.Raw]:
        """Return encoded pages of the live and held jobs that the actor may see; cached for administrators."""
        rows = self.rows(actor)
        # `rows` has dropped these pages if any row has changed.
        if actor.admin and brief in self._live:
            return self._live[brief]
        pages = list(self.pages([row for row in rows if _is_live(row)], LIST_ROWS, brief=brief))
        if actor.admin:
            self._live[brief] = pages
        return pages

    def pages(self, rows: list[JobRow], first: int = PAGE_ROWS, *, brief: bool = False) -> Iterator[msgspec.Raw]:
        """Encode rows in pages, at least one. The first is small, for a quick first screen, and has the counts."""
        counts = dict(Counter(str(row.state) for row in rows))
        yield from encoded_pages(rows[:first], counts, brief=brief)
        for start in range(first, len(rows), PAGE_ROWS):
            yield from encoded_pages(rows[start : start + PAGE_ROWS], brief=brief)

    def subscribe(self, actor: Actor, *, anything: bool = False) -> Subscription:
        """Start a subscription; `first_load` must send it the current rows."""
        seen = self._host.machine.state.seq if anything else None
        state = self._host.machine.state
        # First: it brings the feed up to date, so that what is sent from here on begins after these rows.
        rows = self.rows(actor)
        sent = None if actor.admin else {row.id: row for row in rows}
        subscription = Subscription(actor, sent, seen, state.catalogue, catalogued_projects(state))
        subscription.received = self._log.last
        self._subscribers.append(subscription)
        return subscription

    def first_load(self, subscription: Subscription, first: int, *, brief: bool) -> Iterable[msgspec.Raw]:
        """Return the pages of all rows for a new subscription; administrators share them."""
        if subscription.sent is not None:
            return self.pages(list(subscription.sent.values()), first, brief=brief)
        known = self._first_load.get((first, brief))
        pages = known() if known is not None else None
        # Weakly referenced: the pages are freed when the last of these subscribers has read them.
        if pages is None:
            pages = SharedPages(self.pages(list(self._rows.values()), first, brief=brief))
            self._first_load[first, brief] = weakref.ref(pages)
        return pages

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscribers.remove(subscription)
        self._forget_received()
        self._trimmer.ask()

    def row_sent(self, subscription: Subscription, job: JobId) -> JobRow:
        """Return a row as it was last sent to the subscription."""
        return self._rows[job] if subscription.sent is None else subscription.sent[job]

    def encoded(self, change: JobsChange) -> msgspec.Raw:
        """Encode a change, once for all subscribers that receive it."""
        if self._encoded is None or self._encoded[0] is not change:
            self._encoded = change, raw(change)
        return self._encoded[1]

    async def changes(self, subscription: Subscription) -> AsyncIterator[JobsChange]:
        """Yield the changes that a subscriber misses, at most ten times a second.

        A subscriber to `anything` also gets an empty change when an event has changed no row.
        """
        while True:
            async with self._host.changed:
                await self._host.changed.wait_for(lambda: self._pending(subscription))
            # Whatever changes within this time is sent together.
            await asyncio.sleep(TICK_SECONDS)
            self._refresh(self._reasons_due())
            if self._has_other_projects(subscription) or len(subscription.dirty) > RESYNC_ROWS:
                yield start_over(self._host.machine.state.seq)
                return
            change = self._change_for(subscription) if subscription.sent is not None else self._change_of(subscription)
            if change is not None:
                yield change
                if change.resync:
                    return

    @property
    def is_up_to_date(self) -> bool:
        """Whether every subscriber has received all changes."""
        return not any(map(self._pending, self._subscribers))

    def _pending(self, subscription: Subscription) -> bool:
        # By identity: each pass makes a new plan.
        plan_is_new = self._host.plan is not self._plan
        is_behind = subscription.dirty or (subscription.sent is None and subscription.received != self._log.last)
        rows_change = is_behind or self._host.machine.touched or self._outdated or plan_is_new
        others = self._host.machine.state.catalogue is not subscription.catalogue
        return bool(rows_change) or others or self._has_unsent_event(subscription)

    def _has_other_projects(self, subscription: Subscription) -> bool:
        """Return whether the members of projects have changed since the subscription began.

        Then the jobs that the user may see are others, and the subscription must start over.
        """
        state = self._host.machine.state
        if state.catalogue is subscription.catalogue:
            return False
        subscription.catalogue = state.catalogue
        return catalogued_projects(state) != subscription.projects

    def _has_unsent_event(self, subscription: Subscription) -> bool:
        return subscription.seen is not None and subscription.seen != self._host.machine.state.seq

    def _refresh(self, reasons: int | None = None) -> None:
        """Make the outdated rows again. `reasons`: most rows to be made for their reason alone; None: all."""
        machine = self._host.machine
        stale = set(machine.touched)
        machine.touched.clear()
        # With a limit, all rows get the reasons of one plan before the next is looked at. Else, with a plan every few
        # seconds, only the beginning of a long queue would ever be made again.
        if self._host.plan is not self._plan and (reasons is None or not self._outdated):
            self._outdated = [*{**dict.fromkeys(self._with_new_reason(self._host.plan)), **self._with_new_start()}]
            self._plan = self._host.plan
        stale.update(self._outdated[:reasons])
        del self._outdated[:reasons]
        if not stale:
            return
        self._live.clear()
        self._first_load.clear()
        # The rows before the change, from which a change is computed for subscribers of any batch.
        before = {job: self._rows.get(job) for job in stale}
        self._make_rows(stale)
        for subscription in self._subscribers:
            if subscription.sent is not None:
                subscription.dirty |= stale
        # Without such subscribers no batch is remembered.
        if any(subscription.sent is None for subscription in self._subscribers):
            self._log.add(before)
            self._changes.clear()

    def _reasons_due(self) -> int:
        """Return how many rows may be made for their reason alone now; the limit is per tick, not per subscriber."""
        now = asyncio.get_running_loop().time()
        # All subscribers of one tick call this; half a tick tells their calls from those of the next.
        if now - self._reasons_at < TICK_SECONDS / 2:
            return 0
        self._reasons_at = now
        return REASONS_AT_ONCE

    def _change_of(self, subscription: Subscription) -> JobsChange | None:
        """Return the change that an administrator's subscription misses, computed once per batch number."""
        # Noted even if the change is empty: the rows may be as they were again.
        version, subscription.received = subscription.received, self._log.last
        if version not in self._changes:
            self._changes[version] = self._change_since(version)
        self._forget_received()
        change = self._changes[version]
        # Without a change of rows, the event alone is reported.
        if change is None and self._has_unsent_event(subscription):
            change = JobsChange(self._host.machine.state.seq, page_of([]))
        if change is not None and subscription.seen is not None:
            subscription.seen = self._host.machine.state.seq
        return change

    def _change_since(self, version: int) -> JobsChange | None:
        seq, before = self._host.machine.state.seq, self._log.since(version)
        # Too old to be remembered, or too much for a change to be worth it.
        if before is None or len(before) > RESYNC_ROWS:
            return start_over(seq)
        new, changed, removed = [], [], []
        for job_id in sorted(before):
            row, sent = self._rows.get(job_id), before[job_id]
            if row is None:
                removed += [job_id] if sent is not None else []
            elif sent is None:
                new.append(row)
            elif columns := changed_columns(sent, row):
                changed.append((job_id, row.version, columns))
        return JobsChange(seq, page_of(new), tuple(changed), tuple(removed)) if new or changed or removed else None

    def _forget_received(self) -> None:
        versions = [each.received for each in self._subscribers if each.sent is None]
        self._log.forget(min(versions, default=self._log.last))

    def _with_new_reason(self, plan: Plan | None) -> list[JobId]:
        """Return the jobs whose rows have another reason than the plan, or a priority of an earlier computation.

        Held jobs are left out: their rows are made again whenever the job changes.
        """
        recounted = plan is not None and _count(plan) != (self._plan and _count(self._plan))
        # Equal refusals make equal reasons, so that no row has to be compared.
        as_before = self._plan is not None and plan is not None and self._plan.refusals == plan.refusals
        if plan is None or (as_before and not recounted and not self._outdated):
            return []
        rows = self._rows
        waiting = (job for job in self._host.machine.queue.values() if not job.held_by and job.id in rows)
        return [job.id for job in waiting if recounted or rows[job.id].reason != reason_of(plan, job)]

    def _with_new_start(self) -> dict[JobId, None]:
        """Return the jobs whose promised start the plan has moved."""
        plan, before = self._host.plan, self._starts
        self._starts = {each.job: each.reserved_at for each in plan.reservations} if plan is not None else {}
        moved = before.items() ^ self._starts.items()
        return {job: None for job, _ in sorted(moved) if job in self._rows}

    def _make_rows(self, stale: Iterable[JobId]) -> None:
        jobs = self._host.machine.state.jobs
        for job_id in sorted(stale):  # so that new jobs are appended in the order of their ids
            job = jobs.get(job_id)
            if job is None or job.deleted:
                self._rows.pop(job_id, None)
            else:
                self._rows[job_id] = self._make_row(job)

    def _make_row(self, job: Job) -> JobRow:
        plan = self._host.plan
        # Only queued jobs have a reason to wait, and a priority, from the plan.
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
        """Return the change that the subscription of a user who sees only some rows misses."""
        assert subscription.sent is not None
        new, changed, removed = [], [], []
        # `sent` is the row as the subscriber has it, of which only the differences are sent.
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
        if not (new or changed or removed or self._has_unsent_event(subscription)):
            return None
        seq = self._host.machine.state.seq
        subscription.seen = None if subscription.seen is None else seq
        return JobsChange(seq, page_of(new), tuple(changed), tuple(removed))

    def _row_for(self, actor: Actor, job_id: JobId) -> JobRow | None:
        """Return the job's row; None where there is none, or where the actor may not see it any more, since sharing can
        end."""
        row = self._rows.get(job_id)
        # An administrator sees the row itself, without a copy.
        if row is None or actor.admin:
            return row
        job = self._host.machine.state.jobs[job_id]
        return self._redact(actor, row, job) if may_see(actor, job) else None

    def _redact(self, actor: Actor, row: JobRow, job: Job) -> JobRow:
        if actor.admin:
            return row
        own = is_owner(actor, job)
        reason = shown_reason(shown_to(actor, self._host.machine.state.jobs), row.reason, own=own)
        may = row.may if own else access_to(actor, job)
        # A row in which nothing has to be hidden is passed on without a copy.
        return row if reason is row.reason and may is row.may else replace(row, reason=reason, may=may)


def _count(plan: Plan) -> tuple[PriorityContext, Millis] | None:
    """Return what identifies one computation of all priorities; None without priorities.

    The usage that an ended job adds appears with the next computation.
    """
    calculator = plan.priorities.calculator
    return (calculator.context, calculator.at) if calculator is not None else None


def _is_live(row: JobRow) -> bool:
    return row.ended_at is None or row.held_until is not None


class Subscription:
    """The state of one view: what it was sent, and what has changed since."""

    def __init__(
        self,
        actor: Actor,
        sent: dict[JobId, JobRow] | None,
        seen: int | None,
        catalogue: Mapping[EntryKey, AnyEntry],
        projects: tuple[Project, ...],
    ) -> None:
        self.actor = actor
        self.sent = sent
        """The rows as they were sent; None for an administrator, whose state is the number `received`."""
        self.received = 0
        """The number of the last batch of the feed's `RowLog` that an administrator's view has received."""
        self.seen = seen
        """The last event that was reported, for a view that follows all events; else None."""
        self.dirty: set[JobId] = set()
        self.catalogue = catalogue
        """The catalogue when the subscription was last checked,"""
        self.projects = projects
        """and its projects, which decide what `actor` may see."""


QUIET_SECONDS = 1.0
"""Time after which memory is returned, so that many readers that leave together cost one call."""


class Trimmer:
    """Returns unused memory a moment after `ask`, once for all calls within that moment.

    The C library keeps freed blocks for later use: after fifty readers of a long queue these are hundreds of MiB.
    """

    def __init__(self) -> None:
        self._waiting: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Note that something large has just been freed."""
        with suppress(RuntimeError):  # outside an event loop nothing stays
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._trim)

    def _trim(self) -> None:
        self._waiting = None
        with suppress(AttributeError, OSError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
