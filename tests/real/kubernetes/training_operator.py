"""Kubeflow's training operator beside a test cluster: PyTorchJobs, TFJobs and MPIJobs become pods."""

from __future__ import annotations

import base64
import shutil
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tests.ports import free_ports
from tests.real.kubernetes.cluster import RBAC, RealKubernetes
from tools.kubernetes_programs import TRAINING_OPERATOR

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE, ACCOUNT = "kubeflow", "training-operator"
KINDS = ("pytorchjob", "tfjob", "mpijob")
WEBHOOKS = "validator.training-operator.kubeflow.org"
"""The name under which the operator looks for its webhooks, to write its authority into them."""
WAIT_FOR_MASTER = """
- name: init-pytorch
  image: none
  command: [sh, -c, 'until getent hosts {{.MasterAddr}}; do sleep 0.1; done']
"""
"""What workers do first. By default they ask a name service, and none runs here."""


def start_training_operator(cluster: RealKubernetes) -> None:
    """Start the operator; returns when it takes jobs."""
    programs = TRAINING_OPERATOR.folder()
    metrics, health, webhook = free_ports(3)
    cluster.admin.apply_files(sorted((programs / "manifests/base/crds").glob("*.yaml")))
    cluster.admin.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _secret(cluster),
        *_webhooks(programs / "manifests/base/webhook/manifests.yaml", webhook, cluster.authority),
    )
    token = cluster.service_token(NAMESPACE, ACCOUNT, 86_400)
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [subject]}
    cluster.admin.create(f"{RBAC}/clusterrolebindings", binding)

    first = cluster.folder / "init-container.yaml"
    first.write_text(WAIT_FOR_MASTER)
    command = [
        *_as_in_a_pod(cluster, token),
        programs / "training-operator",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--webhook-server-port={webhook}",
        f"--pytorch-init-container-template-file={first}",
        *(f"--enable-scheme={kind}" for kind in KINDS),
    ]
    host, _, port = cluster.address.removeprefix("https://").partition(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    cluster.daemons.start("training-operator", command, env=env, until=lambda: _answers(health))


def _as_in_a_pod(cluster: RealKubernetes, token: str) -> list[str | Path]:
    """The beginning of a command that finds its credentials and its webhooks' certificate where a pod has them."""
    account, serving = cluster.folder / "account", cluster.folder / "serving"
    account.mkdir()
    serving.mkdir()
    (account / "token").write_text(token)
    (account / "namespace").write_text(NAMESPACE)
    certificate, key = cluster.pair("server")
    for folder in (account, serving):
        shutil.copy(cluster.authority, folder / "ca.crt")
    shutil.copy(certificate, serving / "tls.crt")
    shutil.copy(key, serving / "tls.key")
    inside: list[str | Path] = ["--ro-bind", account, "/run/secrets/kubernetes.io/serviceaccount"]
    inside += ["--bind", serving, "/tmp/k8s-webhook-server/serving-certs"]
    around: list[str | Path] = ["--dev-bind", "/", "/", "--tmpfs", "/run", "--tmpfs", "/tmp"]
    programs = TRAINING_OPERATOR.folder()
    around += ["--ro-bind", programs, programs, "--bind", cluster.folder, cluster.folder]
    return ["bwrap", *around, *inside, "--die-with-parent", "--"]


def _secret(cluster: RealKubernetes) -> dict[str, Any]:
    """The keys that the operator would make itself."""
    files = {name: cluster.pair(stem) for name, stem in (("ca", "ca"), ("tls", "server"))}
    data = {}
    for name, (certificate, key) in files.items():
        data[f"{name}.crt"] = base64.b64encode(certificate.read_bytes()).decode()
        data[f"{name}.key"] = base64.b64encode(key.read_bytes()).decode()
    about = {"name": "training-operator-webhook-cert", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}


def _webhooks(manifest: Path, port: int, authority: Path) -> list[dict[str, Any]]:
    """The operator's own webhooks, called at a port of this machine instead of through a service."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    found = [each for each in yaml.safe_load_all(manifest.read_text()) if each]
    for each in found:
        each["metadata"]["name"] = WEBHOOKS
        for hook in each["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://localhost:{port}{path}", "caBundle": bundle}
    return found


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False
