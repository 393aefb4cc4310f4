"""A real cluster of a few nodes that is set for one situation after the other."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.real.kubernetes.answers.manifests import count_of
from tests.real.kubernetes.answers.situations import CLASSES, NODES, Manifest, NodeState, Situation, node_name
from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from tests.real.kubernetes.cluster import RealKubernetes

NAMESPACE = "answers"
PODS, JOBS = f"/api/v1/namespaces/{NAMESPACE}/pods", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CLAIMS, VOLUMES = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", "/api/v1/persistentvolumes"
CANARY = "canary"
BACKOFF_SECONDS = 1
"""The back-off of the cluster's scheduler, within which it does not try again what fitted nowhere."""


class Stage:
    """The nodes and pods of the present situation."""

    def __init__(self, cluster: RealKubernetes) -> None:
        self.cluster, self._api = cluster, cluster.admin
        self._canaries = count(1)
        self._api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for name, value in {**CLASSES, "test-canary": -1000}.items():
            self._api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        taints = [{"key": "test.cockpit/canary", "effect": "NoSchedule"}]
        self._api.create("/api/v1/nodes", _new_node(CANARY, {"cpu": "1", "memory": "1Gi", "pods": "10"}, taints))
        for number in range(NODES):
            self._api.create("/api/v1/nodes", _new_node(node_name(number), {"pods": "30"}, []))
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_until("the service account is missing", lambda: self._api.exists(account))
        names = [CANARY, *map(node_name, range(NODES))]
        wait_until("the nodes are not ready", lambda: all(map(self._is_usable, names)))

    def set(self, made: Situation) -> None:
        """Set the nodes and pods of a situation; returns when the scheduler has tried all that waits."""
        for number, state in enumerate(made.nodes):
            self._set_node(node_name(number), state)
        # A controller takes away the taint of a cordon that has ended.
        open_nodes = [node_name(number) for number, state in enumerate(made.nodes) if not state.cordoned]
        wait_until("a node keeps an old taint", lambda: all(map(self._is_usable, open_nodes)))
        self.pass_once()
        for node, pod, deadline in made.running:
            spec = {**pod["spec"], "nodeName": node_name(node)}
            if deadline is not None:
                spec["activeDeadlineSeconds"] = 3600 * deadline
            self._api.create(PODS, {**pod, "spec": spec})
        wait_until("not all pods run", lambda: all(each["status"]["phase"] == "Running" for each in self.pods()))
        for name, zone in made.claims:
            self._claim(name, zone)
        for each in made.waiting:
            # The server stores whole seconds; the older of two jobs is known only where they differ.
            if len(made.waiting) > 1:
                time.sleep(1.05)
            self.submit(each)

    def clear(self) -> None:
        """Remove all pods and jobs."""
        self._api.delete(JOBS, propagationPolicy="Background")
        self._api.delete(PODS, gracePeriodSeconds=0)
        wait_until("pods are left", lambda: not self.pods())
        # Nobody but the controllers holds these back, so that nothing is waited for.
        for path in (CLAIMS, VOLUMES):
            for each in self._api.get(path)["items"]:
                self._api.merge(f"{path}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
            self._api.delete(path)

    def submit(self, manifest: Manifest) -> None:
        """Create a job or pod; returns when the scheduler has tried all its pods."""
        self._api.create(JOBS if manifest["kind"] == "Job" else PODS, manifest)
        name, wanted = manifest["metadata"]["name"], count_of(manifest)

        def is_tried() -> bool:
            own = self.pods_of(name)
            return len(own) == wanted and all(map(_has_verdict, own))

        wait_until(f"{name} was not tried", is_tried)

    def withdraw(self, manifest: Manifest) -> None:
        """Delete a job or pod with its pods."""
        name = manifest["metadata"]["name"]
        kind = JOBS if manifest["kind"] == "Job" else PODS
        self._api.delete(f"{kind}/{name}", propagationPolicy="Background", gracePeriodSeconds=0)
        wait_until(f"{name} is left", lambda: not self.pods_of(name) and not self._api.exists(f"{kind}/{name}"))

    def end(self, name: str, *, patient: bool) -> None:
        """End a running pod; returns when the scheduler has tried again what waits.

        `patient`: wait until no back-off is left: else the pod whose back-off ends first comes first, whatever its age.
        """
        if patient:
            time.sleep(BACKOFF_SECONDS * 1.1)
        self._api.delete(f"{PODS}/{name}", gracePeriodSeconds=0)
        wait_until(f"{name} is left", lambda: not self._api.exists(f"{PODS}/{name}"))
        # Pods whose back-off has not ended come after the first one.
        self.pass_once()
        self.pass_once()

    def pass_once(self) -> None:
        """Let the scheduler place a pod of the lowest priority, before which it tries all others."""
        name = f"{CANARY}-{next(self._canaries)}"
        place = {
            "containers": [{"name": "main", "image": "none"}],
            "nodeSelector": {"kubernetes.io/hostname": CANARY},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "test-canary",
            "terminationGracePeriodSeconds": 0,
        }
        self._api.create(PODS, {"metadata": {"name": name}, "spec": place})
        wait_until(f"{name} has no node", lambda: bool(self._api.get(f"{PODS}/{name}")["spec"].get("nodeName")))
        self._api.delete(f"{PODS}/{name}", gracePeriodSeconds=0)

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of the situation."""
        found: list[dict[str, Any]] = self._api.get(PODS)["items"]
        return [each for each in found if not each["metadata"]["name"].startswith(f"{CANARY}-")]

    def pods_of(self, name: str) -> list[dict[str, Any]]:
        """Return the pods of a job, or the pod of this name."""
        return [
            each
            for each in self.pods()
            if name in {each["metadata"]["name"], (each["metadata"].get("labels") or {}).get("job-name")}
        ]

    def is_placed(self, name: str) -> bool:
        """Whether all pods of the job have nodes."""
        own = self.pods_of(name)
        return bool(own) and all(each["spec"].get("nodeName") for each in own)

    def message(self, name: str) -> str:
        """Return what the scheduler says of the first pod of the job that waits."""
        waits = next(each for each in self.pods_of(name) if not each["spec"].get("nodeName"))
        return str(_scheduled(waits)["message"])

    def _claim(self, name: str, zone: str | None) -> None:
        """Make a volume claim, and the volume that nodes of a zone can use."""
        size = {"storage": "1Gi"}
        claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}
        claim["storageClassName"] = "" if zone is not None else "no-such-class"
        if zone is not None:
            volume = f"{name}-{next(self._canaries)}"
            expressions = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]
            spec = {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/nonexistent"},
                "persistentVolumeReclaimPolicy": "Retain",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}},
            }
            self._api.create(VOLUMES, {"metadata": {"name": volume}, "spec": spec})
            claim["volumeName"] = volume
        self._api.create(CLAIMS, {"metadata": {"name": name}, "spec": claim})
        if zone is not None:
            bound = f"{CLAIMS}/{name}"
            wait_until(f"{name} is not bound", lambda: self._api.get(bound)["status"].get("phase") == "Bound")

    def wait_placed(self, name: str) -> None:
        """Wait until the job is placed, but not much longer than a back-off."""
        with suppress(AssertionError):
            wait_until(f"{name} is not placed", lambda: self.is_placed(name), 3 * BACKOFF_SECONDS)

    def _set_node(self, name: str, state: NodeState) -> None:
        node = f"/api/v1/nodes/{name}"
        labels = {**state.labels, "type": "kwok"}
        before = self._api.get(node)["metadata"]["labels"]
        # A merge patch keeps what it does not name.
        gone = dict.fromkeys(before.keys() - labels.keys() - {"kubernetes.io/os", "kubernetes.io/arch"})
        spec = {"unschedulable": state.cordoned, "taints": list(_distinct(state.taints))}
        self._api.merge(node, {"metadata": {"labels": {**gone, **labels}}, "spec": spec})
        self._api.merge(f"{node}/status", {"status": {"allocatable": state.allocatable, "capacity": state.allocatable}})

    def _is_usable(self, name: str) -> bool:
        node = self._api.get(f"/api/v1/nodes/{name}")
        taints = {each["key"] for each in node["spec"].get("taints", ())}
        return not any(key.startswith("node.kubernetes.io/") for key in taints)


def _distinct(taints: list[dict[str, str]]) -> list[dict[str, str]]:
    return list({(each["key"], each["effect"]): each for each in taints}.values())


def _new_node(name: str, resources: dict[str, str], taints: list[dict[str, str]]) -> dict[str, Any]:
    labels = {"type": "kwok", "kubernetes.io/hostname": name}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": taints},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _scheduled(pod: dict[str, Any]) -> dict[str, Any]:
    conditions = pod["status"].get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def _has_verdict(pod: dict[str, Any]) -> bool:
    """Whether the scheduler has placed the pod or given up for now; one for which it evicts others will be placed."""
    if pod["spec"].get("nodeName"):
        return True
    return _scheduled(pod).get("reason") == "Unschedulable" and not pod["status"].get("nominatedNodeName")
