"""Containers of other images beside those of a running pod, for shells in pods whose own image has none.

Source: core/v1 EphemeralContainer. One shares the target's processes and volumes, has no resources of its own, and can
never be removed: it ends with the pod, or when its command ends.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from cockpit.backends.kubernetes.objects.pod import ContainerStatus, Pod
from cockpit.backends.kubernetes.resources import PODS
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.wire.api import Api

_STRATEGIC = "application/strategic-merge-patch+json"
_PREFIX = "cockpit-debug-"
_WAITS = ("sh", "-c", "trap 'exit 0' TERM INT; sleep 86400 & wait")
"""What the container runs beside the shells in it, which use `exec`."""
START_SECONDS = 120.0
"""Longest time until the container runs: its image may have to be pulled."""
LOOK_SECONDS = 0.3
_FAILED = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerError", "RunContainerError"}
)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Of a pod: the volumes of its containers, which a debug container gets, too."""

    containers: tuple[dict[str, Any], ...] = ()
    ephemeral_containers: tuple[dict[str, Any], ...] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None


class _Debugged(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()
    status: _Status = _Status()


_DECODER = msgspec.json.Decoder(_Debugged)


async def debug_container(api: Api, pod: Pod, image: str) -> str:
    """Return the name of a running debug container with this image in the pod; make it where there is none.

    Raises `RequestRefused` where the server or the image does not allow it.
    """
    path = PODS.path(pod.metadata.namespace, pod.metadata.name)
    present = await _read(api, path)
    stem = _PREFIX + hashlib.sha256(image.encode()).hexdigest()[:8]
    states = {each.name: each.state for each in present.status.ephemeral_container_statuses or ()}
    for name, state in states.items():
        if name.startswith(stem) and state is not None and state.running is not None:
            return name
    # Names of containers that have ended stay taken.
    taken = {each["name"] for each in present.spec.ephemeral_containers or ()}
    name = next(name for number in range(len(taken) + 1) if (name := f"{stem}-{number}") not in taken)
    await _add(api, path, container_of(name, image, present.spec.containers[0]))
    await _started(api, path, name, image)
    return name


def container_of(name: str, image: str, target: dict[str, Any]) -> dict[str, Any]:
    """Return the debug container beside a container of a pod."""
    # A debug container may not mount a part of a volume.
    mounts = [each for each in target.get("volumeMounts") or () if not {"subPath", "subPathExpr"} & each.keys()]
    return {
        "name": name,
        "image": image,
        "command": list(_WAITS),
        "targetContainerName": target["name"],
        **({"volumeMounts": mounts} if mounts else {}),
    }


async def _add(api: Api, path: str, container: dict[str, Any]) -> None:
    patch = msgspec.json.encode({"spec": {"ephemeralContainers": [container]}})
    try:
        await api.send("PATCH", f"{path}/ephemeralcontainers", patch, content=_STRATEGIC)
    except ApiError as error:
        kind = RefusalKind.DENIED if error.is_forbidden else RefusalKind.INVALID
        _refuse(f"The cluster refuses a debug container: {error.message}", kind)


async def _started(api: Api, path: str, name: str, image: str) -> None:
    """Wait until the container runs."""
    try:
        async with asyncio.timeout(START_SECONDS):
            while True:
                found = await _read(api, path)
                each = next((one for one in found.status.ephemeral_container_statuses or () if one.name == name), None)
                if each is not None and each.state is not None:
                    if each.state.running is not None:
                        return
                    if each.state.terminated is not None:
                        code = each.state.terminated.exit_code
                        _refuse(
                            f"The container of {visible(image)} ended with exit code {code}; it needs sh and sleep."
                        )
                    if each.state.waiting is not None and each.state.waiting.reason in _FAILED:
                        why = each.state.waiting.message or each.state.waiting.reason
                        _refuse(f"The container of {visible(image)} does not start: {visible(why, 300)}")
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        _refuse(
            f"The container of {visible(image)} did not start within {START_SECONDS:.0f} s.", RefusalKind.UNAVAILABLE
        )


async def _read(api: Api, path: str) -> _Debugged:
    try:
        return _DECODER.decode(await api.get(path))
    except msgspec.DecodeError as error:
        raise Unreachable(f"The API server's answer about {path} cannot be read: {error}.") from error


def _refuse(message: str, kind: RefusalKind = RefusalKind.CONFLICT) -> NoReturn:
    raise RequestRefused(Refusal(kind, message))
