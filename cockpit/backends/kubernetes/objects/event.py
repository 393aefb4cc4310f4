"""Events: what Kubernetes' components report of objects. Source: core/v1 Event.

Events of events.k8s.io are the same objects under other names of their fields.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from cockpit.backends.kubernetes.objects.meta import ObjectMeta, millis
from cockpit.model.ids import Millis


class EventObject(msgspec.Struct, frozen=True, gc=False):
    """The object that an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class EventSeries(msgspec.Struct, frozen=True, rename="camel"):
    """Repetitions of an event."""

    count: int = 0
    last_observed_time: datetime | None = None


class EventSource(msgspec.Struct, frozen=True):
    """The component that reports, in older events."""

    component: str = ""


class KubeEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One event, or several equal ones."""

    metadata: ObjectMeta
    involved_object: EventObject = EventObject()
    reason: str = ""
    message: str = ""
    count: int = 0
    series: EventSeries | None = None
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    reporting_component: str = ""
    source: EventSource = EventSource()

    @property
    def at(self) -> Millis:
        """When it was last reported."""
        repeated = self.series.last_observed_time if self.series is not None else None
        moments = (repeated, self.last_timestamp, self.event_time, self.first_timestamp)
        return millis(next((each for each in moments if each is not None), None)) or self.metadata.created_at

    @property
    def times(self) -> int:
        """How often it was reported."""
        return max(1, self.count, self.series.count if self.series is not None else 0)

    @property
    def by(self) -> str:
        return self.reporting_component or self.source.component
