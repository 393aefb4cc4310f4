"""Why pods do not run, out of the scheduler's messages and the containers' states, and the sentences about it."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.backends.kubernetes.mapping.waiting import unschedulable, waiting_reason
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import (
    Gated,
    NodesExcluded,
    Obstacle,
    PodsNotCreated,
    PodsStarting,
    StartStep,
    Unschedulable,
)
from cockpit.model.reasons import Reason
from cockpit.present.reasons import reason_sentence
from tests.backends.kubernetes.objects import a_job, a_pod, a_pytorch_job, a_running_pod

MESSAGE = (
    "0/21 nodes are available: 1 node(s) had untolerated taint {test.cockpit/real: }, 20 Insufficient nvidia.com/gpu. "
    "preemption: 0/21 nodes are available: 1 Preemption is not helpful for scheduling, 20 No preemption victims found "
    "for incoming pod."
)


def sentence(reason: Reason) -> str:
    return reason_sentence(reason, Millis(0), UTC)


def refused(message: str, name: str = "train-0") -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return a_pod(name, status={"conditions": conditions})


@pytest.mark.req("KU-05")
def test_the_schedulers_message_is_read_as_counts_of_nodes() -> None:
    found = unschedulable(MESSAGE, 2, 4)
    assert (found.nodes, found.pods, found.wanted) == (21, 2, 4)
    assert found.excluded == (
        NodesExcluded(20, Obstacle.RESOURCE, "nvidia.com/gpu"),
        NodesExcluded(1, Obstacle.TAINT, "test.cockpit/real"),
    )
    assert found.preemption.startswith("0/21 nodes are available: 1 Preemption is not helpful")
    assert sentence(found) == (
        "none of 21 nodes can take 2 of its 4 pods; "
        "20 have too little free nvidia.com/gpu, 1 has the taint test.cockpit/real"
    )


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("cause", "obstacle", "about"),
    [
        ("3 Insufficient cpu", Obstacle.RESOURCE, "cpu"),
        ("3 node(s) were unschedulable", Obstacle.CORDONED, ""),
        ("3 node(s) had untolerated taint {spot: true}", Obstacle.TAINT, "spot=true"),
        ("3 node(s) had taint {spot: true}, that the pod didn't tolerate", Obstacle.TAINT, "spot=true"),
        ("3 node(s) had untolerated taint {node.kubernetes.io/not-ready: }", Obstacle.NOT_READY, ""),
        ("3 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }", Obstacle.CORDONED, ""),
        ("3 node(s) didn't match Pod's node affinity/selector", Obstacle.SELECTOR, ""),
        ("3 node(s) didn't match pod anti-affinity rules", Obstacle.ANTI_AFFINITY, ""),
        ("3 node(s) didn't match pod topology spread constraints", Obstacle.SPREAD, ""),
        ("3 node(s) didn't have free ports for the requested pod ports", Obstacle.PORTS, ""),
        ("3 node(s) had volume node affinity conflict", Obstacle.VOLUME, ""),
        ("3 node(s) had no available volume zone", Obstacle.VOLUME, ""),
        ("3 node(s) didn't match PersistentVolume's node affinity", Obstacle.VOLUME, ""),
        ("3 node(s) didn't find available persistent volumes to bind", Obstacle.VOLUME, ""),
        ("3 Too many pods", Obstacle.PODS, ""),
        ("3 the moon is in the way", Obstacle.OTHER, "the moon is in the way"),
    ],
)
def test_each_cause_of_the_schedulers_plugins_is_known(cause: str, obstacle: Obstacle, about: str) -> None:
    found = unschedulable(f"0/3 nodes are available: {cause}.", 1, 1)
    assert found.excluded == (NodesExcluded(3, obstacle, about),)
    assert sentence(found).startswith("none of 3 nodes can take its pod; 3 ")


@pytest.mark.req("KU-05")
def test_the_message_of_a_newer_scheduler_is_read_too() -> None:
    found = unschedulable(
        "0/21 nodes are available: 1 node(s) had untolerated taint(s), 20 Insufficient nvidia.com/gpu. no new claims "
        "to deallocate, preemption: 0/21 nodes are available: 21 Preemption is not helpful for scheduling.",
        1,
        1,
    )
    assert found.excluded == (
        NodesExcluded(20, Obstacle.RESOURCE, "nvidia.com/gpu"),
        NodesExcluded(1, Obstacle.TAINT, ""),
    )
    assert found.preemption == "0/21 nodes are available: 21 Preemption is not helpful for scheduling"
    assert sentence(found).endswith("; 20 have too little free nvidia.com/gpu, 1 has taints that it does not tolerate")


@pytest.mark.req("KU-05")
def test_a_message_of_another_form_is_shown_as_it_is() -> None:
    found = unschedulable("no nodes available to schedule pods", 1, 1)
    assert found == Unschedulable(1, 1, None, message="no nodes available to schedule pods")
    assert sentence(found) == "no node for its pod; no nodes available to schedule pods"


@pytest.mark.req("KU-05")
def test_a_cause_without_a_count_concerns_the_pod() -> None:
    found = unschedulable("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.", 1, 1)
    assert sentence(found) == ("none of 2 nodes can take its pod; (pod has unbound immediate PersistentVolumeClaims)")


@pytest.mark.req("KU-05")
def test_what_the_scheduler_adds_about_a_missing_claim_is_left_out() -> None:
    found = unschedulable('0/7 nodes are available: persistentvolumeclaim "data" not found. not found', 1, 1)
    assert found.excluded == (NodesExcluded(0, Obstacle.OTHER, 'persistentvolumeclaim "data" not found'),)


@pytest.mark.req("KU-05")
def test_what_schedulers_try_after_the_causes_is_left_out() -> None:
    causes = "0/21 nodes are available: 1 node(s) had untolerated taint(s), 20 Insufficient nvidia.com/gpu."
    rejected = "PodGroup a/b gets rejected due to Pod c is unschedulable even after PostFilter"
    alone = unschedulable(causes, 1, 1)
    assert [each.nodes for each in alone.excluded] == [20, 1]
    of_gang = 'Gang "a/b" gets rejected due to pod is unschedulable'
    for after in (f" no new claims to deallocate, {rejected}.", f" {rejected}, 1 No victims on n1.", f" {of_gang}."):
        assert unschedulable(causes + after, 1, 1) == alone


@pytest.mark.req("KU-05")
def test_the_first_layer_that_keeps_pods_back_explains_the_job() -> None:
    assert waiting_reason(a_job(workload=a_pytorch_job())) == PodsNotCreated("PyTorchJob")
    gated = a_pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    assert waiting_reason(a_job(gated)) == Gated(("kueue.x-k8s.io/admission",))
    some = waiting_reason(a_job(a_running_pod("a"), refused(MESSAGE, "b"), workload=a_pytorch_job()))
    assert isinstance(some, Unschedulable)
    assert (some.pods, some.wanted) == (1, 2)
    assert waiting_reason(a_job(a_running_pod())) is None


def waits(code: str, message: str = "", **more: object) -> Pod:
    container = {"name": "main", "state": {"waiting": {"reason": code, "message": message}}}
    return a_pod(spec={"nodeName": "n1"}, status={"containerStatuses": [container], **more})


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("code", "step", "text"),
    [
        ("ErrImagePull", StartStep.IMAGE, "cannot pull the image (ErrImagePull)"),
        ("ImagePullBackOff", StartStep.IMAGE, "cannot pull the image (ImagePullBackOff)"),
        ("CreateContainerConfigError", StartStep.CONFIG, "lacks a Secret or ConfigMap (CreateContainerConfigError)"),
        ("ContainerCreating", StartStep.CONTAINER, "is being started"),
        ("CrashLoopBackOff", StartStep.RESTART, "failed and is restarted after a pause (CrashLoopBackOff)"),
    ],
)
def test_a_placed_pod_says_what_its_container_waits_for(code: str, step: StartStep, text: str) -> None:
    found = waiting_reason(a_job(waits(code, "not found")))
    assert found == PodsStarting(step, 1, code, "not found")
    assert sentence(found) == f"1 pod {text}; not found"


SILENT = 'failed to pull "r.example/a:1": failed to do request: Head "https://r.example/v2/": dial tcp: {}'


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("policy", "code", "message", "pulls"),
    [
        ("Never", "ErrImageNeverPull", 'Container image "a:1" is not present with pull policy of Never', "Never"),
        ("Always", "ErrImagePull", SILENT.format("lookup r.example: no such host"), "Always"),
        ("Always", "ImagePullBackOff", SILENT.format("10.0.0.1:443: i/o timeout"), "Always"),
        ("Always", "RegistryUnavailable", "", "Always"),
        # The node has no image of this name either, or none may be read: another policy would not help.
        ("Always", "ErrImagePull", "pull access denied, repository does not exist", None),
        ("IfNotPresent", "ErrImagePull", SILENT.format("lookup r.example: no such host"), None),
        ("Always", "CreateContainerConfigError", "connection refused", None),
    ],
)
@pytest.mark.parametrize("place", ["containers", "initContainers"])
def test_an_image_that_its_pull_policy_keeps_away_says_so(
    policy: str, code: str, message: str, pulls: str | None, place: str
) -> None:
    spec = {"nodeName": "n1", place: [{"name": "own", "image": "a:1", "imagePullPolicy": policy}]}
    statuses = "containerStatuses" if place == "containers" else "initContainerStatuses"
    status = {statuses: [{"name": "own", "state": {"waiting": {"reason": code, "message": message}}}]}
    found = waiting_reason(a_job(a_pod(spec=spec, status=status)))
    assert isinstance(found, PodsStarting)
    assert found.pulls == pulls
    assert ("imagePullPolicy is" in sentence(found)) == (pulls is not None)
    if pulls is not None:
        assert f"imagePullPolicy is {pulls}, so that" in sentence(found)


@pytest.mark.req("KU-05")
def test_a_running_init_container_is_what_the_pod_waits_for_but_a_sidecar_is_not() -> None:
    running = {"state": {"running": {}}}
    init = {"initContainerStatuses": [{"name": "fetch", **running}]}
    assert waiting_reason(a_job(waits("PodInitializing", **init))) == PodsStarting(StartStep.INIT, 1, "fetch", "")
    spec = {"nodeName": "n1", "initContainers": [{"name": "fetch", "restartPolicy": "Always"}]}
    status = {**init, "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]}
    found = waiting_reason(a_job(a_pod(spec=spec, status=status)))
    assert isinstance(found, PodsStarting)
    assert found.step is StartStep.IMAGE


@pytest.mark.req("KU-05", "TR-05")
def test_text_of_the_cluster_is_shown_and_not_interpreted() -> None:
    assert "\x1b" not in sentence(unschedulable("\x1b]52;c;aGk=\x07", 1, 1))
    assert "\x1b" not in sentence(PodsStarting(StartStep.IMAGE, 1, "Err\x1b[31m", "x\x1b[0m"))
    assert "\x1b" not in sentence(Gated(("\x1b[2J",)))
