"""A real host, beside which alerts are sent, and two alerts about a sample job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.attempt import Slow
from cockpit.model.catalogue import UserEntry
from cockpit.model.events import CatalogueChanged
from cockpit.model.ids import Millis, NodeName
from cockpit.runtime.alerts import PAUSES, AlertLimit, Alerts, Channels
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.troubles import Outages
from tests.builders import NOON
from tests.doubles.samples import job
from tests.runtime.host_world import BY_ANN, World

if TYPE_CHECKING:
    from pathlib import Path

FELL = Alert(
    kind=AlertKind.PERFORMANCE, at=Millis(NOON), slow=Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0), threshold=0.9
)
FAULT = Alert(kind=AlertKind.FAULT, at=Millis(NOON), nodes=(NodeName("n03"),), because="card 2 does not answer")


class PatientClock(VirtualClock):
    """Shows one time, and lets the pauses between two tries pass at once."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.waits: list[int] = []

    async def wait_until(self, at: Millis) -> None:
        if at - NOON not in [1000 * each for each in PAUSES]:
            await super().wait_until(at)
            return
        self.waits.append(at - NOON)


async def alert_world(folder: Path, address: str = "ann@example.org") -> World:
    """Begin a host whose catalogue has the mail address of the sample job's owner."""
    world = World(folder, PatientClock())
    await world.begin()
    owner = UserEntry(name=job().submitter.name, email=address)
    await world.host.act(lambda *_: [CatalogueChanged((owner,))], BY_ANN)
    return world


def alerts_of(world: World, outages: Outages | None = None, per_hour: int = 60, **channels: Any) -> Alerts:
    return Alerts("lab", Channels(**channels), world.host, AlertLimit(per_hour), outages or Outages())


def private(file: Path, text: str, mode: int = 0o600) -> str:
    """Write a file with a secret, and return its path."""
    file.write_text(text)
    file.chmod(mode)
    return str(file)
