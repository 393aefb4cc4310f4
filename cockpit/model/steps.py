"""How far a training is: the steps that its workers report, what interruptions have cost, and when it will end.

A *step* is one update of the model. Reports come from the script (`cockpit.elastic`), so they are not trusted: numbers
have bounds, and no decision about resources depends on them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from cockpit.model.ids import Millis

Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]


class SizeSpeed(msgspec.Struct, frozen=True, array_like=True):
    """The steps that were done with a number of workers, and the time that they took."""

    workers: Annotated[int, msgspec.Meta(ge=1, le=10**6)]
    steps: Count
    ms: Annotated[float, msgspec.Meta(ge=0, le=10**13)]

    @property
    def per_second(self) -> float | None:
        """The steps per second; None: none has been measured."""
        return 1000 * self.steps / self.ms if self.steps and self.ms else None


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker has reported of its steps. A *run* of it lasts until the number of steps falls, as it does where
    the worker loads a checkpoint again."""

    step: Count
    """The steps that are done in all."""
    began: Count
    """The steps that were done when this run began."""
    began_at: Annotated[int, msgspec.Meta(ge=0, le=10**15)] = 0
    """When this run began, by the worker's clock, in milliseconds since 1970; 0: not known."""
    run: Count = 0
    """The number of runs of this worker before this one."""
    before: Count | None = None
    """The steps that were done when the run before this one ended; None: this is the first one."""
    total: Count | None = None
    """The steps of the whole training; None: the script does not say."""
    checkpoint: Count | None = None
    """The steps in the last checkpoint that this worker has completed; None: it has reported none."""
    speeds: Annotated[tuple[SizeSpeed, ...], msgspec.Meta(max_length=64)] = ()
    """By number of workers, what this worker has measured."""
    counted: bool = False
    """Whether the steps are the lines of its log about iterations, since its script reports none. They count from the
    start of the worker, and a checkpoint that it has loaded is not known."""


class Interruption(StrEnum):
    """Why a training had to go on in another ring or attempt."""

    RECLAIMED = "reclaimed"
    """The provider took a node back, its price rose, or it ran short of memory."""
    PREEMPTED = "preempted"
    """Another job got resources."""
    WORKER_FAILED = "worker_failed"
    """A worker ended, was killed or was lost."""
    NODE_FAULT = "node_fault"
    """A component of a node has failed."""
    MOVED = "moved"
    """It was moved to other nodes, because its iterations were slow."""
    REQUEUED = "requeued"
    """A user requeued it."""
    GREW = "grew"
    """Workers were added."""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """How a training went on after an interruption."""

    at: Millis
    cause: Interruption
    workers_version: int
    """The version of the list of workers with which it went on."""
    reached: int | None
    """The steps that were done before; None: not known."""
    resumed: int
    """The steps with which it went on: those of the checkpoint that was loaded."""

    @property
    def lost(self) -> int | None:
        """The steps that had to be done again; None: not known."""
        return None if self.reached is None else max(0, self.reached - self.resumed)


class RingChange(msgspec.Struct, frozen=True, kw_only=True):
    """The last change of the workers that train together, in an attempt."""

    version: int
    """The version of the list of workers with this change."""
    at: Millis
    cause: Interruption


class SpeedSource(StrEnum):
    """How the speed with a number of workers is known."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    """By the speeds that were measured with other numbers of workers."""
    PROPORTIONAL = "proportional"
    """Assumed to be proportional to the number of workers, since the job has had only one size so far."""


class SizeForecast(msgspec.Struct, frozen=True, kw_only=True):
    """When the training would end if it had a number of workers from now on."""

    workers: int
    per_second: float
    """Steps per second."""
    source: SpeedSource
    end_at: Millis | None = None
    """None: the number of steps of the whole training is not known."""


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """What an elastic job had above its least number of workers, and what its nodes cost."""

    card_milli_ms: int = 0
    """Thousandths of a card × milliseconds."""
    cpu_ms: int = 0
    """CPUs × milliseconds."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an elastic job's training, as far as it is known."""

    step: int | None = None
    """The steps that are done; None: no worker has reported any."""
    total: int | None = None
    checkpoint: int | None = None
    """The steps in the last checkpoint; None: none is known."""
    counted: bool = False
    """Whether the steps are counted lines of the log, see `StepReport.counted`."""
    speeds: tuple[SizeSpeed, ...] = ()
    """What was measured, by number of workers, in all attempts."""
    resumptions: tuple[Resumption, ...] = ()
    """How it went on after each interruption, the oldest first."""
    unknown: int = 0
    """The number of interruptions after which it is not known how it went on."""
    ends: tuple[SizeForecast, ...] = ()
    """When it would end with the least number of workers, the present one, one between this and the most, the most."""
    limit_at: Millis | None = None
    """When its time limit ends it; None: it does not run."""
    extra: Extra = Extra()

    @property
    def lost(self) -> int:
        """The steps that all interruptions have cost, as far as it is known."""
        return sum(each.lost or 0 for each in self.resumptions)
