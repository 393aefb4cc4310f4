"""The programs of a whole Kubernetes on this machine: etcd, the API server, the controller manager and the scheduler;
kwok, which plays the kubelets of any number of fake nodes; and nodelet, a small kubelet whose pods are real processes.
All is on loopback, on ports of its own and in one folder, so that several clusters can run at once.
"""

from __future__ import annotations

import base64
import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from tests.ports import free_ports
from tests.real.kubernetes.api import Api, ApiError
from tests.real.kubernetes.certificates import ISSUER, Authority
from tests.real.kubernetes.daemons import Daemons
from tools.kubernetes_programs import MODULES, NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADMIN = "admin"
TOKENS = """\
alice-token,alice,1001,"ml-users"
viewer-token,viewer,1002,"viewers"
nobody-token,nobody,1003
"""
REAL_NODE = "real-0000"
"""The node whose pods are processes: a pod needs `ON_REAL_NODE` in its spec."""
FAKE_LOG_LINE = "2026-01-02T03:04:05.000000000Z stdout F a line\n"
"""What every pod of a fake node has printed."""


class ControlPlane:
    """Started by `start`, ended by `end`, which removes the folder; ended likewise when this process ends otherwise."""

    backoff_seconds: int | None = None
    """How long the scheduler waits before it tries a pod again that fitted nowhere; None: its default, up to 10 s."""

    def __init__(self, folder: Path, *, cards: int) -> None:
        self.folder = folder
        self.cards = cards

    def start(self) -> None:
        """Start everything; returns when the API server and the real node are ready."""
        self.daemons = Daemons(self.folder)
        self._etcd_port, self._peer_port, self._api_port, self._kwok_port = free_ports(4)
        self.address = f"https://127.0.0.1:{self._api_port}"
        self._keys = self.folder / "keys"
        self._keys.mkdir(mode=0o700)
        self._make_keys()
        self.admin = Api(self.address, self.authority, client=self.pair(ADMIN))
        self.daemons.start("etcd", self._etcd())
        self.start_api_server()
        self._start_controllers()
        self._start_nodelet()

    def end(self) -> None:
        self.daemons.stop_all()

    def pair(self, name: str) -> tuple[Path, Path]:
        """Files of a certificate and its key."""
        return self._keys / f"{name}.crt", self._keys / f"{name}.key"

    @property
    def authority(self) -> Path:
        return self._keys / "ca.crt"

    def kubeconfig(self, user: str) -> Path:
        """The file by which kubectl or cockpit is this user."""
        file = self.folder / f"{user}.kubeconfig"
        if not file.exists():
            self.write_kubeconfig(file, user, self._credentials(user))
        return file

    def write_kubeconfig(
        self, file: Path, user: str, credentials: Mapping[str, Any], namespace: str = "default"
    ) -> None:
        """Write a kubeconfig with one context, named `real`."""
        cluster = {"server": self.address, "certificate-authority-data": _base64(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user, "namespace": namespace}}],
            "users": [{"name": user, "user": credentials}],
        }
        file.touch(mode=0o600)
        file.write_text(json.dumps(content, indent=1))

    def start_api_server(self, *flags: str) -> None:
        """Start it, with more flags; also after `daemons.kill("kube-apiserver")`: etcd has kept everything."""
        self.daemons.start("kube-apiserver", [*self._api_server(), *flags], until=self._is_serving)

    def forget_past(self) -> None:
        """Make every older version too old: compact etcd, and restart the API server, which knows the last changes."""
        self._ask_etcd("compaction", {"revision": self._ask_etcd("range", {"key": "AA=="})["header"]["revision"]})
        self.daemons.kill("kube-apiserver")
        self.start_api_server()

    def _ask_etcd(self, what: str, question: Mapping[str, object]) -> Any:
        body = json.dumps(question).encode()
        with urlopen(Request(f"http://127.0.0.1:{self._etcd_port}/v3/kv/{what}", body), timeout=60) as answer:
            return json.load(answer)

    def _is_serving(self) -> bool:
        try:
            return self.admin.get("/readyz") == "ok"
        except (OSError, HTTPException, ApiError):
            return False

    def _etcd(self) -> list[str | Path]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        return [
            _program("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        ]

    def _api_server(self) -> list[str | Path]:
        keys = self._keys
        return [
            _program("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._api_port}",
            f"--tls-cert-file={keys / 'server.crt'}",
            f"--tls-private-key-file={keys / 'server.key'}",
            f"--client-ca-file={keys / 'ca.crt'}",
            f"--token-auth-file={keys / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={keys / 'sa.key'}",
            f"--service-account-signing-key-file={keys / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/24",
            "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            f"--kubelet-certificate-authority={keys / 'ca.crt'}",
            f"--kubelet-client-certificate={keys / 'kubelet-client.crt'}",
            f"--kubelet-client-key={keys / 'kubelet-client.key'}",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            "--enable-priority-and-fairness=false",
            f"--proxy-client-cert-file={keys / 'admin.crt'}",
            f"--proxy-client-key-file={keys / 'admin.key'}",
            f"--requestheader-client-ca-file={keys / 'ca.crt'}",
            "--requestheader-allowed-names=admin",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def _start_controllers(self) -> None:
        config = f"--kubeconfig={self.kubeconfig(ADMIN)}"
        quick = ("--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000", "--secure-port=0")
        manager = [
            _program("kube-controller-manager"),
            config,
            *quick,
            f"--service-account-private-key-file={self._keys / 'sa.key'}",
            f"--root-ca-file={self._keys / 'ca.crt'}",
            "--concurrent-gc-syncs=5",
            "--terminated-pod-gc-threshold=0",
        ]
        self.daemons.start("kube-controller-manager", manager)
        # A file replaces the flags.
        scheduler = (
            [f"--config={self._scheduler_file()}", "--secure-port=0"] if self.backoff_seconds else [config, *quick]
        )
        self.daemons.start("kube-scheduler", [_program("kube-scheduler"), *scheduler])
        self.daemons.start("kwok", self._kwok())

    def _scheduler_file(self) -> Path:
        file = self.folder / "scheduler.yaml"
        settings = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig(ADMIN)), "qps": 500, "burst": 1000},
            "podInitialBackoffSeconds": self.backoff_seconds,
            "podMaxBackoffSeconds": self.backoff_seconds,
        }
        file.write_text(json.dumps(settings))
        return file

    def _kwok(self) -> list[str | Path]:
        printed = self.folder / "pod.log"
        for file in (printed, printed.with_suffix(".log.previous")):
            file.write_text(FAKE_LOG_LINE)
        stages = self.folder / "kwok.yaml"
        stages.write_text((MODULES.parent / "kwok.yaml").read_text().replace("LOGFILE", str(printed)))
        return [
            _program("kwok"),
            f"--config={stages}",
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--server-address=127.0.0.1:{self._kwok_port}",
            "--node-ip=127.0.0.1",
            f"--node-port={self._kwok_port}",
            f"--tls-cert-file={self._keys / 'server.crt'}",
            f"--tls-private-key-file={self._keys / 'server.key'}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=200",
        ]

    def _start_nodelet(self) -> None:
        command = [
            NODELET.folder() / "nodelet",
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--node={REAL_NODE}",
            f"--gpus={self.cards}",
            f"--dir={self.folder / 'pods'}",
            f"--tls-cert-file={self._keys / 'server.crt'}",
            f"--tls-private-key-file={self._keys / 'server.key'}",
        ]
        self.daemons.start("nodelet", command, until=self._is_real_node_ready)

    def _is_real_node_ready(self) -> bool:
        path = f"/api/v1/nodes/{REAL_NODE}"
        if not self.admin.exists(path):
            return False
        node = self.admin.get(path)
        return is_ready(node) and len(node["spec"]["taints"]) == 1

    def _make_keys(self) -> None:
        self._authority = Authority(self._keys)
        self._authority.sign_server("server")
        self._authority.sign_client(ADMIN, ADMIN, "system:masters")
        self._authority.sign_client("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
        (self._keys / "tokens.csv").write_text(TOKENS)

    def _credentials(self, user: str) -> dict[str, str]:
        if user != ADMIN:
            return {"token": f"{user}-token"}
        certificate, key = self.pair(ADMIN)
        return {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}


def _program(name: str) -> Path:
    """One of Kubernetes' own."""
    return SERVER.folder() / name


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
