"""Whether the jobs of one request may be queued: every rule of a spec, of its owner, and of the cluster as it is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cockpit.engine.access import Actor, may_see
from cockpit.engine.arrays import addressed, missing_tasks, size, task
from cockpit.engine.catalogue.naming import Meant, Names, names_nothing
from cockpit.engine.retries import resume_errors
from cockpit.engine.sharing import access_errors, membership_errors, named_projects
from cockpit.engine.submission.account_defaults import Charge, charge
from cockpit.engine.submission.spelling import Spelling
from cockpit.engine.submission.submit_limits import Asking, denied_by_qos, is_urgent, submission_limits, urgent_error
from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.model.ids import JobId
from cockpit.model.reasons import InReservation, NeverFits, NoEligibleNode, Reason, Resource
from cockpit.model.spec import Dependency, DependencyKind, JobSpec, PriorityWord
from cockpit.model.text import visible
from cockpit.sched.feasible import never_fits
from cockpit.sched.nodes.reservation_windows import is_open_to
from cockpit.sched.rules.partitions import WHOLE_CLUSTER, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job

_FIELD = {
    Resource.CPUS: "cpus",
    Resource.MEMORY: "memory",
    Resource.CARDS: "cards",
    Resource.CARD_SHARE: "cards",
}


class Admitted(NamedTuple):
    """What a spec means here, and what is wrong with it, led by the field's path; fine where both are empty."""

    charge: Charge
    project: str
    errors: list[str]
    reasons: list[tuple[str, Reason]]


class Admission:
    """The jobs of one request, looked at in order; each counts for those behind it."""

    def __init__(
        self,
        machine: Machine,
        actor: Actor,
        now: Millis,
        remembered: Sequence[Job],
        edited: Job | None = None,
        *,
        part: bool = False,
    ) -> None:
        """`remembered`: jobs that the request names and that have left the live state. `edited`: it is about this job,
        which does not stand in its own way. `part`: they are parts of a fleet's jobs, which it has divided."""
        self._machine = machine
        self._actor = actor
        self._now = now
        self._remembered = remembered
        self._edited = edited
        self._part = part
        self._owner = edited.submitter if edited is not None else actor.who
        self._names = Names(machine.state, actor, self._owner.name, edited.spec if edited is not None else None)
        self._projects = named_projects(machine.state)
        self._spelling = Spelling(machine.state.nodes.values())
        self._taken: set[tuple[str, str]] = set()
        self._asked: list[Asking] = []
        self._urgent = Counter[str]()

    def admit(self, spec: JobSpec) -> Admitted:
        """Look at the next one."""
        project = self._edited.project if self._edited is not None else spec.project or self._owner.name
        names = Meant(spec, []) if names_nothing(spec) else self._names.meant(spec, project)
        names = names._replace(spec=self._spelling.corrected(names.spec))
        charged = charge(self._machine.state, names.spec.as_accepted, self._owner)
        spec = charged.spec
        errors = [*submission_errors(spec), *([] if self._part else meeting_errors(spec))]
        if errors:
            return Admitted(charged, project, [*errors, *names.errors], [])
        errors = [*names.errors, *self._own_errors(spec, project), *charged.errors]
        reasons = [*charged.reasons, *self._rule_reasons(charged)]
        if not errors and not reasons and (reason := self._never_fits(charged)) is not None:
            reasons.append((_field(spec, reason), reason))
        self._count(charged, project)
        return Admitted(charged, project, errors, reasons)

    def _count(self, charged: Charge, project: str) -> None:
        self._taken.add((project, charged.spec.name))
        self._asked.append(self._asking(charged))
        if is_urgent(charged.spec.priority):
            self._urgent[project] += size(charged.spec)

    def _never_fits(self, charged: Charge) -> Reason | None:
        """Why none of its partitions could hold it; None where one could."""
        state = self._machine.state
        if not state.cluster.partitions and not state.cluster.login_pool:
            return never_fits(charged.spec, state.nodes)
        names = charged.partitions or (WHOLE_CLUSTER,)
        nodes = tuple(state.nodes.values())
        members = (nodes_of(state.cluster, name, nodes) for name in names)
        found = [never_fits(charged.spec, {node.name: node for node in each}) for each in members]
        return None if None in found else found[0]

    def _own_errors(self, spec: JobSpec, project: str) -> Iterator[str]:
        yield from self._name_errors(spec, project)
        if spec.elastic is not None and self._machine.state.cluster.members:
            yield "elastic: a fleet's jobs keep their size; submit it to one of its clusters"
        if spec.helpers and self._machine.state.cluster.members:
            path = "worker_pools" if spec.worker_pools else "parameter_servers"
            yield f"{path}: a fleet places replicas that are alike; submit it to one of its clusters"
        if spec.divide_over_clusters and not self._machine.state.cluster.members:
            yield "divide_over_clusters: this is one cluster; submit it to a fleet, or remove it"
        yield from resume_errors(self._machine.state.cluster, spec)
        if spec.staging and self._machine.state.cluster.staging is None and not self._machine.state.cluster.members:
            yield "staging: this cluster has no place for copies; an administrator sets one with [staging]"
        if not self._actor.admin:
            yield from self._privileges(spec)
            yield from membership_errors(self._projects, self._actor, self._owner, project)
        yield from access_errors(self._machine.state.cluster, self._actor, spec, self._edited)
        yield from self._deadline_errors(spec)
        yield from self._dependency_errors(spec)
        more = self._urgent[project] + size(spec) if is_urgent(spec.priority) else 0
        but = () if self._edited is None else (self._edited.id,)
        if error := urgent_error(self._machine, self._actor, self._owner.name, project, more, but):
            yield error

    def _name_errors(self, spec: JobSpec, project: str) -> Iterator[str]:
        singleton = any(each.kind is DependencyKind.SINGLETON for each in spec.dependencies)
        for other in self._machine.indices.named.of((project, spec.name)):
            job = self._machine.state.jobs[other]
            own = job.submitter.uid == self._owner.uid
            if not (singleton and own) and not self._same(job):
                yield _taken(job, known=may_see(self._actor, job))
                return
        if (project, spec.name) in self._taken and not singleton:
            yield f"name: another job of this submission has the same name in project {project}"

    def _same(self, job: Job) -> bool:
        """The edited job itself, or a task of its array."""
        edited = self._edited
        if edited is None:
            return False
        return job.id == edited.id or (edited.array is not None and job.array is not None and _array(job, edited))

    def _privileges(self, spec: JobSpec) -> Iterator[str]:
        before = self._edited.spec if self._edited is not None else None
        if spec.nice < 0 and (before is None or spec.nice < before.nice):
            yield "nice: only an administrator gives a negative one; write 0 or more"
        very = PriorityWord.VERY_URGENT
        if spec.priority is very and (before is None or before.priority is not very):
            yield "priority: only an administrator makes a job very-urgent; write urgent, or ask one"

    def _deadline_errors(self, spec: JobSpec) -> Iterator[str]:
        begin = max(self._now, spec.begin_at or self._now)
        if spec.deadline_at is not None and begin + 1000 * spec.time_limit_seconds > spec.deadline_at:
            yield "deadline: comes before the time limit is over, started at once; make it later, or the limit shorter"

    def _dependency_errors(self, spec: JobSpec) -> Iterator[str]:
        for each in dict.fromkeys(spec.dependencies):
            if each.job and not self._known(each):
                yield f"dependencies: there is no job {each.target}; `cockpit jobs --all` lists yours"
            elif self._edited is not None and each.job and self._waits_on(each, self._edited):
                ids = each.target, self._edited.id
                yield "dependencies: job {} waits for job {} already; neither would ever start".format(*ids)
        for array, index in missing_tasks(self._machine, spec):
            yield f"dependencies: array {array} has no task {index} that is left; name a job, or use afterok"

    def _known(self, condition: Dependency) -> bool:
        found = self._meant(condition) or [each for each in self._remembered if each.is_meant(condition)]
        return any(may_see(self._actor, each) for each in found)

    def _meant(self, condition: Dependency) -> list[Job]:
        """The jobs of the live state that the condition is on."""
        found = addressed(self._machine, condition.job, condition.task)
        return [each for each in found if each.is_meant(condition)]

    def _waits_on(self, start: Dependency, target: Job) -> bool:
        """Whether what a condition is on is, or waits for, the target, directly or through others."""
        seen: set[JobId] = set()
        left = self._meant(start)
        while left:
            job = left.pop()
            if job.id == target.id:
                return True
            if job.id not in seen:
                seen.add(job.id)
                left += [other for each in job.waits_for if each.job for other in self._meant(each)]
        return False

    def _rule_reasons(self, charged: Charge) -> Iterator[tuple[str, Reason]]:
        limit = submission_limits(self._machine, self._asking(charged), self._asked)
        if limit is not None and self._edited is None:
            yield "account", limit
        if (denied := denied_by_qos(self._machine, charged, self._owner, self._now)) is not None:
            yield "qos", denied
        name = charged.spec.reservation
        if name and (refused := self._reservation_refused(name, charged.account)):
            yield "reservation", refused

    def _reservation_refused(self, name: str, account: str) -> InReservation | None:
        """One that begins later is waited for."""
        found = self._machine.state.reservations.get(name)
        if found is None or not is_open_to(found, self._owner.name, account, self._now):
            return InReservation(visible(name))
        return None

    def _asking(self, charged: Charge) -> Asking:
        partition = next(iter(charged.partitions), "")
        return Asking(self._owner.name, charged.account, charged.qos, partition, size(charged.spec))


def _array(job: Job, other: Job) -> bool:
    return job.array is not None and other.array is not None and job.array.array == other.array.array


def _taken(job: Job, *, known: bool) -> str:
    """Of a job that the asker may not see nothing is told but that there is one."""
    if not known:
        return f"name: another job of project {job.project} already has this name; choose another"
    return f"name: job {job.id} of project {job.project} already has this name; choose another or end that job"


def _field(spec: JobSpec, reason: Reason) -> str:
    if isinstance(reason, NeverFits) and reason.resource is not None:
        index = 0 if len(spec.specs) == 1 else "*"
        return f"specs[{index}].{_FIELD[reason.resource]}"
    if isinstance(reason, NeverFits):
        return "nodes"
    asked = {
        "node_names": spec.node_names,
        "tolerations": isinstance(reason, NoEligibleNode) and reason.taints,
        "pool": spec.pool or (isinstance(reason, NoEligibleNode) and reason.dedicated),
        "driver_version": spec.driver_version,
        "node_selector": spec.node_selector,
    }
    return next((field for field, is_asked in asked.items() if is_asked), "specs")


def named_elsewhere(machine: Machine, specs: Iterable[JobSpec]) -> set[JobId]:
    """Jobs that conditions of `specs` name and that the live state does not have: accounting may remember them."""
    found: set[JobId] = set()
    for each in (each for spec in specs for each in spec.dependencies if each.job):
        live = machine.indices.arrays.of(each.job)
        if each.task is None or not live:
            found |= {each.job} - machine.state.jobs.keys() if not live else set()
        elif task(machine, each.job, each.task) is None:
            found |= _gone(machine.state.jobs[next(iter(live))], live)
    return found


def _gone(known: Job, live: Iterable[JobId]) -> set[JobId]:
    """The tasks of an array that are here no more, by one that is."""
    assert known.array is not None
    first = known.array.array
    return {JobId(each) for each in range(first, first + known.array.count)} - {*live}
