"""The resources and volumes of a Kubernetes container as resources and mounts of a job, and back.

Source: core/v1 ResourceRequirements, Volume and VolumeMount. The job requests a container's limits: it is allocated
what it requests and no more. A writable folder of the machine becomes a volume, a read-only one a dataset, a claim
the volume of its name in the catalogue. Each is mounted below /workspace, so another mount path is noted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft, cpu_count, memory_mib, remedy
from cockpit.launch.workspace import mounted_folders
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, NodeSpec


GPU: Final = "nvidia.com/gpu"
_CARDS: Final = re.compile(
    r"[a-z0-9.-]+/(?:gpu|mlu|npu|dcu|gcu|xpu|tpu|gaudi|neuron|vgpu-number|ascend[a-z0-9-]*)", re.IGNORECASE
)
"""Whole cards, by the maker's name."""


def read_resources(resources: Mapping[str, Any], at: str, draft: Draft) -> None:
    """Read the limits of a container, or its requests without limits."""
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    for name in resources:
        if name not in {"requests", "limits"}:
            draft.lacks(f"{at}.{name}")
    # Limits win, by the order of the two.
    for name, quantity in {**requests, **limits}.items():
        if not _take(str(name), quantity, f"{at}.{name}", draft):
            draft.lacks(f"{at}.{name}={quantity}")
        # Compared as amounts: `1000m` and `1` are the same.
        elif name in requests and name in limits and _amount(name, requests[name]) != _amount(name, limits[name]):
            draft.lacks(f"{at}.requests.{name}={requests[name]}", f"the limit, {limits[name]}, is taken")


def _take(name: str, quantity: object, at: str, draft: Draft) -> bool:
    """Return whether a resource was taken. `at`: the resource, in errors."""
    if name == "cpu":
        draft.spec(cpus=_quantity(cpu_count(quantity), quantity, at, "write one, such as 4 or 500m", draft))
    elif name == "memory" and (mib := _quantity(memory_mib(quantity), quantity, at, "write one, such as 64Gi", draft)):
        draft.spec(memory=f"{mib}M")
    elif _CARDS.fullmatch(name):
        if count := draft.whole(quantity, at):
            draft.spec(cards=count)
        # The name of the resource is the model's maker, and a job file has models.
        if not name.endswith("/gpu"):
            draft.lacks(name, "cards of any model will do; name those that are meant under card_models")
    else:
        return False
    return True


def _quantity(amount: int | None, quantity: object, at: str, usual: str, draft: Draft) -> int | None:
    """Return the amount that a quantity was read as; None is an error of the draft."""
    if amount is None:
        draft.refuse(at, f"{visible(str(quantity))} is no quantity of Kubernetes; {remedy(quantity, usual)}")
    return amount


def _amount(name: str, quantity: object) -> object:
    return {"cpu": cpu_count, "memory": memory_mib}.get(name, str)(quantity)


def limits_of(spec: NodeSpec) -> dict[str, Any]:
    limits: dict[str, Any] = {"cpu": str(spec.cpus), "memory": f"{spec.memory_mib}Mi"} if spec.cpus else {}
    if spec.card_milli >= WHOLE_CARD:
        limits[GPU] = spec.whole_cards
    return limits


_VOLUMES: Final = "/workspace/volume"
_DATASETS: Final = "/workspace/dataset/private"


def read_volumes(volumes: Collection[Any], mounts: Collection[Any], at: str, draft: Draft) -> None:
    """Read the mounts of a container, and note volumes that none mounts."""
    known = {str(each.get("name", "")): each for each in volumes}
    used = set()
    for mount in mounts:
        name = str(mount.get("name", ""))
        used.add(name)
        volume = known.get(name, {})
        if not _take_volume(name, volume, mount, at, draft):
            # A volume has one key beside its name, which is its kind (core/v1 VolumeSource).
            kinds = [kind for kind in volume if kind != "name"] or ["volume"]
            part = " with a subPath" if mount.get("subPath") else ""
            draft.lacks(f"{at}…volumeMounts[{name}]", f"its {kinds[0]}{part} has no counterpart here; left out")
        for left in mount:
            if left not in {"name", "mountPath", "readOnly", "subPath"}:
                draft.lacks(f"{at}…volumeMounts[{name}].{left}")
    for name in known:
        if name not in used:
            draft.lacks(f"{at}.template.spec.volumes[{name}]", "no container mounts it; left out")


def take_folder(name: str, path: str, wanted: str, at: str, draft: Draft, *, read_only: bool = False) -> None:
    """Add a mounted folder to the job, and note where its place differs from the wanted one.

    `path`: on the machine; empty: the catalogue's of that name. `wanted`: where the container would have it.
    """
    field, place = ("datasets", _DATASETS) if read_only else ("volumes", _VOLUMES)
    taken = {each["name"] for each in draft.values.get(field, [])}
    # A catalogue's name without a path cannot be changed: it is what finds the folder.
    if name in taken and path:
        # Two mounts of one volume with different paths: a job's folders have different names.
        name = next(f"{name}-{number}" for number in count(2) if f"{name}-{number}" not in taken)
    folder = {"name": name, **({"path": path} if path else {}), **({"read_only": True} if read_only else {})}
    draft.values.setdefault(field, []).append(folder)
    if wanted.rstrip("/") != f"{place}/{name}":
        draft.lacks(at, f"is shown as {place}/{name} instead of {wanted}")


def _take_volume(name: str, volume: Mapping[str, Any], mount: Mapping[str, Any], at: str, draft: Draft) -> bool:
    """Return whether a mount was taken."""
    wanted, at = str(mount.get("mountPath", "")), f"{at}…volumeMounts[{name}]"
    sub = str(mount.get("subPath", "") or "")
    if folder := volume.get("hostPath"):
        path = posixpath.join(*filter(None, (str(folder.get("path", "")), sub)))
        take_folder(name, path, wanted, at, draft, read_only=bool(mount.get("readOnly")))
        return True
    # A folder of the catalogue is mounted as a whole.
    if (claim := volume.get("persistentVolumeClaim")) and not sub:
        read_only = bool(mount.get("readOnly") or claim.get("readOnly"))
        take_folder(str(claim.get("claimName", name)), "", wanted, at, draft, read_only=read_only)
        draft.lacks(f"{at}.persistentVolumeClaim", "is the volume of that name in the catalogue")
        return True
    if "emptyDir" in volume and wanted == "/dev/shm":  # noqa: S108 - the container's own
        draft.lacks(at, "every container has a /dev/shm as large as its memory; left out")
        return True
    return False


def written_volumes(spec: JobSpec) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return volumes and mounts of the folders that a job names by their paths."""
    writable = {f"volumes[{index}]" for index in range(len(spec.volumes))}
    # Reading makes nothing else of a pod's volumes, so that only these two come back as they were.
    named = writable | {f"datasets[{index}]" for index in range(len(spec.datasets))}
    paths = {f"volumes[{index}]": each.path for index, each in enumerate(spec.volumes)}
    paths |= {f"datasets[{index}]": each.path for index, each in enumerate(spec.datasets)}
    folders = [each for each in mounted_folders(spec) if each.what in named]
    volumes = [_volume(posixpath.basename(each.target), paths[each.what]) for each in folders]
    mounts = [
        {
            "name": posixpath.basename(each.target),
            "mountPath": each.target,
            **({} if each.what in writable else {"readOnly": True}),
        }
        for each in folders
    ]
    return volumes, mounts


def _volume(name: str, path: str) -> dict[str, Any]:
    """Return a folder of the machine as a volume, or a claim where the catalogue knows it."""
    return {"name": name, **({"hostPath": {"path": path}} if path else {"persistentVolumeClaim": {"claimName": name}})}
