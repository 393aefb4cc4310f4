"""A real fleet for the tests: a host and members, each a whole Kubernetes, and what plays the fleet's controllers.

The player does what ACK One and Karmada document, over real API servers, in steps that it repeats:

1. It reports each member with its totals (Cluster).
2. It makes a ResourceBinding for each job that a policy selects, with what the policy suspends.
3. It binds jobs that are not suspended, and says so in an event; where it cannot, in the binding's condition:
   a gang to the first member that has enough free for all of it; a job that is `Divided` without a gang, by the number
   of replicas that each member has free, to as few members as possible; one that is `Duplicated` whole to every member.
4. It creates bound jobs on their members, unless dispatching is suspended, and reports their status at the binding. Of
   a divided Job each member gets its share of `parallelism` and `completions`.
5. A job that has failed on its member for `tolerationSeconds` is removed there and bound anew elsewhere; one whose
   policy suspends its scheduling goes back to its queue.
6. It removes from members what has no binding any more.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from cockpit.backends.kubernetes.mapping.quantities import quantity
from tests.real.kubernetes.api import Api, ApiError
from tests.real.kubernetes.cluster import RealKubernetes
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.fleet_kinds import ACK_POLICY, OF_HOST
from tests.real.kubernetes.kube_queue import serve_kube_queue
from tests.real.kubernetes.training_operator import start_training_operator
from tools.kubernetes_programs import TRAINING_OPERATOR

Object = dict[str, Any]
MEMBERS = {"cn-1": 2, "cn-2": 1}
"""The number of nodes with eight cards of each member."""
GPU = "nvidia.com/gpu"
PATHS = {"PyTorchJob": "/apis/kubeflow.org/v1/{}pytorchjobs", "Job": "/apis/batch/v1/{}jobs"}
API_VERSIONS = {"PyTorchJob": "kubeflow.org/v1", "Job": "batch/v1"}
POLICIES = tuple(
    f"/apis/{group}/v1alpha1/{{}}propagationpolicies" for group in ("policy.one.alibabacloud.com", "policy.karmada.io")
)
BINDINGS = "/apis/work.karmada.io/v1alpha2/{}resourcebindings"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
MANAGED = "karmada.io/managed"
STEP_SECONDS = 0.1


def inside(path: str, namespace: str) -> str:
    return path.format(f"namespaces/{namespace}/")


class Fleet:
    """The host and its members. `unreachable`: members that the player does not reach."""

    def __init__(self, host: RealKubernetes, members: dict[str, RealKubernetes]) -> None:
        self.host, self.members = host, members
        self.unreachable: set[str] = set()
        self._failed_since: dict[tuple[str, str], float] = {}
        self._tried: dict[str, set[str]] = {}
        self._over, self._has_stepped = threading.Event(), threading.Event()
        self._player = threading.Thread(target=self._play, name="the fleet's controllers", daemon=True)

    def begin(self) -> None:
        self._player.start()
        wait_until("the player has not gone through its steps once", self._has_stepped.is_set)

    def end(self) -> None:
        self._over.set()
        self._player.join()

    def kubeconfig(self, folder: Path, user: str = "admin") -> Path:
        """A file with a context for the host, called `fleet`, and one for each member."""
        named = {"fleet": self.host, **self.members}
        config: Object = {"clusters": [], "contexts": [], "users": [], "current-context": "fleet"}
        for name, each in named.items():
            own = json.loads(each.kubeconfig(user).read_text())
            config["clusters"].append({"name": name, "cluster": own["clusters"][0]["cluster"]})
            config["users"].append({"name": name, "user": own["users"][0]["user"]})
            config["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        file = folder / f"{user}.config"
        file.write_text(json.dumps(config))
        return file

    def _play(self) -> None:
        while not self._over.is_set():
            # An object that has gone or changed meanwhile is looked at again.
            with suppress(ApiError, OSError):
                self.step()
                self._has_stepped.set()
            time.sleep(STEP_SECONDS)

    def step(self) -> None:
        free = {name: self._report(name) for name in self.members}  # step 1
        policies = [each for path in POLICIES for each in self._listed(self.host.admin, path)]
        for kind, path in PATHS.items():
            for job in self._listed(self.host.admin, path):
                if "deletionTimestamp" not in job["metadata"]:
                    self._bind(kind, job, policies)  # step 2
        for binding in self._listed(self.host.admin, BINDINGS):
            if "deletionTimestamp" not in binding["metadata"]:
                self._schedule(binding, free)  # step 3
                self._send(binding)  # step 4, 5
        self._clean()  # step 6

    def _listed(self, api: Api, path: str) -> list[Object]:
        try:
            return list(api.get(path.format(""))["items"])
        except ApiError as error:
            if error.status != 404:
                raise
            return []

    def _report(self, name: str) -> dict[str, Fraction]:
        """Report a member; return what is free there."""
        api, path = self.members[name].admin, f"{CLUSTERS}/{name}"
        if not self.host.admin.exists(path):
            spec = {"id": name, "apiEndpoint": self.members[name].address, "syncMode": "Push"}
            about = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
            self.host.admin.create(CLUSTERS, {**about, "metadata": {"name": name}, "spec": spec})
        if name in self.unreachable:
            self._set_ready(path, "False", "cluster is not reachable")
            return {}
        nodes = [each for each in api.get("/api/v1/nodes")["items"] if not each["spec"].get("taints")]
        pods = [
            each for each in api.get("/api/v1/pods")["items"] if each["status"].get("phase") in {"Pending", "Running"}
        ]
        there = _sum(each["status"]["allocatable"] for each in nodes)
        used = _sum(_requests(each["spec"]) for each in pods)
        # All resources each time: a merge patch leaves those out of account that it does not name.
        taken = {key: used.get(key, Fraction(0)) for key in there}
        summary = {"allocatable": _written(there), "allocated": _written(taken)}
        self._set_ready(path, "True", "cluster is healthy and ready to accept workloads", summary, len(nodes))
        return {key: amount - used.get(key, 0) for key, amount in there.items()}

    def _set_ready(self, path: str, ready: str, message: str, summary: Object | None = None, nodes: int = 0) -> None:
        status: Object = {"conditions": [{"type": "Ready", "status": ready, "reason": "Seen", "message": message}]}
        if summary is not None:
            about = {"kubernetesVersion": "v1.36.3", "nodeSummary": {"totalNum": nodes, "readyNum": nodes}}
            status |= {**about, "resourceSummary": summary}
        if self.host.admin.get(path).get("status", {}).items() >= status.items():
            return
        self.host.admin.merge(f"{path}/status", {"status": status})

    def _bind(self, kind: str, job: Object, policies: list[Object]) -> None:
        """Make the binding of a job that a policy selects: by name before by kind."""
        meta = job["metadata"]
        place, name = inside(BINDINGS, meta["namespace"]), f"{meta['name']}-{kind.lower()}"
        ours = [(rank, each) for each in policies if (rank := _selects(each, kind, meta))]
        if not ours or self.host.admin.exists(f"{place}/{name}"):
            return
        spec = max(ours, key=lambda pair: pair[0])[1]["spec"]
        # The items of a list of a built-in kind do not name it.
        owner = {"apiVersion": API_VERSIONS[kind], "kind": kind, "name": meta["name"], "uid": meta["uid"]}
        reference = {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")} | {
            "namespace": meta["namespace"]
        }
        body: Object = {"resource": reference, "propagateDeps": bool(spec.get("propagateDeps"))}
        body |= {key: spec[key] for key in ("suspension", "failover", "placement") if key in spec}
        binding = {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]},
            "spec": body,
        }
        self.host.admin.create(place, binding)
        if kind == "PyTorchJob" and not job.get("status"):
            self._set_status(kind, meta, {"conditions": [_condition("Created", "True", "PyTorchJobCreated")]})

    def _set_status(self, kind: str, meta: Object, status: Object) -> None:
        path = f"{inside(PATHS[kind], meta['namespace'])}/{meta['name']}/status"
        self.host.admin.merge(path, {"status": status})

    def _schedule(self, binding: Object, free: dict[str, dict[str, Fraction]]) -> None:
        spec = binding["spec"]
        if spec.get("clusters") or spec.get("suspension", {}).get("scheduling"):
            return
        meta, job = binding["metadata"], self._job_of(binding)
        roles = _roles(job)
        tried = self._tried.get(meta["uid"], set())
        reached = {name: left for name, left in free.items() if name not in tried and left}
        how = spec.get("placement", {}).get("replicaScheduling", {"replicaSchedulingType": "Duplicated"})
        targets = _targets(job, how, reached)
        path = f"{inside(BINDINGS, meta['namespace'])}/{meta['name']}"
        if not targets:
            message = f"0/{len(free)} clusters are available: {len(free)} clusters have too little free."
            self._say_scheduled(path, binding, "False", "NoClusterFit", message)
            return
        self.host.admin.merge(path, {"spec": {"clusters": targets}})
        self._say_scheduled(path, binding, "True", "Success", "Binding has been scheduled successfully.")
        counts = " ".join(f"{{{role} {count}}}" for role, count in roles)
        results = [f"{each['name']}:{each.get('replicas', 0)}" for each in targets]
        result = f"{results[0]},[{counts}]" if "components" in targets[0] else ", ".join(results)
        said = f"Binding has been scheduled successfully. Result: {{{result}}}"
        self._event(job, "ScheduleBindingSucceed", said)

    def _say_scheduled(self, path: str, binding: Object, status: str, reason: str, message: str) -> None:
        new = _condition("Scheduled", status, reason, message)
        old = next(iter(binding.get("status", {}).get("conditions", ())), {})
        if (old.get("status"), old.get("message")) != (status, message):
            self.host.admin.merge(f"{path}/status", {"status": {"conditions": [new]}})

    def _event(self, job: Object, reason: str, message: str) -> None:
        meta = job["metadata"]
        about = {key: meta[key] for key in ("name", "namespace", "uid")}
        now = _now()
        event = {
            "metadata": {"generateName": f"{meta['name']}."},
            "involvedObject": {"kind": job["kind"], "apiVersion": job["apiVersion"], **about},
            "type": "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": "default-scheduler"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self.host.admin.create(f"/api/v1/namespaces/{meta['namespace']}/events", event)

    def _send(self, binding: Object) -> None:
        """Create a job on the member to which it is bound, and report its status."""
        meta = binding["metadata"]
        binding = self.host.admin.get(f"{inside(BINDINGS, meta['namespace'])}/{meta['name']}")
        spec = binding["spec"]
        if spec.get("suspension", {}).get("dispatching"):
            return
        known = {each["clusterName"]: each for each in binding.get("status", {}).get("aggregatedStatus") or ()}
        items, failed = [], {}
        for target in spec.get("clusters") or ():
            member = target["name"]
            if member in self.unreachable:
                items += [known[member]] if member in known else []
                continue
            there = self._there(member, binding, target.get("replicas"))
            failed[member] = _has_failed(there)
            health = "Unhealthy" if failed[member] else "Healthy"
            status = there.get("status", {})
            items.append({"clusterName": member, "applied": True, "health": health, "status": status})
        if items != list(known.values()):
            path = f"{inside(BINDINGS, meta['namespace'])}/{meta['name']}/status"
            self.host.admin.merge(path, {"status": {"aggregatedStatus": items}})
        for member, is_failed in failed.items():
            self._fail_over(binding, member, failed=is_failed)

    def _there(self, member: str, binding: Object, share: int | None) -> Object:
        api, about = self.members[member].admin, binding["spec"]["resource"]
        collection = inside(PATHS[about["kind"]], about["namespace"])
        if not api.exists(f"/api/v1/namespaces/{about['namespace']}"):
            api.create("/api/v1/namespaces", {"metadata": {"name": about["namespace"]}})
        if not api.exists(f"{collection}/{about['name']}"):
            job = self._job_of(binding)
            kept = {key: job["metadata"].get(key) or {} for key in ("labels", "annotations")}
            metadata = {"name": about["name"], **kept, "labels": {**kept["labels"], MANAGED: "true"}}
            spec = {key: value for key, value in job["spec"].items() if key != "selector"}
            if share is not None:
                spec |= {"parallelism": share, "completions": share}
            template = spec.get("template", {}).get("metadata", {})
            template.pop("labels", None)
            api.create(
                collection, {**{key: job[key] for key in ("apiVersion", "kind")}, "metadata": metadata, "spec": spec}
            )
        return dict(api.get(f"{collection}/{about['name']}"))

    def _fail_over(self, binding: Object, member: str, *, failed: bool) -> None:
        meta, spec = binding["metadata"], binding["spec"]
        application = spec.get("failover", {}).get("application")
        key = (meta["uid"], member)
        if not failed or application is None:
            self._failed_since.pop(key, None)
            return
        since = self._failed_since.setdefault(key, time.monotonic())
        if time.monotonic() - since < application["decisionConditions"]["tolerationSeconds"]:
            return
        about = spec["resource"]
        api = self.members[member].admin
        api.delete(
            f"{inside(PATHS[about['kind']], about['namespace'])}/{about['name']}", propagationPolicy="Background"
        )
        self._tried.setdefault(meta["uid"], set()).add(member)
        others = [each for each in spec["clusters"] if each["name"] != member]
        change: Object = {"clusters": others or None}
        policy = next((each for each in self._policies(about) if each["spec"].get("suspension")), None)
        if policy is not None and policy["spec"]["suspension"].get("scheduling"):
            change["suspension"] = {"scheduling": True}
            self._tried.pop(meta["uid"])
        task = {"fromCluster": member, "reason": "ApplicationFailure", "producer": "tests", "creationTimestamp": _now()}
        change["gracefulEvictionTasks"] = [task]
        path = f"{inside(BINDINGS, meta['namespace'])}/{meta['name']}"
        self.host.admin.merge(f"{path}/status", {"status": {"aggregatedStatus": None}})
        self.host.admin.merge(path, {"spec": change})

    def _policies(self, about: Object) -> list[Object]:
        found = [each for path in POLICIES for each in self._listed(self.host.admin, path)]
        return [each for each in found if _selects(each, about["kind"], about)]

    def _clean(self) -> None:
        bound = {
            (each["spec"]["resource"]["namespace"], each["spec"]["resource"]["kind"], each["spec"]["resource"]["name"])
            for each in self._listed(self.host.admin, BINDINGS)
        }
        for name in self.members.keys() - self.unreachable:
            api = self.members[name].admin
            for kind, path in PATHS.items():
                for job in self._listed(api, path):
                    meta = job["metadata"]
                    ours = meta.get("labels", {}).get(MANAGED) == "true"
                    if ours and (meta["namespace"], kind, meta["name"]) not in bound:
                        api.delete(f"{inside(path, meta['namespace'])}/{meta['name']}", propagationPolicy="Background")

    def _job_of(self, binding: Object) -> Object:
        about = binding["spec"]["resource"]
        job = dict(self.host.admin.get(f"{inside(PATHS[about['kind']], about['namespace'])}/{about['name']}"))
        return {"apiVersion": about["apiVersion"], "kind": about["kind"], **job}


@contextmanager
def running_fleet(*, dialects: tuple[Object, ...] = (ACK_POLICY,)) -> Iterator[Fleet]:
    """A fleet of a test file's own, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="cockpit-fleet-", ignore_cleanup_errors=True) as folder:
        host = _made(Path(folder), "host", 0)
        members = {name: _made(Path(folder), name, nodes) for name, nodes in MEMBERS.items()}
        every = (host, *members.values())
        try:
            with ThreadPoolExecutor(len(every)) as pool:
                list(pool.map(RealKubernetes.begin, every))
            for each in members.values():
                start_training_operator(each)
            _serve_host(host, dialects)
            fleet = Fleet(host, members)
            try:
                fleet.begin()
                yield fleet
            finally:
                fleet.end()
        finally:
            for each in every:
                each.end()


def _made(folder: Path, name: str, nodes: int) -> RealKubernetes:
    (folder / name).mkdir()
    return RealKubernetes(folder / name, nodes=nodes)


def _serve_host(host: RealKubernetes, dialects: tuple[Object, ...]) -> None:
    host.admin.apply_files(sorted((TRAINING_OPERATOR.folder() / "manifests/base/crds").glob("*.yaml")))
    host.admin.apply(*OF_HOST, *dialects)
    serve_kube_queue(host)


def _selects(policy: Object, kind: str, meta: Object) -> int:
    if policy["metadata"]["namespace"] != meta["namespace"]:
        return 0
    ours = [each for each in policy["spec"]["resourceSelectors"] if each["kind"] == kind]
    named = any(each.get("name") == meta["name"] for each in ours)
    return 2 if named else int(any(not each.get("name") for each in ours))


def _roles(job: Object) -> list[tuple[str, int]]:
    """The replicas by role, the master first."""
    replicas = job["spec"].get("pytorchReplicaSpecs")
    if replicas is None:
        return [("", int(job["spec"].get("parallelism", 1)))]
    return [(role.lower(), int(replicas[role].get("replicas", 1))) for role in sorted(replicas)]


def _asked(job: Object) -> dict[str, Fraction]:
    replicas = job["spec"].get("pytorchReplicaSpecs")
    if replicas is None:
        parts = [(int(job["spec"].get("parallelism", 1)), job["spec"]["template"]["spec"])]
    else:
        parts = [(int(each.get("replicas", 1)), each["template"]["spec"]) for each in replicas.values()]
    return _sum(_requests(spec) for count, spec in parts for _ in range(count))


def _targets(job: Object, how: Object, free: dict[str, dict[str, Fraction]]) -> list[Object]:
    """The members that get a job, with their shares; none where it does not fit. `free`: those that may get it."""
    roles = _roles(job)
    if how["replicaSchedulingType"] == "Duplicated":
        return [{"name": name, "replicas": roles[0][1]} if len(roles) == 1 else {"name": name} for name in free]
    if how.get("customSchedulingType") == "Gang" or len(roles) > 1:
        asked = _asked(job)
        components = [{"name": role, "replicas": count} for role, count in roles]
        return [{"name": name, "components": components} for name, left in free.items() if _fits(asked, left)][:1]
    one, wanted, targets = _requests(job["spec"]["template"]["spec"]), roles[0][1], []
    rooms = {name: min(int(left.get(key, 0) // amount) for key, amount in one.items()) for name, left in free.items()}
    for name in sorted(rooms, key=lambda name: -rooms[name]):
        if share := min(wanted, rooms[name]):
            targets.append({"name": name, "replicas": share})
            wanted -= share
    return [] if wanted else targets


def _requests(spec: Object) -> Object:
    total: dict[str, Fraction] = {"pods": Fraction(1)}
    for container in spec["containers"]:
        resources = container.get("resources", {})
        for key, amount in {**resources.get("limits", {}), **resources.get("requests", {})}.items():
            total[key] = total.get(key, Fraction(0)) + quantity(amount)
    return total


def _sum(parts: Any) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for each in parts:
        for key, amount in each.items():
            total[key] = total.get(key, Fraction(0)) + quantity(amount)
    return total


def _fits(asked: dict[str, Fraction], free: dict[str, Fraction]) -> bool:
    return all(free.get(key, 0) >= amount for key, amount in asked.items())


def _written(amounts: dict[str, Fraction]) -> dict[str, str]:
    return {
        key: f"{int(amount * 1000)}m" if amount.denominator > 1 else str(int(amount)) for key, amount in amounts.items()
    }


def _has_failed(job: Object) -> bool:
    return any(
        each["type"] == "Failed" and each["status"] == "True" for each in job.get("status", {}).get("conditions", ())
    )


def _condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": _now()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
