"""A Kueue manager beside a test cluster, and the objects that tests give it.

`COCKPIT_KUEUE_MANAGER` names its program, `COCKPIT_KUEUE_MANIFESTS` the folder with its resource definitions
(`crd/bases`) and webhooks (`webhook/manifests.yaml`), as Kueue's repository has them in `config/components`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tests.ports import free_ports
from tests.real.kubernetes.api import YAML, ApiError
from tests.real.kubernetes.cluster import ADMIN, RBAC
from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.real.kubernetes.api import Api
    from tests.real.kubernetes.cluster import RealKubernetes

MANAGER, MANIFESTS = os.environ.get("COCKPIT_KUEUE_MANAGER", ""), os.environ.get("COCKPIT_KUEUE_MANIFESTS", "")
NAMESPACE = "kueue-system"
GROUP = "kueue.x-k8s.io"
API = f"/apis/{GROUP}/v1beta2"
GPU = "nvidia.com/gpu"
_WEBHOOKS = ("-kueue-x-k8s-io-", "-batch-v1-job")
"""The webhooks that are called: those of Kueue's own kinds, and of Jobs."""

_CONVERTED = frozenset({"ClusterQueue", "Cohort", "LocalQueue", "Workload"})
"""The kinds whose versions differ in more than their names."""


def start_kueue(cluster: RealKubernetes, **config: object) -> None:
    """Start the manager; returns when it admits jobs and serves positions. `config`: more of its configuration."""
    manifests = Path(MANIFESTS)
    metrics, health, webhook, visibility = free_ports(4)
    bundle = base64.b64encode(cluster.authority.read_bytes()).decode()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.admin.apply(namespace, *_definitions(manifests / "crd/bases", webhook, bundle))
    settings = cluster.folder / "kueue.yaml"
    settings.write_text(
        json.dumps(
            {
                "apiVersion": "config.kueue.x-k8s.io/v1beta2",
                "kind": "Configuration",
                "namespace": NAMESPACE,
                "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
                "metrics": {"bindAddress": f"127.0.0.1:{metrics}"},
                "webhook": {"host": "127.0.0.1", "port": webhook},
                "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": visibility},
                "leaderElection": {"leaderElect": False},
                "internalCertManagement": {"enable": False},
                "clientConnection": {"qps": 300, "burst": 500},
                "integrations": {"frameworks": ["batch/job"]},
                **config,
            }
        )
    )
    command = [*_contained(cluster), MANAGER, f"--config={settings}", f"--kubeconfig={cluster.kubeconfig(ADMIN)}"]
    cluster.daemons.start("kueue", command, until=lambda: _answers(health))
    cluster.admin.apply(*_webhooks(manifests / "webhook/manifests.yaml", webhook, bundle), *_visibility(visibility))
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.visibility.kueue.x-k8s.io"
    wait_until("the visibility API is not available", lambda: _is_available(cluster.admin.get(path)))


def flavor(name: str, labels: Mapping[str, str] | None = None, taints: Iterable[object] = ()) -> dict[str, Any]:
    spec = {"nodeLabels": dict(labels or {}), "nodeTaints": list(taints)}
    return _object("ResourceFlavor", name, {key: value for key, value in spec.items() if value})


def cluster_queue(name: str, quotas: Mapping[str, Mapping[str, object]], **spec: object) -> dict[str, Any]:
    """A cluster queue of GPUs, for all namespaces. `quotas`: by flavor, in the order in which they are tried."""
    return _object("ClusterQueue", name, {"namespaceSelector": {}, **_groups(quotas), **spec})


def cohort(name: str, quotas: Mapping[str, Mapping[str, object]], **spec: object) -> dict[str, Any]:
    return _object("Cohort", name, {**(_groups(quotas) if quotas else {}), **spec})


def local_queue(name: str, namespace: str, queue: str, **spec: object) -> dict[str, Any]:
    made = _object("LocalQueue", name, {"clusterQueue": queue, **spec})
    made["metadata"]["namespace"] = namespace
    return made


def priority_class(name: str, value: int) -> dict[str, Any]:
    made = _object("WorkloadPriorityClass", name, None)
    return {**made, "value": value}


def gpu_job(name: str, queue: str, cards: int, pods: int = 1, priority: str = "", **pod: object) -> dict[str, Any]:
    """A suspended Job of pods with so many cards each, which run until they are deleted."""
    labels = {f"{GROUP}/queue-name": queue}
    if priority:
        labels[f"{GROUP}/priority-class"] = priority
    container = {"name": "main", "image": "example/train:1", "resources": {"limits": {GPU: str(cards)}}}
    spec = {"containers": [container], "restartPolicy": "Never", **pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "suspend": True,
            "template": {"spec": spec},
        },
    }


def workloads(api: Api, namespace: str) -> dict[str, dict[str, Any]]:
    """The workloads of a namespace by the name of the job that controls each."""
    found = api.get(f"{API}/namespaces/{namespace}/workloads")["items"]
    return {owner["name"]: each for each in found for owner in each["metadata"].get("ownerReferences", ())}


def condition(workload: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition; empty: the workload has none of this type."""
    conditions = workload.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def is_admitted(workload: Mapping[str, Any]) -> bool:
    return condition(workload, "Admitted").get("status") == "True"


def _object(kind: str, name: str, spec: object) -> dict[str, Any]:
    made = {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "metadata": {"name": name}}
    return made if spec is None else {**made, "spec": spec}


def _groups(quotas: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    flavors = [
        {"name": name, "resources": [{"name": GPU, **{key: str(value) for key, value in quota.items()}}]}
        for name, quota in quotas.items()
    ]
    return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}


def _definitions(folder: Path, port: int, bundle: str) -> list[dict[str, Any]]:
    """The resource definitions. The manager converts objects of some kinds between their versions."""
    found = [yaml.load(file.read_text(), YAML) for file in sorted(folder.glob("*.yaml"))]
    client = {"url": f"https://localhost:{port}/convert", "caBundle": bundle}
    for each in found:
        if each["spec"]["names"]["kind"] in _CONVERTED:
            conversion = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            each["spec"]["conversion"] = {"strategy": "Webhook", "webhook": conversion}
    return found


def _webhooks(manifest: Path, port: int, bundle: str) -> list[dict[str, Any]]:
    found = [each for each in yaml.safe_load_all(manifest.read_text()) if each]
    for each in found:
        each["metadata"]["name"] = f"kueue-{each['metadata']['name']}"
        paths = {hook["name"]: hook["clientConfig"]["service"]["path"] for hook in each["webhooks"]}
        each["webhooks"] = [
            {**hook, "clientConfig": {"url": f"https://localhost:{port}{path}", "caBundle": bundle}}
            for hook in each["webhooks"]
            if any(part in (path := paths[hook["name"]]) for part in _WEBHOOKS)
        ]
    return found


def _visibility(port: int) -> list[dict[str, Any]]:
    """The API of positions: without a proxy for services, one with an external name and a port reaches this machine."""
    service = {"namespace": NAMESPACE, "name": "visibility-server", "port": port}
    external = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "visibility-server", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    group = "visibility.kueue.x-k8s.io"
    spec = {"group": group, "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True}
    served = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1beta2.{group}"},
        "spec": {**spec, "version": "v1beta2", "service": service},
    }
    return [external, served]


def grant_kueue(cluster: RealKubernetes, user: str) -> None:
    """Let a user read everything of Kueue."""
    rules = [
        {"apiGroups": [GROUP, f"visibility.{GROUP}"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]
    role = {"metadata": {"name": f"kueue-{user}"}, "rules": rules}
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": f"kueue-{user}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": f"kueue-{user}"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    cluster.admin.create(f"{RBAC}/clusterroles", role)
    cluster.admin.create(f"{RBAC}/clusterrolebindings", binding)
    wait_until("the right is not known yet", lambda: _may_list(cluster.api(user)))


def _may_list(api: Api) -> bool:
    try:
        api.get(f"{API}/clusterqueues?limit=1")
    except ApiError:
        return False
    return True


def _contained(cluster: RealKubernetes) -> list[str | Path]:
    """The beginning of a command that finds its certificates where Kueue's image has them."""
    serving = cluster.folder / "kueue-serving"
    serving.mkdir()
    certificate, key = cluster.pair("server")
    shutil.copy(certificate, serving / "tls.crt")
    shutil.copy(key, serving / "tls.key")
    around: list[str | Path] = ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    around += ["--ro-bind", "/etc/hosts", "/etc/hosts"]
    around += ["--ro-bind", MANAGER, MANAGER, "--bind", cluster.folder, cluster.folder]
    for inside in ("/visibility", "/etc/kueue/metrics/certs", "/tmp/k8s-webhook-server/serving-certs"):
        around += ["--ro-bind", serving, inside]
    return ["bwrap", *around, "--die-with-parent", "--"]


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


def _is_available(service: Mapping[str, Any]) -> bool:
    conditions = service.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)
