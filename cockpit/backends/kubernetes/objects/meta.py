"""What every object has. Source: meta/v1 ObjectMeta."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.model.ids import Millis


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The object that made this one, and with which it is deleted."""

    uid: str
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group of its kind; empty: the core group."""
        return self.api_version.rpartition("/")[0]


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Metadata of an object. Labels and annotations are kept as they are: others than cockpit wrote them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    @property
    def created_at(self) -> Millis:
        return millis(self.creation_timestamp) or Millis(0)

    @property
    def controller(self) -> OwnerReference | None:
        """The object that controls this one; None: none does."""
        owners = self.owner_references or ()
        return next((each for each in owners if each.controller), None)

    def label(self, key: str) -> str:
        return (self.labels or {}).get(key, "")

    def annotation(self, key: str) -> str:
        return (self.annotations or {}).get(key, "")


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition of an object (meta/v1 Condition, and the older forms of it)."""

    type: str = ""
    """Empty in Volcano's jobs, whose conditions are the phases that they went through."""
    status: str = ""
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def millis(at: datetime | None) -> Millis | None:
    """Return the moment in milliseconds; None for None."""
    return None if at is None else Millis(int(at.timestamp() * 1000))


def condition(conditions: tuple[Condition, ...] | None, kind: str) -> Condition | None:
    """Return the condition of this type, if the object has it."""
    return next((each for each in conditions or () if each.type == kind), None)
