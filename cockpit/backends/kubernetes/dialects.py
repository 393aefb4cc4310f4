"""Puts the fields of a job where this cluster's own kinds have them.

PyTorchJob and TFJob exist twice under the name `kubeflow.org/v1`: those of the training operator have a run policy,
those of arena have its fields in the spec itself, and neither suspension nor elastic workers. A server drops fields
that it does not know without a word, so that the schema is read first. An administrator may put one definition in the
place of the other while cockpit runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

from cockpit.backends.kubernetes.mapping.elastic_training import is_implied
from cockpit.backends.kubernetes.resources import KUBEFLOW, PODS, TRAINING_JOBS, Resource
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.schema import SpecFields, spec_fields
from cockpit.errors import RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind

KEPT_SECONDS = 10.0
"""How long fields are used before the server is asked whether they are still these: a file may have a thousand jobs."""
_POLICY = "runPolicy"
_WITHOUT_SUSPENSION = frozenset({"", "apps"})
"""Groups of Kubernetes' own kinds that have no suspension."""
_WORDS: Mapping[str, str] = {
    "suspend": "be suspended or held",
    "activeDeadlineSeconds": "have a time limit",
    "elasticPolicy": "be elastic",
    "schedulingPolicy": "name a queue",
    "backoffLimit": "be restarted after failures",
    "cleanPodPolicy": "keep the pods of failed replicas",
}
"""What a job could do with each field."""


class Dialects:
    """The fields of this cluster's kinds of jobs, each read when it is needed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._fields: dict[Resource, tuple[float, SpecFields]] = {}
        """The fields, and when they were read, as the event loop counts time."""

    async def arranged(self, resource: Resource, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return a manifest of the training operator's form in that of the cluster.

        Raises `RequestRefused` for a field that the cluster's kind lacks.
        """
        known = await self._known(resource)
        spec = manifest["spec"]
        if known is None or (_POLICY in known and spec.keys() <= known):
            return manifest
        if _POLICY not in known:
            spec = {**{name: value for name, value in spec.items() if name != _POLICY}, **spec.get(_POLICY, {})}
        if resource == TRAINING_JOBS:
            spec = {name: value for name, value in spec.items() if name in known or not is_implied(name, spec)}
        _check(resource, spec, known)
        return {**manifest, "spec": spec}

    async def patch(self, resource: Resource, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the patch that sets these fields of a job's run policy where the kind has them.

        Raises `RequestRefused` for a field that it has nowhere.
        """
        if resource.group in _WITHOUT_SUSPENSION and "suspend" in fields:
            kind = "bare pod" if resource == PODS else resource.kind
            _refuse(f"A {kind} cannot be suspended; cancel it.")
        known = await self._known(resource)
        if known is None:
            inside = resource.group == KUBEFLOW
        else:
            inside = _POLICY in known
            if not inside:
                _check(resource, fields, known)
        return {"spec": {_POLICY: dict(fields)} if inside else dict(fields)}

    async def _known(self, resource: Resource) -> frozenset[str] | None:
        """Return the fields of the kind's spec; None: any field may be there."""
        # Kubernetes' own kinds have the same fields everywhere.
        if "." not in resource.group:
            return None
        read_at, fields = self._fields.get(resource, (0.0, SpecFields()))
        now = asyncio.get_running_loop().time()
        # A server publishes the schema of a new kind a moment after it serves the kind.
        if fields.names is None or now >= read_at + KEPT_SECONDS:
            fields = await spec_fields(self._api, resource, fields)
            self._fields[resource] = now, fields
        return fields.names


def _check(resource: Resource, fields: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in fields:
        if name not in known:
            about = _WORDS.get(name, f"have {name}")
            _refuse(f"A {resource.kind} of this cluster cannot {about}: its definition has no field {name}.")


def _refuse(message: str) -> NoReturn:
    raise RequestRefused(Refusal(RefusalKind.INVALID, message))
