"""Checks whether the jobs of a submission or an edit may be queued: the rules for specs, owners and the cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.engine.access import Actor, may_see
from cockpit.engine.arrays import addressed, missing_tasks, size, task
from cockpit.engine.catalogue.naming import Names, ResolvedSpec, needs_no_lookup
from cockpit.engine.retries import resume_errors
from cockpit.engine.sharing import access_errors, membership_errors, named_projects
from cockpit.engine.submission.account_defaults import Charge, charge
from cockpit.engine.submission.submit_limits import (
    SubmitRequest,
    denied_by_qos,
    is_urgent,
    submission_limits,
    urgent_error,
)
from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.model.cardmodels import gres_type
from cockpit.model.ids import JobId
from cockpit.model.reasons import InReservation, NeverFits, NoEligibleNode, Reason, Resource
from cockpit.model.spec import Dependency, DependencyKind, JobSpec, PriorityWord
from cockpit.model.text import visible
from cockpit.sched.feasible import in_partition, never_fits
from cockpit.sched.nodes.reservation_windows import is_open_to
from cockpit.sched.rules.partitions import WHOLE_CLUSTER, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec, NodeSpec


_FIELD = {
    Resource.CPUS: "cpus",
    Resource.MEMORY: "memory",
    Resource.CARDS: "cards",
    Resource.CARD_SHARE: "cards",
}


class AdmissionResult(NamedTuple):
    """The result of checking one job. It is admitted where `errors` and `reasons` are empty."""

    charge: Charge
    """The completed spec, and the account, QOS and partitions of the job."""
    project: str
    errors: list[str]
    """Sentences, each behind the path of the field that it is about."""
    reasons: list[tuple[str, Reason]]
    """Scheduling reasons for which the job could never start, each with the path of a field."""


class Admission:
    """Checks the jobs of one request in order. Each job counts for the names and limits of those after it."""

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
        """Prepare the checks of one request.

        `remembered`: jobs that the request's dependencies name and that only the accounting has.
        `edited`: the job that the request edits; its own name and urgency do not count against it.
        `part`: the jobs are parts of a fleet's jobs, which were checked as a whole there.
        """
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
        self._name_in_use: set[tuple[str, str]] = set()
        """Projects and names of the jobs checked so far."""
        self._requests: list[SubmitRequest] = []
        """The jobs checked so far, as submit limits count them."""
        self._urgent = Counter[str]()
        """Number of urgent jobs checked so far, by project."""

    def admit(self, spec: JobSpec) -> AdmissionResult:
        """Check the next job of the request.

        1. Resolve names of the catalogue, and spell card models as the nodes do.
        2. Choose account, QOS, partitions and time limit where the spec leaves them open.
        3. Check the spec by itself. After an error here the following checks could not trust its fields.
        4. Check it against the state: names, rights, dependencies, limits.
        5. If all is well, check that some partition could hold the job when empty.
        """
        project = self._edited.project if self._edited is not None else spec.project or self._owner.name
        names = ResolvedSpec(spec, []) if needs_no_lookup(spec) else self._names.meant(spec, project)
        # Before anything is compared: users may spell a card model as Slurm does, the nodes as its vendor does.
        names = names._replace(spec=self._spelling.corrected(names.spec))
        charged = charge(self._machine.state, names.spec.as_accepted, self._owner)
        spec = charged.spec
        errors = [*submission_errors(spec), *([] if self._part else meeting_errors(spec))]
        if errors:
            return AdmissionResult(charged, project, [*errors, *names.errors], [])
        errors = [*names.errors, *self._own_errors(spec, project), *charged.errors]
        reasons = [*charged.reasons, *self._rule_reasons(charged)]
        if not errors and not reasons and (reason := self._never_fits(charged)) is not None:
            reasons.append((_field(spec, reason), reason))
        # Also with errors: the jobs behind it get the errors that they would have beside this one.
        self._count(charged, project)
        return AdmissionResult(charged, project, errors, reasons)

    def _count(self, charged: Charge, project: str) -> None:
        self._name_in_use.add((project, charged.spec.name))
        self._requests.append(self._request(charged))
        if is_urgent(charged.spec.priority):
            self._urgent[project] += size(charged.spec)

    def _never_fits(self, charged: Charge) -> Reason | None:
        """Return why none of the job's partitions could hold it even when empty; None: one could."""
        state = self._machine.state
        # Every node is in the one partition: no need to select nodes, which takes long on a large cluster.
        if not state.cluster.partitions and not state.cluster.login_pool:
            return never_fits(charged.spec, state.nodes)
        names = charged.partitions or (WHOLE_CLUSTER,)
        nodes = tuple(state.nodes.values())
        members = (nodes_of(state.cluster, name, nodes) for name in names)
        reasons = [never_fits(charged.spec, {node.name: node for node in each}) for each in members]
        if None in reasons:
            return None
        # The first partition's reason stands for all; it names the partition if other nodes could hold the job.
        return in_partition(reasons[0], names[0], lambda: never_fits(charged.spec, state.nodes))

    def _own_errors(self, spec: JobSpec, project: str) -> Iterator[str]:
        """Yield the errors of a spec in the state as it is now."""
        yield from self._name_errors(spec, project)
        if spec.elastic is not None and self._machine.state.cluster.members:
            yield "elastic: a fleet cannot resize jobs; submit it to one of its clusters"
        if spec.helpers and self._machine.state.cluster.members:
            path = "worker_pools" if spec.worker_pools else "parameter_servers"
            yield f"{path}: a fleet places only equal replicas; submit it to one of its clusters"
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
        # Together with the jobs checked before, so that one request cannot pass the bound in pieces.
        more = self._urgent[project] + size(spec) if is_urgent(spec.priority) else 0
        but = () if self._edited is None else (self._edited.id,)
        if error := urgent_error(self._machine, self._actor, self._owner.name, project, more, but):
            yield error

    def _name_errors(self, spec: JobSpec, project: str) -> Iterator[str]:
        """Yield an error if a live job of the project has the name. Singletons may share a name with own jobs."""
        singleton = any(each.kind is DependencyKind.SINGLETON for each in spec.dependencies)
        for other in self._machine.indices.named.of((project, spec.name)):
            job = self._machine.state.jobs[other]
            own = job.submitter.uid == self._owner.uid
            if not (singleton and own) and not self._is_edited(job):
                yield _name_in_use(job, known=may_see(self._actor, job))
                return
        # Jobs of one request have one owner, so that singletons among them may share the name.
        if (project, spec.name) in self._name_in_use and not singleton:
            yield f"name: another job of this submission has the same name in project {project}"

    def _is_edited(self, job: Job) -> bool:
        """Tell whether the job is the edited one, or a task of the same array."""
        edited = self._edited
        if edited is None:
            return False
        return job.id == edited.id or (
            edited.array is not None and job.array is not None and _in_same_array(job, edited)
        )

    def _privileges(self, spec: JobSpec) -> Iterator[str]:
        """Yield errors for what only an administrator may set; an edit may leave such a value or lower it."""
        before = self._edited.spec if self._edited is not None else None
        if spec.nice < 0 and (before is None or spec.nice < before.nice):
            yield "nice: only an administrator gives a negative one; write 0 or more"
        very = PriorityWord.VERY_URGENT
        if spec.priority is very and (before is None or before.priority is not very):
            yield "priority: only an administrator makes a job very-urgent; write urgent, or ask one"

    def _deadline_errors(self, spec: JobSpec) -> Iterator[str]:
        # The best case: it starts at the first moment at which it may, and uses its whole limit.
        begin = max(self._now, spec.begin_at or self._now)
        if spec.deadline_at is not None and begin + 1000 * spec.time_limit_seconds > spec.deadline_at:
            yield "deadline: comes before the time limit is over, started at once; make it later, or the limit shorter"

    def _dependency_errors(self, spec: JobSpec) -> Iterator[str]:
        for each in dict.fromkeys(spec.dependencies):
            # The same words for a job that does not exist and for one that the user may not see.
            if each.job and not self._known(each):
                yield f"dependencies: there is no job {each.target}; `cockpit jobs --all` lists yours"
            elif self._edited is not None and each.job and self._waits_on(each, self._edited):
                ids = each.target, self._edited.id
                yield "dependencies: job {} waits for job {} already; neither would ever start".format(*ids)
        for array, index in missing_tasks(self._machine, spec):
            yield f"dependencies: array {array} has no task {index} that is left; name a job, or use afterok"

    def _known(self, condition: Dependency) -> bool:
        """Tell whether the dependency names a job that exists and that the user may see."""
        jobs = self._meant(condition) or [each for each in self._remembered if each.is_meant(condition)]
        return any(may_see(self._actor, each) for each in jobs)

    def _meant(self, condition: Dependency) -> list[Job]:
        """Return the jobs of the live state that the dependency names."""
        jobs = addressed(self._machine, condition.job, condition.task)
        return [each for each in jobs if each.is_meant(condition)]

    def _waits_on(self, start: Dependency, target: Job) -> bool:
        """Tell whether a job that `start` names is the target or depends on it, directly or through other jobs."""
        # `visited`, since several jobs may wait for the same one
        visited: set[JobId] = set()
        pending = self._meant(start)
        while pending:
            job = pending.pop()
            if job.id == target.id:
                return True
            if job.id not in visited:
                visited.add(job.id)
                pending += [other for each in job.waits_for if each.job for other in self._meant(each)]
        return False

    def _rule_reasons(self, charged: Charge) -> Iterator[tuple[str, Reason]]:
        """Yield the limits and reservations that forbid to queue the job."""
        limit = submission_limits(self._machine, self._request(charged), self._requests)
        # an edit adds no job, so it cannot exceed a limit on their number
        if limit is not None and self._edited is None:
            yield "account", limit
        if (denied := denied_by_qos(self._machine, charged, self._owner, self._now)) is not None:
            yield "qos", denied
        name = charged.spec.reservation
        if name and (refused := self._reservation_refused(name, charged.account)):
            yield "reservation", refused

    def _reservation_refused(self, name: str, account: str) -> InReservation | None:
        """Return the reason if the reservation is over, unknown or not for the owner; one that begins later is fine."""
        reservation = self._machine.state.reservations.get(name)
        if reservation is None or not is_open_to(reservation, self._owner.name, account, self._now):
            return InReservation(visible(name))
        return None

    def _request(self, charged: Charge) -> SubmitRequest:
        partition = next(iter(charged.partitions), "")
        return SubmitRequest(self._owner.name, charged.account, charged.qos, partition, size(charged.spec))


def _in_same_array(job: Job, other: Job) -> bool:
    return job.array is not None and other.array is not None and job.array.array == other.array.array


def _name_in_use(job: Job, *, known: bool) -> str:
    """Return the error for a name that a live job has. Its id is left out unless the user may see it (`known`)."""
    if not known:
        return f"name: another job of project {job.project} already has this name; choose another"
    return f"name: job {job.shown_id} of project {job.project} already has this name; choose another or end that job"


def _field(spec: JobSpec, reason: Reason) -> str:
    """Return the path of the field to change so that the job fits."""
    if isinstance(reason, NeverFits) and reason.resource is not None:
        # With alternatives the reason is that of all of them.
        index = 0 if len(spec.specs) == 1 else "*"
        return f"specs[{index}].{_FIELD[reason.resource]}"
    if isinstance(reason, NeverFits):
        return "nodes"
    requirements = {
        "node_names": spec.node_names,
        "tolerations": isinstance(reason, NoEligibleNode) and reason.taints,
        "pool": spec.pool or (isinstance(reason, NoEligibleNode) and reason.dedicated),
        "driver_version": spec.driver_version,
        "node_selector": spec.node_selector,
    }
    return next((field for field, is_given in requirements.items() if is_given), "specs")


def named_elsewhere(machine: Machine, specs: Iterable[JobSpec]) -> set[JobId]:
    """Return the ids that dependencies of `specs` name and that are not live: the accounting may have these jobs."""
    gone: set[JobId] = set()
    for each in (each for spec in specs for each in spec.dependencies if each.job):
        live = machine.indices.arrays.of(each.job)
        # A whole array with live tasks needs no others: `failed_tasks` of the state knows whether one of them failed.
        if each.task is None or not live:
            gone |= {each.job} - machine.state.jobs.keys() if not live else set()
        elif task(machine, each.job, each.task) is None:
            gone |= _archived_tasks(machine.state.jobs[next(iter(live))], live)
    return gone


def _archived_tasks(known: Job, live: Iterable[JobId]) -> set[JobId]:
    """Return the ids of an array's tasks that are not live. `known`: one that is."""
    assert known.array is not None
    first = known.array.array
    return {JobId(each) for each in range(first, first + known.array.count)} - {*live}


class Spelling:
    """Corrects the spelling of card models in job specs."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """`nodes`: the cluster's nodes. They are read once, for the first job that names a model."""
        self._nodes = nodes
        self._models: Mapping[str, str] | None = None

    def corrected(self, spec: JobSpec) -> JobSpec:
        """Return the spec with card models spelled as the nodes do. A model that no node has stays as it is."""
        all_specs = (*spec.specs, *(pool.spec for pool in spec.worker_pools))
        if not any(each.card_models for each in all_specs):
            return spec
        specs = tuple([self._node_spec(each) for each in spec.specs])
        pools = tuple([replace(pool, spec=self._node_spec(pool.spec)) for pool in spec.worker_pools])
        if specs == spec.specs and pools == spec.worker_pools:
            return spec
        return replace(spec, specs=specs, worker_pools=pools)

    def _node_spec(self, spec: NodeSpec) -> NodeSpec:
        if not spec.card_models:
            return spec
        models = self._known()
        return replace(
            spec, card_models=tuple([models.get(each, models.get(gres_type(each), each)) for each in spec.card_models])
        )

    def _known(self) -> Mapping[str, str]:
        """Return the nodes' card models by their names and by Slurm's spelling of these."""
        if self._models is None:
            # The nodes' own names last: they win where one model's name is another one's spelling in Slurm.
            models = sorted({card.model for node in self._nodes for card in node.cards})
            self._models = {gres_type(model): model for model in models} | {model: model for model in models}
        return self._models
