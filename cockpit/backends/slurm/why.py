"""Explains why a job waits: Slurm's own reason, with figures from the embedded scheduler and from Slurm's lists.

1. Take Slurm's reason and expected start from the job's row.
2. Let the embedded scheduler plan a copy of the cluster and explain the same job.
3. If both give the same reason, use the scheduler's, which has figures. Otherwise keep Slurm's, and add the figures of
   the limit or the licence that it names.
4. Leave out the scheduler's forecast where it cannot be right: for jobs that never start by Slurm's reason, for jobs
   that it would start now although Slurm does not, and for jobs whose tasks Slurm may spread freely.

Slurm names a limit by a code alone (`QOSMaxGRESPerUser`, `AssocGrpCpuLimit`). `limit_of_code` looks for its holder,
bound and use among the limits of sacctmgr that bind the job; where the code may mean several, the fullest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import licences
from cockpit.backends.slurm.mapping.cluster import (
    NO_LICENCES,
    ClusterLists,
    components,
    planned_spec,
    spec_shared_out,
)
from cockpit.backends.slurm.mapping.jobparts import spreads_freely
from cockpit.backends.slurm.mapping.jobs import LookedUpJob
from cockpit.backends.slurm.mapping.memory import with_default_memory
from cockpit.backends.slurm.mapping.reasons import never_starts, with_figures
from cockpit.backends.slurm.mapping.values import hosts, slurm_id
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.rows import explanation, holdings, task_row
from cockpit.engine.prediction import MOST_HOLDERS, condition_of
from cockpit.errors import CockpitError, RequestRefused
from cockpit.formats.foreign.sbatch_options import script_options
from cockpit.model.forecast import Condition, Forecast, HoldingJob, Outlook
from cockpit.model.ids import JobId, NodeName
from cockpit.model.jobrow import JobRow
from cockpit.model.node import NodeState
from cockpit.model.reasons import DependencyNever, Explanation, Held, LimitReached, Reason, SchedulerReason, WaitsForJob
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import DebugHold, JobSpec
from cockpit.sched.index import refresh_index
from cockpit.sched.placement import find_placement
from cockpit.sched.rules.counters import amounts_held, holders
from cockpit.sched.rules.limits import JOBS, LimitScope
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import ONE, asked
from cockpit.sched.shape import shape_of
from cockpit.sched.shortage import Shortages

if TYPE_CHECKING:
    from cockpit.backends.slurm.mirroring import SlurmMirror
    from cockpit.backends.slurm.reading import Reading
    from cockpit.model.job import Job
    from cockpit.sched.snapshot import Snapshot


Licences = tuple[dict[str, int], ...]
"""A request for licences, like `licences.alternatives`."""
UNAVAILABLE = ("ReqNodeNotAvail", "Nodes required for job", "NodeDown")
"""Beginnings of the codes of jobs whose nodes are not available."""
_CODE = re.compile(
    r"(?P<whose>Assoc|QOS|)(?P<scope>Grp|Max|Min)(?P<what>Jobs?|Cpu|CPU|Memory|Mem|Node|GRES|License|Billing)"
    r"(?:Per(?P<per>Job|User|Node|Account))?(?:Limit|NotSatisfied)?"
)
_RESOURCE = {"cpu": "cpu", "mem": "mem", "memory": "mem", "node": "node", "gres": "gres/", "license": "license/"}
_RESOURCES = _RESOURCE | {"billing": "billing", "job": JOBS, "jobs": JOBS}


def limit_of_code(snapshot: Snapshot, job: Job, code: str) -> LimitReached | None:
    """Return the limit that the code means; None: the code means no limit, or sacctmgr has no such limit."""
    # Codes may be written with `_` or with blanks.
    match = _CODE.fullmatch(code.replace("_", "").replace(" ", ""))
    if match is None:
        return None
    rules = Rulebook(snapshot.cluster, snapshot.accounts, snapshot.rules_version, snapshot.quota)
    spec = job.spec
    wants = asked(spec.specs[0], spec.nodes) | {JOBS: ONE}
    limits = [
        each
        # The partition's QOS has limits of its own (slurm.conf, Partition QOS), so the scope differs between
        # partitions.
        for partition in job.partitions or ("",)
        for each in _limits_named(match, snapshot, rules, rules.scope(job, partition), wants)
    ]
    # A limit of 0 admits nothing, so it counts as fuller than all others.
    return max(limits, key=lambda each: (each.used + each.asked) / each.allowed if each.allowed else 1e9, default=None)


def _limits_named(
    code: re.Match[str], snapshot: Snapshot, rules: Rulebook, scope: LimitScope, wants: dict[str, int]
) -> Iterator[LimitReached]:
    """Yield the limits that a code of Slurm means, with their figures."""
    for limit in scope.per_job:
        if _is(code, limit.holder, limit.limit, limit.resource):
            yield LimitReached(
                limit.holder, limit.limit, limit.resource, limit.allowed / ONE, 0, wants.get(limit.resource, 0) / ONE
            )
    for bound in scope.running:
        if _is(code, bound.holder, bound.limit, bound.resource):
            used = sum(held for _, held in amounts_held(snapshot, rules, {bound.counter}))
            resource = "" if bound.resource == JOBS else bound.resource
            sizes = (bound.allowed / ONE, used / ONE, wants.get(bound.resource, 0) / ONE)
            yield LimitReached(bound.holder, bound.limit, resource, *sizes)


def _is(code: re.Match[str], holder: str, limit: str, resource: str) -> bool:
    """Return whether the code may mean this limit. Codes that name neither QOS nor association mean a QOS."""
    of_qos = holder.startswith("qos ")
    one = f"Per{code['per']}" if code["per"] else ""
    each = limit.removeprefix(code["scope"])
    return (
        of_qos == (code["whose"] != "Assoc")
        and limit.startswith(code["scope"])
        and (each.endswith(one) if one else True)
        and resource.startswith(_RESOURCES[code["what"].lower()])
    )


def unavailable_nodes(reason: Reason, job: Job, everything: ClusterLists) -> Iterator[tuple[NodeName, str]]:
    """Return the nodes that the code lists, else those that the job requests by name, else those of its partitions."""
    if not isinstance(reason, SchedulerReason) or not reason.code.replace("_", " ").startswith(UNAVAILABLE):
        return
    _, listed, names = reason.code.partition("UnavailableNodes:")
    of_partitions = {name for each in everything.rules.partitions if each.name in job.partitions for name in each.nodes}
    nodes: set[NodeName] = (
        set(hosts(names) if listed else ()) or set(map(NodeName, job.spec.node_names)) or of_partitions
    )
    for seen in everything.nodes:
        if seen.node.name in nodes and seen.node.state is not NodeState.UP:
            yield seen.node.name, seen.node.why_out


SLURM = "Slurm"
UNJUDGED = frozenset({"None", ""})
"""Slurm's reasons of jobs that it has not considered yet. Jobs with any other reason do not start at present, even if
the embedded scheduler, which may not know all of Slurm's rules, would start them."""


async def outlook(reading: Reading, mirror: SlurmMirror, known: LookedUpJob, rows: Mapping[JobId, JobRow]) -> Outlook:
    """Return the explanation and the forecast of a queued job. Refused for a job that is not queued."""
    row, by_slurm = _find_waiting(known, rows)  # step 1
    everything = await reading.everything(closely=True)
    planned, together = _planned_id(everything, known)
    core = await (await mirror.judge(everything)).explain(planned)  # step 2
    judged = core.explanation.reason if core.explanation is not None else None
    # Step 3
    # the plan is that of all components together, so its figures may be those of another component
    figures = judged
    if together and not isinstance(judged, LimitReached):
        figures = _alone(await mirror.snapshot(everything), everything, known)
    reason, held, in_all = with_figures(by_slurm.reason, figures), core.holders, core.holders_in_all
    # Slurm's reason is kept, so the holders that the scheduler found are those of another reason.
    if reason is not judged:
        reason, held = await _with_limit_figures(reading, mirror, everything, known, reason)
        in_all = len(held)
    if isinstance(judged, Held) and judged.by == NO_LICENCES and isinstance(reason, SchedulerReason):
        reason = _with_licences(reason, everything, known)
    # Step 4
    never = known.listed is not None and never_starts(known.listed)
    shared_out = known.listed is not None and spec_shared_out(everything, known.listed) is not None
    equal = (
        known.listed is not None and spreads_freely(known.listed.fields) and not shared_out
    )  # to the core, it is not
    unknown = never or equal or (core.forecast.now and known.listed is not None and known.listed.code not in UNJUDGED)
    named = (*by_slurm.ahead, *held[:MOST_HOLDERS])
    return replace(
        core,
        forecast=Forecast() if unknown else core.forecast,
        job=row.id,
        name=row.name,
        component=row.component,
        position=by_slurm.position,
        explanation=replace(by_slurm, reason=reason),
        unavailable=core.unavailable or tuple(unavailable_nodes(reason, known.job, everything)),
        holders=held[:MOST_HOLDERS],
        holders_in_all=in_all,
        condition=await _condition(reading, reason) or core.condition,
        what_ifs=() if equal or shared_out or together else core.what_ifs,
        named=tuple(_component_named(core.named, rows))
        + tuple(holdings(named, rows, {each.job for each in core.named})),
        scheduler_start_at=row.starts_by,
        scheduler=SLURM,
    )


def _with_licences(reason: SchedulerReason, everything: ClusterLists, known: LookedUpJob) -> SchedulerReason:
    """Return another reason of Slurm's with the licences that the job waits for, too: they decide about its start."""
    if reason.code.startswith("Licenses") or known.listed is None:
        return reason
    about = licences.usage_text(everything.licences, licences.requested(known.listed.fields))
    words = f"waits for licences, too ({about})" if about else "waits for licences, too"
    return replace(reason, about="; ".join(filter(None, (reason.about, words))))


async def predicted(reading: Reading, mirror: SlurmMirror, specs: Sequence[JobSpec]) -> list[Outlook]:
    """Return the predictions of jobs that are not submitted, by the embedded scheduler. A debug hold does not change a
    job's start. Where a batch script wants licences that are not left, no start is known."""
    wanted = [_licences_of(spec) for spec in specs]
    everything = await reading.everything(closely=True)
    if any(wanted):
        everything = everything._replace(licences=await reading.licences())
    plain = [with_default_memory(replace(spec, debug_hold=DebugHold()), everything) for spec in specs]
    judged = await (await mirror.judge(everything)).predict(plain)
    queue = licences.LicenceQueue(everything.licences, everything.jobs if any(wanted) else ())
    short = [None if queue.has_left(each) else each for each in wanted]
    return [
        replace(_without_start(each, no, everything), scheduler=SLURM) for each, no in zip(judged, short, strict=True)
    ]


def _licences_of(spec: JobSpec) -> Licences:
    """Return the licences that a batch script asks for; job files have no field for them."""
    return (
        licences.alternatives(script_options(spec.script.text).get("licenses", "")) if spec.script is not None else ()
    )


def _without_start(judged: Outlook, wanted: Licences | None, everything: ClusterLists) -> Outlook:
    if wanted is None:
        return judged
    about = licences.usage_text(everything.licences, {name: count for each in wanted for name, count in each.items()})
    reason = SchedulerReason("Licenses", about)
    known = judged.explanation or Explanation(judged.job, reason, judged.position, ())
    return replace(judged, explanation=replace(known, reason=reason), forecast=Forecast(), what_ifs=())


def _planned_id(everything: ClusterLists, known: LookedUpJob) -> tuple[JobId, bool]:
    """Return the id by which the scheduler's copy has the job, and whether that is one of several components."""
    for first, others in components(everything.jobs).items():
        if known.job.id == first or any(each.id == known.job.id for each in others):
            return first, True
    return known.alike, False


def _alone(snapshot: Snapshot, everything: ClusterLists, known: LookedUpJob) -> Reason | None:
    """Return what a component of a heterogeneous job lacks by itself; None where it would fit."""
    spec = planned_spec(everything, known.listed) if known.listed is not None else known.job.spec
    index, shape = (
        refresh_index(None, snapshot),
        shape_of(spec, known.job.partitions[0] if known.job.partitions else ""),
    )
    return Shortages(index).reason(shape) if find_placement(index, shape) is None else None


def _component_named(named: Iterable[HoldingJob], rows: Mapping[JobId, JobRow]) -> Iterator[HoldingJob]:
    """Yield the jobs with the number of the component that each is, which the scheduler's copy does not have."""
    for each in named:
        row = rows.get(each.job)
        yield each if row is None or row.component is None else replace(each, component=row.component)


def _find_waiting(known: LookedUpJob, rows: Mapping[JobId, JobRow]) -> tuple[JobRow, Explanation]:
    row = task_row(rows[known.listed.id], known.job) if known.listed is not None else None
    by_slurm = explanation(row, rows) if row is not None else None
    if row is None or by_slurm is None:
        message = f"Job {slurm_id(known.job.id)} is {known.job.state}; only a queued job waits for something."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
    return row, by_slurm


async def _with_limit_figures(
    reading: Reading, mirror: SlurmMirror, everything: ClusterLists, known: LookedUpJob, reason: Reason
) -> tuple[Reason, tuple[JobId, ...]]:
    """Return Slurm's reason with the figures of the limit or licences that it names, and the jobs that use them."""
    if isinstance(reason, SchedulerReason) and reason.code.startswith("Licenses") and known.listed is not None:
        wanted = licences.requested(known.listed.fields)
        about = licences.usage_text(await reading.licences(), wanted)
        return SchedulerReason(reason.code, about), licences.holders(everything.jobs, wanted)
    seen = await mirror.snapshot(everything)
    if isinstance(reason, SchedulerReason):
        reason = limit_of_code(seen, known.job, reason.code) or reason
    return reason, holders(seen, known.job, reason)


async def _condition(reading: Reading, reason: Reason) -> Condition | None:
    """Return the state of the job that a dependency waits for; None if Slurm has forgotten it."""
    if not isinstance(reason, WaitsForJob | DependencyNever) or not reason.job:
        return None
    try:
        return condition_of((await look_up(reading, reason.job, reason.task)).job)
    except CockpitError:
        return None
