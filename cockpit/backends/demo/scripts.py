"""Computes how long a job runs and how it ends, from the fixture, the seed and the job alone."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.demo.fixture import Outcome, Printing
from cockpit.model.attempt import ExitStatus
from cockpit.model.spec import JobKind

if TYPE_CHECKING:
    from cockpit.backends.demo.fixture import Fixture, Template
    from cockpit.model.spec import JobSpec

HOUR_MS = 3_600_000
FAILS_WITHIN = (0.01, 0.35)
"""The part of its time limit within which a failing job fails: most failures come early."""
OWN_RUN_SECONDS = (120, 900)
"""The run time of a job that is not from the fixture."""

_EXITS = {
    Outcome.SUCCESS: ExitStatus(code=0),
    Outcome.ERROR: ExitStatus(code=1),
    Outcome.BAD_INPUT: ExitStatus(code=3),
    Outcome.OOM: ExitStatus(signal=9, oom=True),
    Outcome.LOST: ExitStatus(lost="its container was killed from outside: the holder process is gone"),
    Outcome.TIMEOUT: ExitStatus(code=0),
}


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """The course of one run. All replicas of a job have the same."""

    printing: Printing
    begins_ms: int
    """The time until the command runs, in which the container is made."""
    runs_ms: int | None
    """The time from then to the end; None: until a user ends it."""
    exit: ExitStatus
    decisive_rank: int = 0
    """The replica that fails; the others wait for it, as in a collective."""
    winds_down_ms: int | None = 2_000
    """The time from the request to end until the end; None: it has to be killed."""

    def runs_of(self, rank: int) -> int | None:
        """Return how long one replica runs by itself."""
        return self.runs_ms if self.exit.ok or rank == self.decisive_rank else None


_SESSION = Script(printing=Printing.NOTEBOOK, begins_ms=2_000, runs_ms=None, exit=ExitStatus(code=0))


class Scripts:
    """Finds the script of any job: a fixture's by the template in its name, a person's own by its command."""

    def __init__(self, fixture: Fixture, seed: int) -> None:
        self._fixture = fixture
        self._seed = seed

    def chance(self, *about: object) -> Random:
        """Chance that is the same for the same seed and subject, whatever else was drawn before."""
        return Random("/".join(map(str, (self._seed, *about))))  # noqa: S311 - a story, no secret

    def of(self, spec: JobSpec) -> Script:
        # By the name and not the id: a job that is requeued or cloned under its name behaves the same.
        chance = self.chance("run", spec.name)
        if spec.kind is JobKind.INTERACTIVE:
            return _SESSION
        template = self._fixture.template_of(spec.name)
        return _own(spec, chance) if template is None else _draw(template, spec, chance)


def _draw(template: Template, spec: JobSpec, chance: Random) -> Script:
    """Return what a job will do, drawn from the outcomes of its template."""
    (outcome,) = chance.choices(list(template.outcomes), list(template.outcomes.values()))
    share = chance.uniform(*(template.uses if outcome is Outcome.SUCCESS else FAILS_WITHIN))
    return Script(
        printing=template.printing,
        # Larger jobs start more slowly, since the slowest of their containers decides.
        begins_ms=chance.randrange(1_500, 9_000) + 2_000 * spec.nodes,
        runs_ms=None if outcome is Outcome.TIMEOUT else int(share * spec.time_limit_seconds * 1000),
        exit=_EXITS[outcome],
        decisive_rank=chance.randrange(spec.nodes),
        winds_down_ms=None if chance.random() < 0.2 else chance.randrange(500, 20_000),
    )


def _own(spec: JobSpec, chance: Random) -> Script:
    """Return the script of a command: `sleep 60`, `exit 3` and `false` do what they say, any other command runs some
    minutes and succeeds."""
    slept = re.search(r"\bsleep\s+(\d+)", spec.command)
    left = re.search(r"\bexit\s+(\d+)", spec.command)
    fails = 1 if re.search(r"(^|[;&|]\s*)false\b", spec.command) else 0
    seconds = int(slept[1]) if slept else 5 if left or fails else chance.randint(*OWN_RUN_SECONDS)
    return Script(
        printing=Printing.TRAINING,
        begins_ms=2_000,
        runs_ms=seconds * 1000,
        exit=ExitStatus(code=int(left[1]) & 255 if left else fails),
    )
