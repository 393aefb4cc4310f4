"""The fields of a kind's spec, by the schema that the cluster itself serves.

Clusters have kinds of one name and version with different fields. Source: OpenAPI v3, which a server publishes for each
version of an API group (`/openapi/v3`, Kubernetes 1.24 and later).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from cockpit.backends.kubernetes.resources import Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import JSON, Api
from cockpit.errors import Unreachable


class _KindName(msgspec.Struct, frozen=True):
    kind: str = ""
    version: str = ""


class _Spec(msgspec.Struct, frozen=True):
    """Schemas of fields are left as they are: they take most of a document of a megabyte."""

    properties: dict[str, msgspec.Raw] | None = None


class _Parts(msgspec.Struct, frozen=True):
    spec: _Spec | None = None


class _Schema(msgspec.Struct, frozen=True):
    properties: _Parts | None = None
    kinds: tuple[_KindName, ...] | None = msgspec.field(default=None, name="x-kubernetes-group-version-kind")


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, _Schema] = {}


class _Document(msgspec.Struct, frozen=True):
    components: _Components = _Components()


_DOCUMENT = msgspec.json.Decoder(_Document)


class SpecFields(NamedTuple):
    """The fields in the spec of a kind."""

    names: frozenset[str] | None = None
    """None: the cluster does not say, or takes any field."""
    tag: str = ""
    """The ETag of the answer that says so; empty: it has none."""


async def spec_fields(api: Api, resource: Resource, known: SpecFields) -> SpecFields:
    """Return the fields in the spec of a kind. `known`: what the server said last, which it need not repeat."""
    path = f"/openapi/v3/apis/{resource.group}/{resource.version}"
    try:
        answer = await api.get_unless(known.tag, path, accept=JSON)
        if answer is None:
            return known
        document = _DOCUMENT.decode(answer.body)
    except ApiError as error:
        if error.is_absent or error.is_forbidden:
            return SpecFields()
        raise
    except msgspec.DecodeError as error:
        raise Unreachable(f"The API server's answer about {path} cannot be read: {error}.") from error
    for schema in document.components.schemas.values():
        if not any((each.kind, each.version) == (resource.kind, resource.version) for each in schema.kinds or ()):
            continue
        spec = schema.properties.spec if schema.properties is not None else None
        # Kubernetes' own kinds name the schema of their spec, and have the same fields everywhere.
        names = frozenset(spec.properties) if spec is not None and spec.properties else None
        return SpecFields(names, answer.tag)
    return SpecFields()
