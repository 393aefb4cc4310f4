"""A job as Kubernetes has it: a workload with its pods, or pods that belong to none."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property

from cockpit.backends.kubernetes.hold_wrapper import added_seconds, unwrapped
from cockpit.backends.kubernetes.mapping.fleet_job import FleetJob
from cockpit.backends.kubernetes.mapping.fleet_status import fleet_end, fleet_ended_at, fleet_started_at, fleet_state
from cockpit.backends.kubernetes.mapping.kube_queue import QueueTurn
from cockpit.backends.kubernetes.mapping.membership import BatchScheduling
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts, requested
from cockpit.backends.kubernetes.objects.kube_queue import SUSPEND
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
from cockpit.backends.kubernetes.objects.meta import Condition, ObjectMeta, condition, millis
from cockpit.backends.kubernetes.objects.pod import ContainerStatus, Pod, PodSpec, PodTemplate, StateTerminated
from cockpit.backends.kubernetes.objects.workload import (
    NO_STATUS,
    SUSPENDED_PHASE,
    WORKER,
    ReplicaGroup,
    Workload,
    groups_of,
    starts_others,
)
from cockpit.formats.foreign.draft import runnable
from cockpit.formats.foreign.kubeargs import expand_references
from cockpit.model.attempt import EndCause
from cockpit.model.ids import Millis
from cockpit.model.job import ENDED, JobState
from cockpit.model.resilience import ScalePhase, Scaling

_INDEX_LABELS = (
    "training.kubeflow.org/replica-index",
    "batch.kubernetes.io/job-completion-index",
    "replica-index",
    "pytorch-replica-index",
    "volcano.sh/task-index",
)
_ROLE_LABELS = (
    "training.kubeflow.org/replica-type",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "replica-type",
    "training-job-role",
    "mpi_role_type",
    "volcano.sh/task-spec",
)
_FIRST_ROLES = ("master", "chief", "launcher", "")
"""Roles whose first pod is rank 0."""
SUBMITTED_BY = "cockpit/submitted-by"
"""Annotation with the user who submitted the job with cockpit; Kubernetes itself does not store who made an object."""
SUSPENDED_BY = "cockpit/suspended-by"
"""Annotation with the user who suspended a TrainingJob with cockpit; without it a suspended one lacks workers."""
JOB_SUSPENDED = "job-supervisor.kube-ai.io/job-suspended"
"""Annotation with which the operator deletes the pods of a TrainingJob (`true`)."""
MAX_WAIT = "job-supervisor.kube-ai.io/max-wait-time"
"""Annotation with the longest time that a TrainingJob waits for its least number of workers, in seconds."""
JOB_VERDICT = "job-supervisor.kube-ai.io/job-status"
"""Annotation of a TrainingJob with the verdict of the job supervisor: `timeout` for one that has waited too long."""
KUEUE_CLASS = "kueue.x-k8s.io/priority-class"
"""Label of a job with its WorkloadPriorityClass, by which Kueue orders its queue."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of a job with the queue of Kueue in its namespace that starts it."""
_USERS = (SUBMITTED_BY, "arena.kubeflow.org/username", "arena.kubeflow.org/console-user", "user")
_QUEUES = (
    KUEUE_QUEUE,
    "quota.scheduling.koordinator.sh/name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "koordinator.sh/queue-name",
)
"""Labels and annotations that name a job's queue, by scheduler."""


class KubeJob:
    """One job: its workload, if it has one, and its pods in order of their ranks."""

    def __init__(
        self,
        kind: str,
        meta: ObjectMeta,
        workload: Workload | None,
        pods: Iterable[Pod],
        queued: KueueWorkload | None = None,
        turn: QueueTurn | None = None,
    ) -> None:
        """`kind`: the kind of the object that `meta` belongs to, such as `PyTorchJob` or `Pod`. `queued`: the job as
        its queue manager sees it; None: it has none. `turn`: its turn in a queue of KubeQueue; None: it is in none."""
        self.kind, self.meta, self.workload, self.queued, self.turn = kind, meta, workload, queued, turn
        self.pods = sorted(pods, key=_rank_key)
        self.batch = BatchScheduling()
        """What is kept of it for Volcano, Koordinator and scheduler-plugins."""
        self.scaling: Scaling | None = None
        """The change of its number of workers that is not done, or that was tried last and failed; None: none."""
        self.fleet: FleetJob | None = None
        """What the host of a fleet keeps of it; None: the cluster is no host."""

    @cached_property
    def groups(self) -> tuple[ReplicaGroup, ...]:
        """The roles with their templates; of a bare pod or a job without templates those of its pods."""
        if self.workload is None:
            return tuple(_groups_of_pods(self.pods))
        # The runtime of a TrainJob says what the job itself leaves open; its pods have both.
        if self.workload.spec.runtime_ref is not None and self.pods:
            return tuple(_groups_of_pods(self.pods))
        return groups_of(self.workload) or tuple(_groups_of_pods(self.pods))

    @cached_property
    def sizes(self) -> tuple[tuple[int, PodAmounts], ...]:
        """For each role, the number of its pods and the request of one."""
        return tuple((each.count, requested(each.template.spec)) for each in self.groups)

    @property
    def wanted(self) -> int:
        """The number of pods that run together when the job has all it wants."""
        return sum(count for count, _ in self.sizes)

    @property
    def pod_spec(self) -> PodSpec:
        """The pod spec of the first role."""
        return self.groups[0].template.spec if self.groups else PodSpec()

    @property
    def is_suspended(self) -> bool:
        # Operators that do not know the annotation create the pods all the same.
        return self.workload is not None and (self.workload.is_suspended or (self.is_annotated and not self.pods))

    @property
    def is_annotated(self) -> bool:
        """Whether an annotation suspends it: KubeQueue's, or that of a TrainingJob."""
        return "true" in {self.meta.annotation(SUSPEND), self.meta.annotation(JOB_SUSPENDED)}

    @property
    def waits_in_queue(self) -> bool:
        """Whether a queue of KubeQueue keeps it back."""
        return self.turn is not None and self.turn.waits and not self.placed

    @property
    def suspended_by(self) -> str:
        """What keeps a suspended job from running, where it is not known who did that."""
        if self.workload is not None and self.workload.now.volcano_state is not None:
            return "AbortJob of Volcano"
        if by := self.meta.annotation(SUSPENDED_BY):
            return by
        return "its suspend annotation" if self.is_annotated else "its suspend field"

    @property
    def is_held(self) -> bool:
        """Whether a user keeps it from starting."""
        return self.turn.is_held if self.turn is not None and self.waits_in_queue else self.is_suspended

    @cached_property
    def placed(self) -> tuple[Pod, ...]:
        """The pods that occupy resources of nodes."""
        return tuple(pod for pod in self.pods if pod.is_placed)

    @cached_property
    def waiting(self) -> tuple[Pod, ...]:
        """The pods without a node."""
        return tuple(pod for pod in self.pods if not pod.spec.node_name and not pod.has_ended)

    @cached_property
    def state(self) -> JobState:
        """The state, as cockpit's jobs have it.

        1. A workload's own verdict about its end counts; a bare pod's phase does.
        2. A suspended workload has no pods: it is queued.
        3. On the host of a fleet it is what the members report.
        4. It runs when its controller says so, or when one of its pods runs and none is missing.
        5. With pods on nodes it is starting, else queued.
        """
        if (ended := self._ended_state()) is not None:
            return ended
        if self.is_suspended and not self.placed:
            return JobState.QUEUED if self.waits_until is None else JobState.SUSPENDED
        if self.fleet is not None and not self.pods:
            return fleet_state(self.workload.now if self.workload is not None else NO_STATUS, self.fleet)
        running = any(pod.now.phase == "Running" for pod in self.placed)
        if running and (self._says_running() or self.is_divisible or not (self.waiting or self._lacks_launcher)):
            return JobState.RUNNING
        return JobState.STARTING if self.placed else JobState.QUEUED

    @property
    def is_live(self) -> bool:
        """Whether it waits or runs."""
        return self.state not in ENDED

    @property
    def is_divisible(self) -> bool:
        """Whether its pods work independently of each other, as those of a batch/v1 Job."""
        return self.kind == "Job" or self.workload is None

    @property
    def _lacks_launcher(self) -> bool:
        """Whether it is a TrainingJob whose launcher is not made yet, which comes when all its workers run."""
        is_training = self.workload is not None and self.workload.spec.et_replica_specs
        return bool(is_training) and not any(starts_others(role_of(pod)) for pod in self.placed)

    def _says_running(self) -> bool:
        state = self.workload.now.volcano_state if self.workload is not None else None
        if state is not None:
            return state.phase == "Running"
        found = condition(self.workload.now.conditions, "Running") if self.workload is not None else None
        return found is not None and found.is_true

    def _ended_state(self) -> JobState | None:
        if self.workload is None:
            return _pods_ended(self.pods)
        if self._has_waited_too_long:
            return JobState.ERROR
        end = self._end_condition
        if end is None or self._is_restarting(end):
            return fleet_end(self.fleet) if end is None and self.fleet is not None and not self.pods else None
        if end.type in _SUCCESS:
            return JobState.SUCCEEDED
        if _is_deadline(end) or (self.workload.spec.tasks and _pods_ended(self.pods) is JobState.EXPIRED):
            # A job of Volcano has no time limit of its own: its pods have.
            return JobState.EXPIRED
        return JobState.ERROR

    def _is_restarting(self, end: Condition) -> bool:
        """Whether its operator restarts it with its next look, and forgets that it has failed."""
        restarts = self.workload.restarts if self.workload is not None else None
        return end.type == "Failed" and restarts is not None and restarts[0] < restarts[1]

    @cached_property
    def _end_condition(self) -> Condition | None:
        if self.workload is None:
            return None
        if (state := self.workload.now.volcano_state) is not None:
            return state.end
        for each in self.workload.now.conditions or ():
            if each.type in {*_SUCCESS, "Failed"} and each.is_true:
                return each
        if self.workload.now.launcher_status in {*_SUCCESS, "Failed"}:
            return Condition(self.workload.now.launcher_status, "True")
        return None

    @property
    def end_message(self) -> str:
        """The controller's sentence about the end; empty: it says nothing."""
        if self._end_condition is not None:
            return self._end_condition.message
        return next((pod.now.message for pod in self.pods if pod.now.message), "")

    @cached_property
    def started_at(self) -> Millis | None:
        """When its first command started; None: none has."""
        starts = [at for pod in self.pods for each in pod.now.container_statuses or () if (at := _started(each))]
        if not starts and self.fleet is not None and (there := fleet_started_at(self.fleet)) is not None:
            return there
        if not starts and self.workload is not None and self._end_condition is not None:
            # Its controller has deleted the pods of a job that has ended (cleanPodPolicy).
            return millis(self.workload.now.start_time)
        return millis(min(starts, default=None))

    @cached_property
    def ended_at(self) -> Millis | None:
        if self._ended_state() is None:
            return None
        if self.workload is not None and self.workload.now.completion_time is not None:
            return millis(self.workload.now.completion_time)
        if self._end_condition is not None and self._end_condition.last_transition_time is not None:
            return millis(self._end_condition.last_transition_time)
        if self.fleet is not None and (there := fleet_ended_at(self.fleet)) is not None:
            return there
        ends = [each.finished_at for _, each in self.ends if each.finished_at is not None]
        # A pod that was evicted before its containers ran has no end of its own.
        return millis(max(ends, default=None)) or self.started_at or self.meta.created_at

    @cached_property
    def ends(self) -> tuple[tuple[int, StateTerminated], ...]:
        """The ends of the ranks' main containers, each with its rank."""
        found = ((rank, _end_of(pod)) for rank, pod in enumerate(self.pods))
        return tuple((rank, end) for rank, end in found if end is not None)

    @cached_property
    def first_failure(self) -> tuple[int, StateTerminated] | None:
        """The rank and the end of the replica that failed first; None: none has."""
        failed = [(rank, end) for rank, end in self.ends if end.exit_code]
        return min(failed, key=lambda each: (_stamp(each[1].finished_at), each[0]), default=None)

    @property
    def is_oom(self) -> bool:
        return self.first_failure is not None and self.first_failure[1].reason == "OOMKilled"

    @property
    def exit_code(self) -> int | None:
        """The exit code of the replica that failed first, else of rank 0; None: none has ended."""
        if self.first_failure is not None:
            return self.first_failure[1].exit_code
        return self.ends[0][1].exit_code if self.ends else None

    @property
    def end_cause(self) -> EndCause | None:
        if self._ended_state() is None:
            return None
        if self._ended_state() is JobState.EXPIRED:
            return EndCause.TIME_LIMIT
        if self._has_waited_too_long:
            return EndCause.BELOW_MIN
        reasons = {pod.now.reason for pod in self.pods}
        if "Preempting" in reasons or "PreemptionByScheduler" in reasons:
            return EndCause.PREEMPTED
        return EndCause.LOST if reasons & {"NodeLost", "Evicted"} and not self.ends else EndCause.EXIT

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its pods by rank, each once; of an ended job where its pods were."""
        pods = self.placed or (tuple(self.pods) if self.state not in _WAITING else ())
        return tuple(dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name))

    @property
    def user(self) -> str:
        return next(filter(None, (self.named(key) for key in _USERS)), "")

    @property
    def queue(self) -> str:
        """The queue that the job names; empty: none."""
        if self.turn is not None:
            return self.turn.queue
        if self.queued is not None and self.queued.spec.queue_name:
            return self.queued.spec.queue_name
        if self.workload is not None and self.workload.spec.queue:
            return self.workload.spec.queue
        return next(filter(None, (self.named(key) for key in _QUEUES)), "")

    @property
    def priority_class(self) -> str:
        own = self.workload.spec.priority_class_name if self.workload is not None else ""
        return (
            own
            or self.pod_spec.priority_class_name
            or next((pod.spec.priority_class_name for pod in self.pods if pod.spec.priority_class_name), "")
        )

    @property
    def urgency_class(self) -> str:
        """The class that orders it among jobs that wait: Kueue's where that manages it, else that of its pods."""
        return (self.meta.label(KUEUE_CLASS) if self.queued is not None else "") or self.priority_class

    @property
    def priority(self) -> int | None:
        """The priority by which it queues; else the one that the API server has given its pods; None: it has none."""
        if self.queued is not None and self.queued.spec.priority is not None:
            return self.queued.spec.priority
        of_turn = self.turn.priority if self.turn is not None else None
        return next((pod.spec.priority for pod in self.pods if pod.spec.priority is not None), of_turn)

    @property
    def _command_spec(self) -> PodSpec:
        """The pod spec of the role that runs the job's command: of the launcher, or else of the first."""
        return next((each.template.spec for each in self.groups if starts_others(each.role)), self.pod_spec)

    @property
    def command(self) -> str:
        """The command of the container that starts the others, or else of the first; empty: the image's own."""
        first = next(iter(self._command_spec.containers), None)
        words = (*(first.command or ()), *(first.args or ())) if first is not None else ()
        # Kubernetes itself would take `$(…)` for a variable, and `$$` for a dollar sign.
        written = [expand_references(each, {}) for each in unwrapped(words)]
        if self.workload is not None and self.workload.spec.et_replica_specs and tuple(written[:-1]) == _SHELL:
            # The launcher's shell belongs to this kind of job, not to the command.
            return runnable(written[-1])
        return shlex.join(written)

    @property
    def image(self) -> str:
        first = next(iter(self.pod_spec.containers), None)
        return first.image if first is not None else ""

    @property
    def deadline_seconds(self) -> int | None:
        """How long its command may run; None: as long as it needs."""
        own = self.workload.deadline_seconds if self.workload is not None else None
        deadline = own if own is not None else self._command_spec.active_deadline_seconds
        # Behind the time limit the object lives for as long as a failed container may be held.
        return None if deadline is None else max(1, deadline - added_seconds(self.meta))

    @property
    def workers(self) -> tuple[int, int, int] | None:
        """The least, wanted and most number of workers of an elastic job; None: it is not elastic."""
        group = next((each for each in self.groups if each.most is not None), None)
        if group is None or group.most is None:
            return None
        # What the operator is about to have counts before what the job began with.
        # One that is resumed begins with the number of its spec.
        now = self.workload.now if self.workload is not None else NO_STATUS
        target = now.target_workers if now.phase != SUSPENDED_PHASE else None
        wanted = len(target) if target else group.count
        # What it is being changed to counts: its status has that number only when the change is done.
        if self.scaling is not None and self.scaling.phase is not ScalePhase.FAILED:
            wanted = max(0, wanted + self.scaling.change)
        return group.least, wanted, group.most

    @property
    def present_workers(self) -> int:
        """The workers of an elastic job that have nodes."""
        return sum(role_of(pod).lower() == WORKER for pod in self.placed)

    @property
    def is_short_of_workers(self) -> bool:
        """Whether it has released its pods and waits for its least number of workers."""
        # The operator says so of a job that a user has suspended, too.
        short = self.workload is not None and self.workload.is_short_of_workers
        return short and not self.meta.annotation(SUSPENDED_BY)

    @property
    def retries(self) -> tuple[int, int] | None:
        """How often its operator has restarted it, and how often it may; None: never yet, or unknown."""
        restarts = self.workload.restarts if self.workload is not None else None
        return restarts if restarts is not None and restarts[0] else None

    @property
    def is_training(self) -> bool:
        """Whether it is a TrainingJob whose launcher has been started, so that its workers can be changed."""
        if self.workload is None:
            return False
        # The phase says so a moment after the launcher is there; a change that is made before waits for it.
        has_launcher = bool(self.placed) and not self._lacks_launcher
        return self.workload.now.phase in {"Running", "Scaling"} or has_launcher

    @property
    def waits_until(self) -> Millis | None:
        """Until when an elastic job waits for its least number of workers; None: it does not, or without an end."""
        seconds = self.max_wait_seconds
        if self.workload is None or not self.is_short_of_workers or seconds is None:
            return None
        since = condition(self.workload.now.conditions, SUSPENDED_PHASE)
        at = millis(since.last_transition_time) if since is not None else None
        return None if at is None else Millis(at + 1000 * seconds)

    @property
    def max_wait_seconds(self) -> int | None:
        """How long it waits at most for its least number of workers; None: it does not say."""
        seconds = self.meta.annotation(MAX_WAIT)
        return int(seconds) if _is_number(seconds) else None

    @property
    def is_spot(self) -> bool:
        """Whether its workers may run on spot instances, by the job supervisor's annotation."""
        return self.meta.annotation(_SPOT).lower() == "true"

    @property
    def _has_waited_too_long(self) -> bool:
        """Whether the job supervisor has given up waiting for the least number of workers."""
        ended = self.workload is not None and self.workload.now.phase in {SUSPENDED_PHASE, "Failed"}
        return ended and self.meta.annotation(JOB_VERDICT) == "timeout"

    def named(self, key: str) -> str:
        """Return a label or annotation of the job or, where it has none, of its pods."""
        template = self.groups[0].template.metadata if self.groups else None
        for labels in (
            self.meta.labels,
            self.meta.annotations,
            template.labels if template is not None else None,
            template.annotations if template is not None else None,
        ):
            if labels and (value := labels.get(key)):
                return value
        return ""


_SPOT = "job-supervisor.kube-ai.io/spot-instance"
_SHELL = ("sh", "-c")
_SUCCESS = frozenset({"Succeeded", "Complete", "Completed"})
_WAITING = frozenset({JobState.QUEUED})


def _groups_of_pods(pods: list[Pod]) -> Iterator[ReplicaGroup]:
    """Yield pods that ask for the same as a role, in order of the first of them."""
    alike: dict[PodAmounts, list[Pod]] = {}
    for pod in pods:
        # What has ended needs nothing more, unless all have.
        if not pod.has_ended or all(each.has_ended for each in pods):
            alike.setdefault(requested(pod.spec), []).append(pod)
    for each in alike.values():
        yield ReplicaGroup("", len(each), PodTemplate(spec=each[0].spec), len(each))


def _pods_ended(pods: list[Pod]) -> JobState | None:
    if not pods or not all(pod.has_ended for pod in pods):
        return None
    failed = [pod for pod in pods if pod.now.phase == "Failed"]
    if not failed:
        return JobState.SUCCEEDED
    return JobState.EXPIRED if any(pod.now.reason == "DeadlineExceeded" for pod in failed) else JobState.ERROR


def _is_deadline(end: Condition) -> bool:
    # The training operator has no reason of its own for it, only a sentence.
    return end.reason == "DeadlineExceeded" or "longer than specified deadline" in end.message


def role_of(pod: Pod) -> str:
    """Return the role that the job's controller gave the pod; empty: none."""
    return next(filter(None, map(pod.metadata.label, _ROLE_LABELS)), "")


def index_of(pod: Pod) -> str:
    """Return the index that the job's controller gave the pod among those of its role; empty: none."""
    return next(filter(None, map(pod.metadata.label, _INDEX_LABELS)), "") or pod.metadata.annotation(_INDEX_LABELS[1])


def _rank_key(pod: Pod) -> tuple[bool, int, datetime | str, str]:
    role = role_of(pod)
    index = index_of(pod)
    place = int(index) if _is_number(index) else 0
    return role.lower() not in _FIRST_ROLES, place, role, pod.metadata.name


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _started(status: ContainerStatus) -> datetime | None:
    state = status.state
    if state is None:
        return None
    if state.running is not None:
        return state.running.started_at
    if state.terminated is not None:
        return state.terminated.started_at
    # It waits to be started again: its last run says when it first ran, at the earliest.
    last = status.last_state.terminated if status.last_state is not None else None
    return last.started_at if last is not None else None


def _end_of(pod: Pod) -> StateTerminated | None:
    """Return the end of the pod's main container, the first of them that failed if one did."""
    ends = [
        each.state.terminated
        for each in pod.now.container_statuses or ()
        if each.state is not None and each.state.terminated is not None
    ]
    return next((end for end in ends if end.exit_code), ends[0] if ends else None)


def _stamp(at: datetime | None) -> float:
    return at.timestamp() if at is not None else float("inf")
