"""Why a job's pods do not run, out of what the scheduler, the controllers and the kubelets report of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.objects.meta import condition
from cockpit.backends.kubernetes.objects.pod import ContainerStatus, Pod, StateWaiting
from cockpit.model.pod_reasons import (
    Gated,
    NodesExcluded,
    Obstacle,
    PodReason,
    PodsNotCreated,
    PodsStarting,
    PullPolicy,
    StartStep,
    Unschedulable,
)

_MESSAGE = re.compile(r"(\d+)/(\d+) nodes are (?:un)?available:?\s*(.*?)(?:[.,] preemption: (.*?))?\.?\s*", re.DOTALL)
_ORIGIN = re.compile(r"^.*?\bOrigin reason is \S+: ", re.DOTALL)
_AFTERWARDS = re.compile(
    r"[.,]?\s*(?:(?:no new|still not able to \w+ the) claims? to deallocate\b"
    r'|(?:PodGroup \S+|Gang(?:Group)? "\S+") gets rejected due to (?:Pod|pod|member) ).*$|\. not found$',
    re.DOTALL,
)
"""What plugins add to the causes: that of dynamic resource allocation for any pod since Kubernetes 1.34, and those of
scheduler-plugins and Koordinator, which reject the pod's whole group and then look for victims on each node."""
_CAUSE = re.compile(r"(\d+) (.+)", re.DOTALL)
_TAINT = re.compile(r"node\(s\) had (?:untolerated )?taint(?:\(s\))?(?: \{([^}]*)\}.*)?")
_CAUSES: tuple[tuple[re.Pattern[str], Obstacle], ...] = tuple(
    (re.compile(pattern), obstacle)
    for pattern, obstacle in (
        (r"Insufficient (\S+)", Obstacle.RESOURCE),
        (r"Too many pods", Obstacle.PODS),
        (r"node\(s\) (?:were|was) unschedulable", Obstacle.CORDONED),
        (r"node\(s\) (?:were|was) not ready", Obstacle.NOT_READY),
        (r"node\(s\) didn't match Pod's node affinity(?:/selector)?", Obstacle.SELECTOR),
        (r"node\(s\) didn't match node selector", Obstacle.SELECTOR),
        (r"node\(s\) didn't (?:match|satisfy) (?:existing )?pods? (?:anti-)?affinity.*", Obstacle.ANTI_AFFINITY),
        (r"node\(s\) didn't match pod topology spread constraints.*", Obstacle.SPREAD),
        (r"node\(s\) didn't have free ports.*", Obstacle.PORTS),
        (r"node\(s\) (?:had|had no available) volume.*", Obstacle.VOLUME),
        (
            r"node\(s\) didn't (?:match PersistentVolume's node affinity|find available persistent volumes.*)",
            Obstacle.VOLUME,
        ),
        (
            r"node\(s\) (?:exceed max volume count|did not have enough free storage|unavailable due to .*)",
            Obstacle.VOLUME,
        ),
    )
)
"""Beginnings of causes, as kube-scheduler's plugins write them."""
_NO_REGISTRY = re.compile(
    r"no such host|connection refused|connection reset|i/o timeout|TLS handshake timeout|network is unreachable"
    r"|no route to host|deadline exceeded|server misbehaving|Client\.Timeout|\bEOF$",
    re.IGNORECASE,
)
"""What a kubelet reports of a registry that does not answer."""
_LONGEST = 400


def waiting_reason(job: KubeJob) -> PodReason | None:
    """Return why the job does not run with all its pods; None: it does, or nothing is known yet.

    The first of these layers that keeps pods back explains the job: the controller, scheduling gates, the scheduler,
    then what placed pods wait for.
    """
    if not job.pods:
        return PodsNotCreated(job.kind, _controller_words(job))
    gates = tuple(dict.fromkeys(gate.name for pod in job.waiting for gate in pod.spec.scheduling_gates or ()))
    if gates:
        return Gated(gates)
    refused = [pod for pod in job.waiting if pod.unscheduled is not None and pod.unscheduled.reason == "Unschedulable"]
    if refused:
        assert refused[0].unscheduled is not None
        return unschedulable(refused[0].unscheduled.message, len(refused), max(job.wanted, len(job.pods)))
    return starting(job.placed)


@lru_cache(maxsize=4096)
def unschedulable(message: str, pods: int, wanted: int) -> Unschedulable:
    """Return the scheduler's message as counts of nodes. Equal arguments give the same object: thousands of jobs wait
    for few causes.

    Source: kube-scheduler, framework/types.go, FitError: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were
    unschedulable. preemption: 0/3 nodes are available: …`.
    """
    # Volcano's sentence about a group ends with that of the scheduler about one of its pods.
    match = _MESSAGE.fullmatch(_ORIGIN.sub("", message))
    if match is None:
        return Unschedulable(pods, wanted, None, message=message[:_LONGEST])
    excluded: Counter[tuple[Obstacle, str]] = Counter()
    for part in _parts(causes_alone(match[3])):
        cause = _CAUSE.fullmatch(part)
        count, words = (int(cause[1]), cause[2]) if cause is not None else (0, part)
        excluded[_cause(words)] += count
    found = tuple(
        NodesExcluded(count, obstacle, about) for (obstacle, about), count in sorted(excluded.items(), key=_most_nodes)
    )
    return Unschedulable(pods, wanted, int(match[2]), found, preemption=(match[4] or "")[:_LONGEST])


def causes_alone(words: str) -> str:
    """Return the scheduler's words without what its plugins tried after these causes."""
    return _AFTERWARDS.sub("", words)


def _most_nodes(each: tuple[tuple[Obstacle, str], int]) -> tuple[int, str]:
    return -each[1], each[0][1]


def _parts(causes: str) -> list[str]:
    """Split the causes at commas, but not at those inside of a taint's braces or of a sentence about it."""
    return [part.strip(" .") for part in re.split(r",(?!\s*(?:[^{]*\}|that the pod))\s*", causes) if part.strip(" .")]


def _cause(words: str) -> tuple[Obstacle, str]:
    if (taint := _TAINT.fullmatch(words)) is not None:
        key, _, value = (taint[1] or "").partition(": ")
        text = f"{key}={value}" if value.strip() else key.rstrip(": ")
        if key.startswith("node.kubernetes.io/unschedulable"):
            return Obstacle.CORDONED, ""
        if key.startswith(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")):
            return Obstacle.NOT_READY, ""
        return Obstacle.TAINT, text
    for pattern, obstacle in _CAUSES:
        if (match := pattern.fullmatch(words)) is not None:
            return obstacle, match[1] if pattern.groups else ""
    return Obstacle.OTHER, words[:_LONGEST]


def _controller_words(job: KubeJob) -> str:
    """Return what the controller says about a job without pods, such as that a quota refuses them."""
    conditions = job.workload.now.conditions if job.workload is not None else None
    said = [
        each.message for each in conditions or () if each.message and each.type in {"Failed", "Created", "Suspended"}
    ]
    return said[-1][:_LONGEST].rstrip(".") if said and job.is_suspended else ""


class _Step(NamedTuple):
    """What a placed pod waits for."""

    step: StartStep
    code: str
    """Kubernetes' word."""
    message: str = ""
    pulls: PullPolicy | None = None


def starting(placed: Iterable[Pod]) -> PodsStarting | None:
    """Return the step that most of the placed pods wait for; None: their commands run."""
    steps = [step for pod in placed if (step := _step(pod)) is not None]
    if not steps:
        return None
    (kind, code), count = Counter((each.step, each.code) for each in steps).most_common(1)[0]
    same = [each for each in steps if (each.step, each.code) == (kind, code)]
    message = next((each.message for each in same if each.message), "")
    pulls = next((each.pulls for each in same if each.pulls is not None), None)
    return PodsStarting(kind, count, code, message[:_LONGEST], pulls)


def _step(pod: Pod) -> _Step | None:
    """Return what a placed pod waits for; None: its command runs."""
    policies = {each.name: each.image_pull_policy for each in (*(pod.spec.init_containers or ()), *pod.spec.containers)}
    for status in pod.now.init_container_statuses or ():
        if status.state is not None and status.state.running is not None and not _is_sidecar(pod, status):
            return _Step(StartStep.INIT, status.name)
        waits = _waits(status, policies.get(status.name, ""))
        if waits is not None and waits.code != "PodInitializing":
            return waits
    for status in pod.now.container_statuses or ():
        if (waits := _waits(status, policies.get(status.name, ""))) is not None:
            return waits
    if pod.now.phase == "Pending" and not pod.now.container_statuses:
        ready = condition(pod.now.conditions, "PodReadyToStartContainers")
        return _Step(StartStep.CONTAINER, "ContainerCreating", ready.message if ready is not None else "")
    return None


def _is_sidecar(pod: Pod, status: ContainerStatus) -> bool:
    return any(each.name == status.name and each.restart_policy == "Always" for each in pod.spec.init_containers or ())


def _waits(status: ContainerStatus, policy: str) -> _Step | None:
    waiting = status.state.waiting if status.state is not None else None
    if waiting is None:
        return None
    step = _step_of(waiting.reason)
    pulls = _policy_to_blame(waiting, policy) if step is StartStep.IMAGE else None
    return _Step(step, waiting.reason or "Waiting", waiting.message, pulls)


def _policy_to_blame(waiting: StateWaiting, policy: str) -> PullPolicy | None:
    """Return the pull policy, if another one could start the container where its node has the image.

    Source: kubelet, pkg/kubelet/images: ErrImageNeverPull, and the words of containerd and Go about the network.
    """
    if policy == PullPolicy.NEVER or waiting.reason == "ErrImageNeverPull":
        return PullPolicy.NEVER
    is_silent = waiting.reason == "RegistryUnavailable" or _NO_REGISTRY.search(waiting.message) is not None
    return PullPolicy.ALWAYS if policy == PullPolicy.ALWAYS and is_silent else None


def _step_of(code: str) -> StartStep:
    if "Image" in code or code == "RegistryUnavailable":
        return StartStep.IMAGE
    if "Config" in code:
        return StartStep.CONFIG
    if code == "CrashLoopBackOff":
        return StartStep.RESTART
    return StartStep.CONTAINER
