"""Writes objects of a cluster: creates, changes and deletes them for the user.

Changes are merge patches of the fields that they are about, so that whatever others wrote in the object stays. An
error of the API server becomes a refusal with its kind; an answer that was lost is no refusal, since the change may
have been made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.resources import Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import MERGE_PATCH, AnswerLost, Api
from cockpit.errors import MayBeAccepted, RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.session import Changes

STRICT = ("fieldValidation", "Strict")
DRY_RUN = ("dryRun", "All")
SEEN_SECONDS = 5.0
"""Longest time to wait until a change that was made has arrived by the watches."""
MOST_TRIES = 5
"""How often a change is decided anew because the object has changed meanwhile."""
_KINDS: Mapping[int, RefusalKind] = {
    HTTPStatus.FORBIDDEN: RefusalKind.DENIED,
    HTTPStatus.NOT_FOUND: RefusalKind.NOT_FOUND,
    HTTPStatus.CONFLICT: RefusalKind.CONFLICT,
    HTTPStatus.BAD_REQUEST: RefusalKind.INVALID,
    HTTPStatus.UNPROCESSABLE_ENTITY: RefusalKind.INVALID,
}

_OTHER_UID = "metadata.uid: Invalid value"
"""What a server says of a patch that names the uid of another object."""

RawObject = Mapping[str, Any]
"""An object as the server sends it, with all its fields."""
Decide = Callable[[RawObject], Mapping[str, Any] | None]
"""Returns the merge patch of a change of this object; None: nothing is to be changed. Raises `RequestRefused`."""


class _Object(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Any = None


_OBJECT = msgspec.json.Decoder(_Object)


class ObjectWriter:
    """Sends the changes of one user."""

    def __init__(self, api: Api, inventory: Inventory, changes: Changes) -> None:
        self._api, self._inventory, self._changes = api, inventory, changes

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """Return an object as it is now, with all its fields."""
        return dict(msgspec.json.decode(await self._sent("GET", resource.path(namespace, name))))

    async def create(
        self, resource: Resource, manifest: Mapping[str, Any], query: Sequence[tuple[str, str]] = (STRICT,)
    ) -> ObjectMeta:
        namespace = str(manifest["metadata"].get("namespace", ""))
        return await self._written("POST", resource.path(namespace), manifest, query)

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: Mapping[str, Any], *, uid: str = ""
    ) -> ObjectMeta:
        """Merge these fields into an object. `uid`: that of the object that is meant; empty: any of the name.

        The patch names no version: it sets fields to values that depend on nothing else in the object, such as
        `suspend: true`, so that a change that another made meanwhile is neither lost nor contradicted.
        """
        if uid:
            # The server refuses to change it: another object of the name may have been made meanwhile.
            patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid}}
        # Strict: another dialect of the kind may lack the field, which would be dropped without a word.
        try:
            return await self._written("PATCH", resource.path(namespace, name), patch, (STRICT,))
        except RequestRefused as refused:
            if uid and _OTHER_UID in refused.refusal.message:
                refuse(_replaced(resource, namespace, name), RefusalKind.CONFLICT)
            raise

    async def patch_status(
        self, resource: Resource, namespace: str, name: str, patch: Mapping[str, Any], query: Sequence[tuple[str, str]]
    ) -> None:
        """Merge these fields into an object's status, which its controller writes otherwise."""
        await self._written("PATCH", resource.path(namespace, name, "status"), patch, (STRICT, *query))

    async def change(
        self, resource: Resource, namespace: str, name: str, decide: Decide, *, uid: str = ""
    ) -> ObjectMeta | None:
        """Change an object by what it is now. Return None where `decide` does.

        The patch names the version that was looked at. If the object has changed since, the server refuses it,
        and it is decided anew. `uid`: that of the object that is meant; empty: any of the name.
        """
        for last in (*[False] * (MOST_TRIES - 1), True):
            present = await self.read(resource, namespace, name)
            if uid and present["metadata"]["uid"] != uid:
                refuse(_replaced(resource, namespace, name), RefusalKind.CONFLICT)
            patch = decide(present)
            if patch is None:
                return None
            version = {"resourceVersion": present["metadata"]["resourceVersion"]}
            versioned = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
            try:
                return await self.patch(resource, namespace, name, versioned)
            except RequestRefused as error:
                if last or error.refusal.kind is not RefusalKind.CONFLICT:
                    raise
        raise AssertionError("the loop returns or raises")

    async def delete(
        self,
        resource: Resource,
        meta: ObjectMeta,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object, if it is still the one that was meant and not another one of its name."""
        # Background: the pods are deleted after their owner, as by kubectl; by default those of a batch/v1 Job would
        # stay.
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
            "preconditions": {"uid": meta.uid},
        }
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._sent("DELETE", resource.path(meta.namespace, meta.name), msgspec.json.encode(options))

    async def until_seen(self, *written: ObjectMeta) -> None:
        """Wait until these versions of objects have arrived by the watches, so that the next question knows them."""
        await self.until(lambda: all(map(self._is_seen, written)))

    async def until_other(self, meta: ObjectMeta) -> None:
        """Wait until the watches have an object in another version than this, or not any more."""
        await self.until(lambda: self._inventory.version(meta) != meta.resource_version)

    async def until(self, is_so: Callable[[], bool], seconds: float = SEEN_SECONDS) -> bool:
        """Wait until the copy of the cluster is so; return False where it is not after this time."""
        try:
            async with asyncio.timeout(seconds):
                seen = self._changes.count
                while not is_so():
                    await self._changes.after(seen)
                    seen = self._changes.count
        # Where the watches are broken a change was made all the same, and the list says that it is old.
        except TimeoutError:
            return False
        return True

    def _is_seen(self, written: ObjectMeta) -> bool:
        version = self._inventory.version(written)
        if version is None:
            return not self._inventory.is_read(written)
        # A later one: versions are numbers that grow (KEP-5504), whatever older servers promise.
        numbers = version.isdigit() and written.resource_version.isdigit()
        return int(version) >= int(written.resource_version) if numbers else version == written.resource_version

    async def _written(
        self, method: str, path: str, content: Mapping[str, Any], query: Sequence[tuple[str, str]]
    ) -> ObjectMeta:
        written = _OBJECT.decode(await self._sent(method, path, msgspec.json.encode(content), query))
        # Servers older than 1.25 do not know STRICT, and drop unknown fields without a word.
        dropped = dropped_fields(content.get("spec"), written.spec, "spec") if written.spec is not None else ()
        if dropped:
            refuse(
                f"The cluster knows no {' and no '.join(dropped)} in this kind of object, and has dropped it: the API "
                "server or the definition of the kind is too old.",
                RefusalKind.UNAVAILABLE,
            )
        return written.metadata

    async def _sent(
        self, method: str, path: str, body: bytes | None = None, query: Sequence[tuple[str, str]] = ()
    ) -> bytes:
        try:
            if method == "GET":
                return await self._api.get(path, query)
            if method == "PATCH":
                return await self._api.send(method, path, body, query, content=MERGE_PATCH)
            return await self._api.send(method, path, body, query)
        except AnswerLost as error:
            if method == "GET":
                raise
            advice = "`cockpit jobs` and `cockpit nodes` show what became of it."
            raise MayBeAccepted(str(error), advice=advice) from error
        except ApiError as error:
            why = error.message
            if error.lacks_kind and path.startswith("/apis/"):
                why = f"{_kind_of(path)} are not served any more. What is served is read again; try once more."
            kind = _KINDS.get(error.code, RefusalKind.UNAVAILABLE)
            raise RequestRefused(Refusal(kind, f"The cluster refuses this: {why}")) from error


def _kind_of(path: str) -> str:
    """Return what sentences call the kind of object that a path of an API group is about, with its version."""
    _, _, group, version, *rest = path.split("/")
    plural = rest[2] if rest[0] == "namespaces" and len(rest) > len(("namespaces", "NAME")) else rest[0]
    return f"{plural}.{group}/{version}"


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7386) that makes `after` of `before`. Lists are replaced as a whole."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch


def dropped_fields(wanted: Any, written: Any, path: str) -> list[str]:  # noqa: ANN401 - any part of an object
    """Return the paths of the fields that were sent with a value and are not in the answer."""
    if isinstance(wanted, Mapping):
        # Empty values are left out of answers.
        sent = ((f"{path}.{name}", value, name) for name, value in wanted.items() if value)
        known = written if isinstance(written, Mapping) else {}
        return [
            each
            for where, value, name in sent
            for each in (dropped_fields(value, known[name], where) if name in known else [where])
        ]
    # A webhook may have put further elements into a list, anywhere.
    if isinstance(wanted, list | tuple) and isinstance(written, list) and len(wanted) == len(written):
        pairs = enumerate(zip(wanted, written, strict=True))
        return [each for place, (one, other) in pairs for each in dropped_fields(one, other, f"{path}[{place}]")]
    return []


def _replaced(resource: Resource, namespace: str, name: str) -> str:
    where = f"{namespace}/{name}" if namespace else name
    return f"{resource.title} {where} was deleted and made anew meanwhile; look at it again. Nothing was changed."


def refuse(message: str, kind: RefusalKind) -> NoReturn:
    raise RequestRefused(Refusal(kind, message))
