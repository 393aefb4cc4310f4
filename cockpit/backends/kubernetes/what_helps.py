"""Which changes of a waiting job would start it sooner: those that its obstacles suggest are tried on a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.namespace_quotas import short_quotas
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, Start, WaitingJob
from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView
from cockpit.backends.kubernetes.mapping.what_ifs import PodChange, pod_changes
from cockpit.model.forecast import Change, Forecast, NoBound, WhatIf
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.surroundings import Surroundings
    from cockpit.model.spec import JobSpec

MOST_AWAITED = 5


class Case(NamedTuple):
    """A job that is judged."""

    waits: WaitingJob
    """Its pods that wait."""
    anew: WaitingJob
    """All its pods, if it were submitted anew, as a changed job is."""
    spec: JobSpec
    kind: str
    """The kind of its object."""


class Judgement(NamedTuple):
    """The cluster, and when its waiting jobs would start."""

    view: SchedulerView
    starts: Mapping[JobId, Start]
    settled: bool
    """Whether none of the waiting pods fits now."""


def forecast_of(view: SchedulerView, start: Start) -> Forecast:
    """Return the start as a forecast without a bound: the scheduler holds nothing back for a waiting pod."""
    if start.at <= view.now:
        return Forecast(now=True, likely_at=start.at, no_bound=NoBound.NOTHING_RESERVED)
    return Forecast(likely_at=start.at, after=start.after[-MOST_AWAITED:], no_bound=NoBound.NOTHING_RESERVED)


def what_helps(judgement: Judgement, case: Case, start: Start | None, around: Surroundings) -> Iterator[WhatIf]:
    """Yield of each kind of change the smallest one that starts soonest, if that is sooner than the job as it is.

    A changed job is a new one: all its pods are placed anew, behind those that wait already.
    """
    best: dict[tuple[Change, str], tuple[PodChange, Start]] = {}
    view, anew, spec = judgement.view, case.anew, case.spec
    freed = {name for name, node in view.nodes.items() if any(pod.job == anew.job for pod in node.pods)}
    without = judgement._replace(view=_without_pods(view, anew.job))
    bounds = {line.resource: line.left // max(1, len(anew.pods)) for line in around.quotas}
    changes = pod_changes(case.waits.pods, spec, view.nodes, around.classes, bounds)
    for each in (*changes, *_fewer_pods(without.view, anew, spec, around)):
        changed = anew._replace(pods=tuple(map(each.changed, anew.pods)))
        if each.change is Change.NODES:
            changed = changed._replace(pods=changed.pods[: int(each.after)])
        if short_quotas(changed.pods, around.quotas):
            continue
        found = _start_of(without, changed, freed, start)
        kind = each.change, each.before if each.change is Change.LABEL else ""
        if found is not None and (kind not in best or found.at < best[kind][1].at):
            best[kind] = each, found
    for each, found in sorted(best.values(), key=lambda pair: pair[1].at):
        forecast = replace(forecast_of(view, found), after=())
        yield WhatIf(each.change, each.before, each.after, each.spec, forecast, evicts=len(found.evicts))


def _without_pods(view: SchedulerView, job: JobId) -> SchedulerView:
    """Return the cluster without the pods of the job that are placed already."""
    nodes = {}
    for name, node in view.nodes.items():
        own = [pod for pod in node.pods if pod.job == job]
        nodes[name] = node.copy() if own else node
        for pod in own:
            nodes[name].remove(pod)
    return view._replace(nodes=nodes)


def _start_of(judgement: Judgement, changed: WaitingJob, freed: Collection[str], before: Start | None) -> Start | None:
    """Return when the changed job starts; None: not sooner than before. `freed`: the nodes that its pods have left."""
    view, until = judgement.view, before.at if before is not None else None
    waiting = {**view.waiting, changed.job: changed}
    simulation = Simulation(view.nodes, waiting.values(), view.ends, view.now)
    if judgement.settled:
        # Of the other waiting pods it is known that they fit on no other node.
        simulation.try_on(freed)
        simulation.try_on(view.nodes, changed.job)
        found = simulation.go_on(changed.job, until)
    else:
        found = simulation.run(changed.job, until)
    return found if found is not None and (before is None or found.at < before.at) else None


def _fewer_pods(view: SchedulerView, anew: WaitingJob, spec: JobSpec, around: Surroundings) -> Iterator[PodChange]:
    """Yield the job with only those pods that can be placed now and that the quotas allow."""
    if len(anew.pods) < 2:
        return
    simulation = Simulation(view.nodes, list({**view.waiting, anew.job: anew}.values()), (), view.now)
    simulation.run()
    fewer = len(anew.pods) - simulation.left(anew.job)
    while fewer and short_quotas(anew.pods[:fewer], around.quotas):
        fewer -= 1
    if 0 < fewer < len(anew.pods):
        yield PodChange(Change.NODES, str(len(anew.pods)), str(fewer), lambda needs: needs, replace(spec, nodes=fewer))
