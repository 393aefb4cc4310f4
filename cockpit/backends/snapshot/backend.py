"""The backend of a snapshot file. Its clock stays at the moment of the snapshot, and nothing can be changed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine.machine import Machine
from cockpit.errors import CockpitError, SpecErrors
from cockpit.formats.snapshotfile import SchedulerReport, Snapshot
from cockpit.model import forecast
from cockpit.model.capabilities import EMBEDDED, Capabilities
from cockpit.model.ids import JobId, Millis
from cockpit.model.operations import Style
from cockpit.protocol.operations import SHELL, TABLE
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import msgspec

    from cockpit.backends.base import ShellSession
    from cockpit.model.asking import ShellRequest
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import Priorities, PriorityRow
    from cockpit.runtime.engine import Engine

T = TypeVar("T")

FIXED = "This is a snapshot: it shows a cluster as it was, and nothing can be changed in it."
_NOTHING = SchedulerReport()
CAPABILITIES = Capabilities(
    {
        **EMBEDDED.absent,
        # A shell changes nothing by itself but needs a container, and a snapshot has only the description of one.
        **{name: FIXED for name, row in TABLE.items() if row.style is Style.CHANGES or name == SHELL},
    }
)


async def open_snapshot(snapshot: Snapshot, user: str) -> SnapshotBackend:
    """Open a snapshot and plan its queue; `user` is the user as whose jobs specs are predicted."""
    with contradictions():
        engine = await offline_engine(
            Machine(snapshot.state), (), VirtualClock(snapshot.at), f"{snapshot.cluster} · snapshot"
        )
        await look(engine)
    return SnapshotBackend(engine, snapshot, user)


@contextmanager
def contradictions() -> Iterator[None]:
    """Turn any exception into an error about the snapshot.

    A snapshot may contradict itself in more ways than `snapshot_errors` checks, and the scheduler then fails anywhere.
    For any other backend such an exception is a defect of cockpit.
    """
    try:
        yield
    except CockpitError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SpecErrors(
            [f"The snapshot contradicts itself, so this cannot be shown ({why}). Create it again."]
        ) from error


class SnapshotBackend(InProcessBackend):
    """Answers from a snapshot.

    Beside the embedded scheduler's reasons and predictions it shows those of the cluster's own scheduler, which the
    snapshot contains.
    """

    def __init__(self, engine: Engine, snapshot: Snapshot, user: str) -> None:
        super().__init__(engine, read_only_actor(user))
        self._snapshot = snapshot

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def now(self) -> Millis:
        """Return the moment of the snapshot."""
        return self._snapshot.at

    async def snapshot(self) -> Snapshot:
        return self._snapshot

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        with contradictions():
            return await super().read(op, args, answer)

    async def read_pieces(self, op: str, args: msgspec.Struct) -> Sequence[bytes | msgspec.Raw]:
        with contradictions():
            return await super().read_pieces(op, args)

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        outlook = await super().explain(job, task=task)
        recorded = self._snapshot.reports.get(outlook.job, _NOTHING)
        return replace(outlook, scheduler_start_at=recorded.starts_at, scheduler=self._snapshot.scheduler)

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        return [replace(each, scheduler=self._snapshot.scheduler) for each in await super().predict(specs)]

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        answer = await super().priorities(weights)
        return replace(answer, rows=tuple(map(self._with_recorded, answer.rows))) if self._snapshot.reports else answer

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        del request
        refuse(FIXED)

    def _with_recorded(self, row: PriorityRow) -> PriorityRow:
        """Return the row with the priority that the cluster's own scheduler had for the job in this partition."""
        recorded = self._snapshot.reports.get(row.job, _NOTHING).priorities
        return replace(row, reported=next((each for each in recorded if each.partition == row.partition), None))
