"""Applies the events of queued jobs to the state, and those that remove ended jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.apply.rules import Rules, accrues_from, change, change_waiting
from cockpit.model import events
from cockpit.model.job import Job

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState

RULES = Rules()


@RULES.of(events.JobSubmitted)
def _(body: events.JobSubmitted, state: ClusterState, record: events.EventRecord) -> None:
    state.last_job_id = max(state.last_job_id, body.job)
    job = Job(
        id=body.job,
        spec=body.spec,
        submitter=body.submitter,
        project=body.project,
        submitted_at=record.at,
        state_since=record.at,
        version=record.seq,
        account=body.account,
        qos=body.qos,
        partitions=body.partitions,
        array=body.array,
        part=body.part,
        waits_for=body.spec.dependencies,
        accrues_from=record.at,
    )
    # Made with an age first, since nearly every job has one: the second record is made only for the others.
    accrues = accrues_from(job, record.at, state.cluster) is not None
    state.jobs[body.job] = job if accrues else replace(job, accrues_from=None)


@RULES.of(events.JobHeld)
def _(body: events.JobHeld, state: ClusterState, record: events.EventRecord) -> None:
    change_waiting(state, record, body.job, held_by=body.by, held_since=record.at)


@RULES.of(events.JobReleased)
def _(body: events.JobReleased, state: ClusterState, record: events.EventRecord) -> None:
    change_waiting(state, record, body.job, held_by="", held_since=None)


@RULES.of(events.JobEdited)
def _(body: events.JobEdited, state: ClusterState, record: events.EventRecord) -> None:
    before = state.jobs[body.job]
    # Unchanged dependencies keep what was settled: the jobs that they name may have left the state since.
    conditions = body.spec.dependencies
    same = conditions == before.spec.dependencies
    change_waiting(
        state,
        record,
        body.job,
        # an edit replaces what a user asked for, not what the engine has learnt about the nodes
        spec=replace(body.spec, excluded=before.spec.excluded) if before.spec.excluded else body.spec,
        account=body.account,
        qos=body.qos,
        partitions=body.partitions,
        waits_for=before.waits_for if same else conditions,
        never=before.never if same else None,
        clears=(),
        below_min_at=before.below_min_at if body.spec.suspends else None,
    )


@RULES.of(events.DependencyMet)
def _(body: events.DependencyMet, state: ClusterState, record: events.EventRecord) -> None:
    remaining = tuple(each for each in state.jobs[body.job].waits_for if each != body.dependency)
    change_waiting(state, record, body.job, waits_for=remaining)


@RULES.of(events.DependencyFailed)
def _(body: events.DependencyFailed, state: ClusterState, record: events.EventRecord) -> None:
    before = state.jobs[body.job].waits_for
    # The failed dependency goes first: it is the one that the job's waiting reason names.
    first = (body.dependency, *(each for each in before if each != body.dependency))
    change(state, record, body.job, never=body.because, waits_for=first)


@RULES.of(events.AgeBegan)
def _(body: events.AgeBegan, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, accrues_from=record.at)


@RULES.of(events.PrioritySet)
def _(body: events.PrioritySet, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, direct_priority=body.priority)


@RULES.of(events.SiteFactorSet)
def _(body: events.SiteFactorSet, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, site_factor=body.factor)


@RULES.of(events.JobDeleted)
def _(body: events.JobDeleted, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, deleted=True)


@RULES.of(events.EvictionsDecided)
def _(body: events.EvictionsDecided, state: ClusterState, record: events.EventRecord) -> None:
    change(state, record, body.job, clears=(*state.jobs[body.job].clears, *body.others))


@RULES.of(events.JobArchived)
def _(body: events.JobArchived, state: ClusterState, _record: events.EventRecord) -> None:
    array = state.jobs.pop(body.job).array
    if array is None or array.array not in state.failed_tasks:
        return
    # Search from the end: the last tasks of an array tend to stay longest, so that the search stops early.
    tasks = range(array.array + array.count - 1, array.array - 1, -1)
    if not any(task in state.jobs for task in tasks):
        del state.failed_tasks[array.array]
