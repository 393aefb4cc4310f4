"""Simulates the trainings of the demo's elastic jobs: steps, checkpoints, and a speed that grows with the workers.

A step takes a part that more workers do not shorten and a part that they share. A training ends with its last step, so
that it ends sooner with more workers. A job that starts again continues from its last checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.steps import SizeSpeed, StepReport

if TYPE_CHECKING:
    from random import Random

    from cockpit.model.ids import Millis

FIXED_MS: Final = (40, 200)
"""Bounds of the part of a step that more workers do not shorten."""
SHARED_MS: Final = (600, 2400)
"""Bounds of the part of a step that one worker does alone."""
CHECKPOINT_MS: Final = 600_000
"""The time between two checkpoints with the number of workers that the job asks for."""


class Training:
    """The training of one job, over all its attempts. `runs_ms`: how long it would take with `workers` workers."""

    def __init__(self, runs_ms: int, workers: int, chance: Random) -> None:
        self._fixed_ms, self._shared_ms = chance.uniform(*FIXED_MS), chance.uniform(*SHARED_MS)
        self._total = max(1, int(runs_ms / self._step_ms(workers)))
        self._saves_every = max(1, int(CHECKPOINT_MS / self._step_ms(workers)))
        self._done = 0.0
        self._saved: int | None = None
        self._workers = 0
        self._at = 0
        self._began = self._began_at = 0
        self._measured: dict[int, tuple[int, float]] = {}

    def begin(self, now: Millis) -> None:
        """Begin an attempt, from the last checkpoint if there is one."""
        self._done = float(self._saved or 0)
        self._began, self._began_at = int(self._done), now
        self._measured, self._workers, self._at = {}, 0, now

    def go_on(self, workers: int, now: Millis) -> None:
        """Continue with another number of workers."""
        self._advance(now)
        self._workers = workers

    def save(self, now: Millis) -> None:
        """Save a checkpoint, as on a request to end."""
        self._advance(now)
        self._saved = int(self._done)

    def left_ms(self, now: Millis) -> int:
        """Return how long it still takes with the present workers, of which there must be one."""
        self._advance(now)
        return int((self._total - self._done) * self._step_ms(self._workers)) + 1

    def report(self, now: Millis) -> StepReport:
        """Return what its first worker would have reported by now."""
        self._advance(now)
        return StepReport(
            step=int(self._done),
            began=self._began,
            began_at=self._began_at,
            total=self._total,
            checkpoint=self._saved,
            speeds=tuple([SizeSpeed(size, steps, ms) for size, (steps, ms) in self._measured.items() if steps]),
        )

    def _step_ms(self, workers: int) -> float:
        return self._fixed_ms + self._shared_ms / workers

    def _advance(self, now: Millis) -> None:
        """Do the steps up to now, with the checkpoints on the way."""
        if self._workers and now > self._at:
            before, lasted = self._done, now - self._at
            self._done = min(self._total, before + lasted / self._step_ms(self._workers))
            steps, ms = self._measured.get(self._workers, (0, 0.0))
            self._measured[self._workers] = (steps + int(self._done) - int(before), ms + lasted)
            saved = int(self._done) // self._saves_every * self._saves_every
            # None before the first one, and never an older one than the last.
            self._saved = max(saved, self._saved or 0) or None
        self._at = now
