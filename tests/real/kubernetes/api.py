"""The API server as one user, with nothing but the standard library: what tests prepare and look at."""

from __future__ import annotations

import json
import ssl
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPSConnection
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from tests.real.kubernetes.daemons import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Definitions of resources have half a megabyte."""
PARALLEL = 32
"""Connections for many objects: more make it no quicker."""


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class Resource(NamedTuple):
    path: str
    """Of its group and version, such as `/apis/batch/v1`."""
    plural: str
    namespaced: bool

    def collection(self, namespace: str) -> str:
        inside = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.path}{inside}/{self.plural}"


class Api:
    """Calls of one user; any thread may call. `credentials`: a client's certificate and key as files, or a token."""

    def __init__(
        self, address: str, authority: Path, *, client: tuple[Path, Path] | None = None, token: str = ""
    ) -> None:
        self._host = urlsplit(address).netloc
        self._context = ssl.create_default_context(cafile=authority)
        if client is not None:
            self._context.load_cert_chain(*client)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._own = local()

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        """Return the decoded answer, or text where it is no JSON. ApiError for every status from 400 on."""
        status, text = self._exchange(method, path, None if body is None else json.dumps(body).encode(), kind)
        if status >= 400:
            raise ApiError(status, text)
        return json.loads(text) if text.startswith(("{", "[")) else text

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def create(self, path: str, body: object) -> Any:
        return self.call("POST", path, body)

    def merge(self, path: str, body: object) -> Any:
        return self.call("PATCH", path, body, MERGE)

    def delete(self, path: str, **options: object) -> None:
        """Delete what is at a path, an object or a collection; it may be gone already."""
        try:
            self.call("DELETE", path, options or None)
        except ApiError as error:
            if error.status != 404:
                raise

    def create_many(self, path: str, bodies: Iterable[object]) -> None:
        """Create objects of one collection, many at once."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            for _ in pool.map(lambda body: self.create(path, body), bodies):
                pass

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        """Apply objects on the server, in this order; waits until resource definitions among them are served."""
        for each in objects:
            resource = self.resource(each["apiVersion"], each["kind"])
            where = resource.collection(each["metadata"].get("namespace", namespace))
            name = each["metadata"]["name"]
            self.call("PATCH", f"{where}/{name}?fieldManager=tests&force=true", each, APPLY)
            if each["kind"] == "CustomResourceDefinition":
                wait_until(f"{name} is not served", lambda name=name: self._is_established(name))

    def apply_files(self, files: Sequence[Path], *, namespace: str = "default") -> None:
        """Apply every object of YAML files."""
        found = [each for file in files for each in yaml.load_all(file.read_text(), YAML) if each]
        self.apply(*found, namespace=namespace)

    def resource(self, version: str, kind: str) -> Resource:
        """How the server calls the objects of a kind."""
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for each in self.get(path)["resources"]:
            if each["kind"] == kind and "/" not in each["name"]:
                return Resource(path, each["name"], each["namespaced"])
        raise LookupError(f"the API server has no {kind} in {version}")

    def _is_established(self, name: str) -> bool:
        """A definition is established a moment before discovery shows its kind."""
        found = self.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        conditions = found.get("status", {}).get("conditions") or ()
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return False
        spec = found["spec"]
        served = [each["name"] for each in spec["versions"] if each["served"]]
        return all(self._serves(f"{spec['group']}/{version}", spec["names"]["kind"]) for version in served)

    def _serves(self, version: str, kind: str) -> bool:
        try:
            self.resource(version, kind)
        except (ApiError, LookupError):
            return False
        return True

    def _exchange(self, method: str, path: str, body: bytes | None, kind: str) -> tuple[int, str]:
        """A connection that the server has closed meanwhile is opened anew, once."""
        headers = {**self._headers, "Content-Type": kind}
        for is_last in (False, True):
            try:
                connection = self._connection()
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except (OSError, HTTPException):
                self._own.connection.close()
                if is_last:
                    raise
        raise AssertionError

    def _connection(self) -> HTTPSConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = HTTPSConnection(self._host, context=self._context, timeout=60)
        return self._own.connection
