"""What Alibaba's elastic training operator does for TrainingJobs, played by the tests on fake nodes.

Its phases, conditions, labels and order are those that et-operator at 96806fb wrote on the same API server. Beside that
it does as little as the tests need: no Services, no hostfile, no scripts in the launcher.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cockpit.runtime.clock import SystemClock
from tests.real.kubernetes.api import ApiError
from tests.real.kubernetes.test_dialects import ELASTIC_TRAINING, WHOLE, definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.kubernetes.cluster import RealKubernetes

GROUP = "/apis/kai.alibabacloud.com/v1alpha1"
SUSPENDED = "job-supervisor.kube-ai.io/job-suspended"
PAUSE_SECONDS = 0.1
_TEXT = {"type": "string"}
_SELECTOR = {"type": "object", "properties": {"name": _TEXT}}
_COUNT = {"type": "object", "properties": {"count": WHOLE}}
_DELETE = {"type": "object", "properties": {"count": WHOLE, "podNames": {"type": "array", "items": _TEXT}}}
DEFINITIONS = (
    ELASTIC_TRAINING,
    definition(
        "kai.alibabacloud.com", "v1alpha1", "ScaleOut", {"selector": _SELECTOR, "toAdd": _COUNT, "timeout": WHOLE}
    ),
    definition("kai.alibabacloud.com", "v1alpha1", "ScaleIn", {"selector": _SELECTOR, "toDelete": _DELETE}),
)


class ElasticOperator:
    """Looks after the TrainingJobs of a namespace while `run` lasts."""

    def __init__(self, cluster: RealKubernetes, namespace: str) -> None:
        self._api = cluster.admin
        self._jobs, self._pods = (f"{each}/namespaces/{namespace}" for each in (GROUP, "/api/v1"))
        self.makes_secrets = True
        """Whether it makes the Secret of a job where there is none, which is its default."""

    @contextmanager
    def run(self) -> Iterator[None]:
        stop = threading.Event()

        def look_after() -> None:
            while not stop.wait(PAUSE_SECONDS):
                try:
                    self._look()
                except ApiError as error:
                    # Objects may be gone, or changed by others, between a look and a change; new kinds are not ready.
                    if error.status not in {404, 409, 429}:
                        raise

        thread = threading.Thread(target=look_after)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _look(self) -> None:
        for job in self._api.get(f"{self._jobs}/trainingjobs")["items"]:
            if "deletionTimestamp" not in job["metadata"]:
                self._look_after(job)

    def _look_after(self, job: dict[str, Any]) -> None:
        status = job.setdefault("status", {})
        phase = status.get("phase", "")
        if job["metadata"].get("annotations", {}).get(SUSPENDED) == "true" or phase == "Suspended":
            self._delete(*self._pods_of(job))
            # Of a job that it has never started, the server refuses this status.
            if phase not in {"", "Suspended"}:
                message = f"TrainingJob {job['metadata']['name']} is waiting resource timeout."
                self._write(job, "Suspended", _condition("Suspended", "WaitingResourceTimeout", message))
        elif phase in {"", "Created"}:
            self._start(job)
        else:
            self._scale(job)

    def _start(self, job: dict[str, Any]) -> None:
        """Create workers, wait until `replicas` of them run, and create the launcher."""
        name, status, spec = job["metadata"]["name"], job["status"], job["spec"]["etReplicaSpecs"]
        if self.makes_secrets and not self._api.exists(f"{self._pods}/secrets/{name}"):
            secret = {"metadata": {"name": name, "ownerReferences": [_owner(job)]}, "data": {"id_rsa": "eA=="}}
            self._api.create(f"{self._pods}/secrets", secret)
        wanted = [f"{name}-worker-{number}" for number in range(spec["worker"].get("replicas", 1))]
        if not status.get("targetWorkers"):
            self._create(job, wanted)
            status["targetWorkers"] = wanted
            self._write(job, "Created", _condition("Created", "TrainingJobCreated", f"TrainingJob {name} is created."))
            return
        running = self._running(job)
        if len(running) >= len(wanted):
            self._create(job, [f"{name}-launcher"])
            status["currentWorkers"] = running
            said = f"job({job['metadata']['namespace']}/{name}) is running."
            self._write(job, "Running", _condition("Running", "TrainingJobRunning", said))

    def _scale(self, job: dict[str, Any]) -> None:
        """Carry out the latest change of the number of workers that is not done."""
        name = job["metadata"]["name"]
        undone = [
            (kind, each)
            for kind in ("scaleouts", "scaleins")
            for each in self._api.get(f"{self._jobs}/{kind}")["items"]
            if each["spec"]["selector"]["name"] == name and not _has_ended(each)
        ]
        if not undone:
            return
        kind, scaler = max(undone, key=lambda each: each[1]["metadata"]["creationTimestamp"])
        if not scaler.get("status", {}).get("phase"):
            self._api.merge(
                f"{self._jobs}/{kind}/{scaler['metadata']['name']}", {"metadata": {"ownerReferences": [_owner(job)]}}
            )
            self._end(kind, scaler, "Scaling", "ScalingStart", f"execute {kind}")
            self._write(job, "Scaling", _condition("Scaling", "ScalingStart", f"execute {kind}"))
            return
        target = job["status"]["targetWorkers"]
        out = kind == "scaleouts"
        count = scaler["spec"]["toAdd" if out else "toDelete"]["count"]
        if out:
            first = 1 + max(int(each.rpartition("-")[2]) for each in target)
            new = [f"{name}-worker-{first + number}" for number in range(count)]
            self._create(job, new)
            if not {*new} <= {*self._running(job)}:
                began = datetime.fromisoformat(scaler["status"]["conditions"][0]["lastTransitionTime"])
                if _now() - began.timestamp() > scaler["spec"].get("timeout", 60):
                    self._delete(*new)
                    full = f"ScaleOut:{job['metadata']['namespace']}/{scaler['metadata']['name']}"
                    self._end(kind, scaler, "ScaleFailed", "ScalingOutFailed", f"scaleout job {full} execution timeout")
                    self._write(job, "Running", _condition("ScaleFailed", "ScalingOutFailed", full))
                return
            job["status"]["targetWorkers"] = target + new
        else:
            self._delete(*target[-count:])
            job["status"]["targetWorkers"] = target[:-count]
        self._write(job, "Running", _condition("ScaleSucceeded", "", ""))
        self._end(kind, scaler, "ScaleSucceeded", "", "")

    def _create(self, job: dict[str, Any], names: list[str]) -> None:
        name, roles = job["metadata"]["name"], job["spec"]["etReplicaSpecs"]
        for each in names:
            role = "launcher" if each.endswith("-launcher") else "worker"
            labels = {"group-name": GROUP.split("/")[2], "training-job-name": name, "training-job-role": role}
            if role == "worker":
                labels["replica-index"] = each.rpartition("-")[2]
            template = roles[role]["template"]
            meta = {"name": each, "labels": labels, "ownerReferences": [_owner(job)]}
            spec = {**template["spec"], "restartPolicy": "Never"}
            try:
                self._api.create(f"{self._pods}/pods", {"metadata": meta, "spec": spec})
            except ApiError as error:
                if error.status != 409:
                    raise

    def _delete(self, *names: str) -> None:
        for name in names:
            if self._api.exists(f"{self._pods}/pods/{name}"):
                self._api.delete(f"{self._pods}/pods/{name}", gracePeriodSeconds=0)

    def _pods_of(self, job: dict[str, Any]) -> list[str]:
        label = f"labelSelector=training-job-name%3D{job['metadata']['name']}"
        return [each["metadata"]["name"] for each in self._api.get(f"{self._pods}/pods?{label}")["items"]]

    def _running(self, job: dict[str, Any]) -> list[str]:
        label = f"labelSelector=training-job-name%3D{job['metadata']['name']},training-job-role%3Dworker"
        pods = self._api.get(f"{self._pods}/pods?{label}")["items"]
        return [each["metadata"]["name"] for each in pods if each["status"]["phase"] == "Running"]

    def _write(self, job: dict[str, Any], phase: str, *new: dict[str, str]) -> None:
        status = job["status"]
        kinds = {each["type"] for each in new}
        conditions = [each for each in status.get("conditions", ()) if each["type"] not in kinds] + list(new)
        fields = {each: status.get(each) for each in ("targetWorkers", "currentWorkers")}
        patch = {"status": {"phase": phase, "conditions": conditions, **fields}}
        # With the version, as the operator's own updates: a status that was reset meanwhile stays.
        patch |= {"metadata": {"resourceVersion": job["metadata"]["resourceVersion"]}}
        self._api.merge(f"{self._jobs}/trainingjobs/{job['metadata']['name']}/status", patch)

    def _end(self, kind: str, scaler: dict[str, Any], phase: str, reason: str, message: str) -> None:
        old = scaler.get("status", {}).get("conditions", [])
        status = {"phase": phase, "conditions": [*old, _condition(phase, reason, message)]}
        self._api.merge(f"{self._jobs}/{kind}/{scaler['metadata']['name']}/status", {"status": status})


def _has_ended(scaler: dict[str, Any]) -> bool:
    return scaler.get("status", {}).get("phase") in {"ScaleSucceeded", "ScaleFailed"}


def _now() -> float:
    return SystemClock().now() / 1000


def _condition(kind: str, reason: str, message: str) -> dict[str, str]:
    now = datetime.fromtimestamp(_now(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}


def _owner(job: dict[str, Any]) -> dict[str, Any]:
    names = {"apiVersion": "kai.alibabacloud.com/v1alpha1", "kind": "TrainingJob"}
    return {**names, "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
