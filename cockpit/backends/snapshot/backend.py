"""A snapshot as a backend. Time stands still in it, and nothing can be done there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cockpit.backends.inprocess import InProcessBackend
from cockpit.errors import CockpitError, SpecErrors
from cockpit.formats.snapshotfile import Snapshot, Told
from cockpit.model import forecast
from cockpit.model.ids import JobId, Millis
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.offline_engine import look, offline_engine, read_only_actor, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import msgspec

    from cockpit.backends.base import ShellSession
    from cockpit.model.asking import ShellRequest
    from cockpit.model.jobrow import JobRows
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import Priorities, PriorityRow
    from cockpit.runtime.engine import Engine

T = TypeVar("T")

FIXED = "This is a snapshot: it shows a cluster as it was, and nothing can be done there."
_NOTHING = Told()


async def open_snapshot(snapshot: Snapshot, user: str) -> SnapshotBackend:
    """Planned and ready to be asked by this user, in whose name jobs are predicted."""
    with contradictions():
        engine = await offline_engine(snapshot.state, (), VirtualClock(snapshot.at), f"{snapshot.cluster} · snapshot")
        await look(engine)
    return SnapshotBackend(engine, snapshot, user)


@contextmanager
def contradictions() -> Iterator[None]:
    """A snapshot may contradict itself in more ways than `snapshot_errors` knows; the core, which is made for states
    that add up, then fails anywhere. Outside this file such an exception is a defect of cockpit."""
    try:
        yield
    except CockpitError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SpecErrors(
            [f"The snapshot contradicts itself, so this cannot be shown ({why}). Make it anew."]
        ) from error


class SnapshotBackend(InProcessBackend):
    """Implements `LiveBackend`. Beside what the core says stands what the cluster's own scheduler told."""

    def __init__(self, engine: Engine, snapshot: Snapshot, user: str) -> None:
        super().__init__(engine, read_only_actor(user))
        self._snapshot = snapshot

    def now(self) -> Millis:
        """Its moment."""
        return self._snapshot.at

    async def snapshot(self) -> Snapshot:
        return self._snapshot

    async def jobs(self, *, ended: bool = False) -> JobRows:
        with contradictions():
            return await super().jobs(ended=ended)

    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        with contradictions():
            return await super().read(op, args, answer)

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        found = await super().explain(job, task=task)
        told = self._snapshot.told.get(found.job, _NOTHING)
        return replace(found, told_at=told.starts_at, told_by=self._snapshot.told_by)

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        return [replace(each, told_by=self._snapshot.told_by) for each in await super().predict(specs)]

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        with contradictions():
            found = await super().priorities(weights)
        return replace(found, rows=tuple(map(self._with_told, found.rows))) if self._snapshot.told else found

    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        del op, args, answer
        refuse(FIXED)

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        del request
        refuse(FIXED)

    def _with_told(self, row: PriorityRow) -> PriorityRow:
        told = self._snapshot.told.get(row.job, _NOTHING).priorities
        return replace(row, told=next((each for each in told if each.partition == row.partition), None))
