"""A whole Kubernetes on this machine, as a test process drives it: its users, namespaces and nodes."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.real.kubernetes.api import Api, ApiError
from tests.real.kubernetes.control_plane import ADMIN, REAL_NODE, ControlPlane, is_ready
from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ALICE, VIEWER, NOBODY = "alice", "viewer", "nobody"
"""Alice is an administrator of the namespaces that tests make; viewer reads everything; nobody may do nothing."""
ON_REAL_NODE = {
    "nodeSelector": {"kubernetes.io/hostname": REAL_NODE},
    "tolerations": [{"key": "test.cockpit/real", "operator": "Exists"}],
}
CARD_MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class RealKubernetes(ControlPlane):
    """`nodes` fake nodes with `cards` GPUs each, gpu-0000 and so on; and the real node, with as many."""

    def __init__(self, folder: Path, *, nodes: int = 0, cards: int = 8) -> None:
        super().__init__(folder, cards=cards)
        self._node_count = nodes
        self._namespaces = count(1)

    def begin(self) -> None:
        """Start everything; returns when all nodes and users are ready."""
        self.start()
        viewers = _binding("viewer", "view", {"kind": "Group", "name": "viewers"})
        self.admin.create(f"{RBAC}/clusterrolebindings", viewers)
        self.add_nodes(self._node_count)
        wait_until("the viewer may read nothing", lambda: self._may_read_pods(VIEWER, "default"))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until("there is no service account", lambda: self.admin.exists(account))

    def api(self, user: str) -> Api:
        """Calls as one of the users."""
        return self.admin if user == ADMIN else Api(self.address, self.authority, token=f"{user}-token")

    def service_token(self, namespace: str, account: str, seconds: float) -> str:
        """Make a service account, if need be, and a token of it that is accepted for so long."""
        where = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not self.admin.exists(f"{where}/{account}"):
            self.admin.create(where, {"metadata": {"name": account}})
        uid = self.admin.get(f"{where}/{account}")["metadata"]["uid"]
        return self._authority.service_token(namespace, account, uid, seconds)

    def grant(self, user: str, namespace: str, role: str = "admin") -> None:
        """Give a user a cluster role in a namespace. The API server knows it a moment later."""
        binding = _binding(f"{user}-{role}", role, {"kind": "User", "name": user})
        self.admin.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)

    def revoke(self, user: str, namespace: str, role: str = "admin") -> None:
        """Take a role away again, likewise."""
        self.admin.delete(f"{RBAC}/namespaces/{namespace}/rolebindings/{user}-{role}")

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of its own for a test, where alice is an administrator. Its pods are gone afterwards."""
        name = f"test-{next(self._namespaces)}"
        self.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(f"no service account in {name}", lambda: self.admin.exists(account))
        self.grant(ALICE, name)
        wait_until(f"alice may do nothing in {name}", lambda: self._may_read_pods(ALICE, name))
        try:
            yield name
        finally:
            self._empty(name)

    def add_nodes(self, number: int, *, first: int = 0) -> None:
        """Make fake nodes, and wait until they are ready."""
        nodes = [_fake_node(each, self.cards) for each in range(first, first + number)]
        self.admin.create_many("/api/v1/nodes", nodes)
        wait_until(f"not all of {number} nodes are ready", lambda: self.ready_nodes() >= first + number)

    def ready_nodes(self) -> int:
        """How many fake nodes are ready and can be used."""
        nodes = self.admin.get("/api/v1/nodes?labelSelector=type%3Dkwok&resourceVersion=0")["items"]
        return sum(is_ready(each) and not each["spec"].get("taints") for each in nodes)

    def _may_read_pods(self, user: str, namespace: str) -> bool:
        try:
            self.api(user).get(f"/api/v1/namespaces/{namespace}/pods?limit=1")
        except ApiError:
            return False
        return True

    def _empty(self, namespace: str) -> None:
        """Remove a namespace; wait only for its pods, which hold cards that the next test wants."""
        pods = f"/api/v1/namespaces/{namespace}/pods"
        self.admin.delete(f"/api/v1/namespaces/{namespace}")
        self.admin.delete(pods, gracePeriodSeconds=0)
        wait_until(f"pods of {namespace} are left", lambda: not self.admin.get(pods)["items"])


def _binding(name: str, role: str, subject: Mapping[str, str]) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, **subject}],
    }


def _fake_node(number: int, cards: int) -> dict[str, Any]:
    name = f"gpu-{number:04d}"
    resources = {
        "cpu": "128",
        "memory": "1024Gi",
        "pods": "110",
        "ephemeral-storage": "2Ti",
        "nvidia.com/gpu": str(cards),
        "rdma/hca": "8",
    }
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "nvidia.com/gpu.product": CARD_MODELS[number % len(CARD_MODELS)],
        "nvidia.com/gpu.count": str(cards),
        "topology.kubernetes.io/zone": f"z{number % 3}",
        "topology.kubernetes.io/rack": f"r{number // 16:03d}",
    }
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": resources, "capacity": resources},
    }
