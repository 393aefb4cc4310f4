"""The classes that give jobs their priorities: PriorityClass of Kubernetes, WorkloadPriorityClass of Kueue."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.kubernetes.mapping.priorities import ClassValues
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.resources import PRIORITY_CLASSES, WORKLOAD_CLASSES, WORKLOAD_CLASSES_2
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.discovery import served_among
from cockpit.backends.kubernetes.wire.lists import Page, read_list
from cockpit.backends.kubernetes.writing import refuse
from cockpit.model.asking import SiteFactor
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import PriorityWord

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.asking import WantedPriority


class PriorityClass(msgspec.Struct, frozen=True, rename="camel"):
    """A name for a priority. Sources: scheduling.k8s.io/v1 PriorityClass, kueue.x-k8s.io WorkloadPriorityClass."""

    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    """Whether pods without a class have this one."""


_PAGE = msgspec.json.Decoder(Page[PriorityClass])


KEPT_SECONDS = 60.0
"""How long the values of the classes are shown before they are read again: a screen asks each second."""


class PriorityClasses:
    """The classes of one cluster, read anew for each change: there are few, and changes are rare."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._values: tuple[float, ClassValues] | None = None
        """When the values were read, as the event loop counts time."""

    async def of_pods(self) -> Mapping[str, PriorityClass]:
        """Return the classes of pods by name; empty where the user may not list them."""
        return await self._listed(PRIORITY_CLASSES)

    async def values(self) -> ClassValues:
        """Return the values of the classes of pods, at most `KEPT_SECONDS` old."""
        now = asyncio.get_running_loop().time()
        if self._values is None or now >= self._values[0] + KEPT_SECONDS:
            known = await self.of_pods()
            default = next((name for name, each in known.items() if each.global_default), "")
            self._values = now, ClassValues({name: each.value for name, each in known.items()}, default)
        return self._values[1]

    async def of_kueue(self) -> Mapping[str, PriorityClass]:
        """Return the classes of Kueue's workloads by name; empty without Kueue."""
        served = await served_among(self._api, (WORKLOAD_CLASSES, WORKLOAD_CLASSES_2))
        return {name: each for kind in served for name, each in (await self._listed(kind)).items()}

    async def named(self, wanted: WantedPriority | str, *, of_kueue: bool) -> str | None:
        """Return the name of the class for a priority; None: without a class. Raises `RequestRefused`.

        A word or a name means the class of this name, `normal` without one of that name no class; a number means the
        class with this value.
        """
        if isinstance(wanted, SiteFactor):
            message = "Kubernetes adds nothing to a priority: it is the value of a class. Name a class's value instead."
            refuse(message, RefusalKind.INVALID)
        known = await (self.of_kueue() if of_kueue else self.of_pods())
        if isinstance(wanted, int):
            found = sorted(name for name, each in known.items() if each.value == wanted)
        else:
            found = [str(wanted)] if str(wanted) in known else []
        if not found and wanted is not PriorityWord.NORMAL:
            kind = "WorkloadPriorityClass" if of_kueue else "PriorityClass"
            what = f"the value {wanted}" if isinstance(wanted, int) else f"the name {wanted}"
            there = ", ".join(f"{name} ({each.value})" for name, each in sorted(known.items())) or "none"
            message = f"priority: the cluster has no {kind} with {what}. It has {there}."
            refuse(message, RefusalKind.INVALID)
        return found[0] if found else None

    async def _listed(self, kind: Resource) -> Mapping[str, PriorityClass]:
        try:
            return {each.metadata.name: each for each in (await read_list(self._api, kind, _PAGE)).items}
        except ApiError as error:
            if error.is_forbidden or error.is_absent:
                return {}
            raise
