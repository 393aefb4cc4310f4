"""Manners: the same question is asked once for as long as its answer is fresh, whoever asks; a slow cluster is asked
more seldom; a passing fault is tried again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from random import Random
from typing import NamedTuple, Protocol

from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.mapping.whole import flaw
from cockpit.backends.slurm.wire.calls import PASSING, Commands, Garbled, Printed, checked, command_of
from cockpit.errors import CockpitError
from cockpit.model.ids import Millis

PATIENCE_SECONDS = 30.0
SLOW_FACTOR = 20
"""An answer that took a second is good for 20."""
TRIES = 3
PAUSE_SECONDS = 0.5
JOBS_REPORTED_BY = frozenset({"squeue", "scontrol", "sprio", "sshare", "sacct"})
"""Programs whose answers change with an act on jobs, nodes or reservations."""
PROGRAMS = JOBS_REPORTED_BY | {"sacctmgr"}
FAILED_MS = 3_000
"""Before a question that failed is asked again, and as long as it took twice."""

Fetch = Callable[[], Awaitable[Printed]]


class Shelf(Protocol):
    """Where answers lie for other cockpits of this machine."""

    async def get(self, question: str, fresh_ms: int, fetch: Fetch) -> tuple[Printed, Millis]:
        """An answer no older than that, and when it was given: someone else's, or one that is fetched now."""
        ...

    def outdate(self, program: str) -> None:
        """This user changed something that the program reports: earlier answers no longer count for this user."""
        ...

    def outdated_at(self, program: str) -> Millis:
        """When this user last did that in any process; negative: never."""
        ...


class Answer(NamedTuple):
    """What was printed, and how old it may be called."""

    printed: Printed
    given_at: Millis
    took_ms: int


class Answers:
    """Everything that is read of a cluster goes through here."""

    def __init__(
        self, commands: Commands, now: Callable[[], Millis], random: Random, shelf: Shelf | None = None
    ) -> None:
        self._commands, self._now, self._random = commands, now, random
        self.shelf = shelf
        self._known: dict[tuple[str, ...], Answer] = {}
        self._failed: dict[tuple[str, ...], tuple[CockpitError, float]] = {}
        """What went wrong, and until when it is not tried again."""
        self._asking: dict[tuple[str, ...], asyncio.Lock] = {}
        self._outdated: dict[str, Millis] = {}
        """By program: when something was changed that it reports."""
        self.patience = PATIENCE_SECONDS
        """How long one answer is waited for, in seconds."""

    def forget(self, programs: Collection[str] = PROGRAMS) -> None:
        """Something was changed that these programs report: no earlier answer of theirs counts, not even one that
        another cockpit of this user shares or that is still under way."""
        for program in programs:
            self._outdated[program] = self._now()
            if self.shelf is not None:
                self.shelf.outdate(program)
        self._failed = {question: known for question, known in self._failed.items() if question[0] not in programs}

    async def ask(self, argv: Sequence[str], fresh_seconds: float, *, seconds: float | None = None) -> Printed:
        """An answer no older than that, or older where the cluster is slow. Raises `Unreachable`, `Failed`."""
        question = tuple(argv)
        async with self._asking.setdefault(question, asyncio.Lock()):
            known = self._known.get(question)
            if known is not None and self._is_good(question, known, fresh_seconds):
                return known.printed
            if question in self._failed and self._now() < self._failed[question][1]:
                raise self._failed[question][0]
            known = self._known[question] = await self._tried(question, fresh_seconds, seconds or self.patience)
            return known.printed

    async def ask_now(self, argv: Sequence[str], *, seconds: float | None = None) -> Printed:
        """An answer that is given now, whatever is known: acts decide by it. Raises `Unreachable`, `Failed`."""
        question = tuple(argv)
        async with self._asking.setdefault(question, asyncio.Lock()):
            began = self._now()
            printed = await self._run(question, seconds or self.patience)
            self._known[question] = Answer(printed, began, self._now() - began)
            return printed

    def last(self, argv: Sequence[str]) -> Printed | None:
        """The last answer to this, however old."""
        known = self._known.get(tuple(argv))
        return known.printed if known is not None else None

    def disbelieve(self, argv: Sequence[str], error: CockpitError) -> None:
        """The last answer to this turned out wrong: for a while it is said instead, and then asked again."""
        question = tuple(argv)
        self._known.pop(question, None)
        self._failed[question] = error, self._now() + FAILED_MS

    def given_at(self, argv: Sequence[str]) -> Millis | None:
        """When the last answer to this was given."""
        known = self._known.get(tuple(argv))
        return known.given_at if known is not None else None

    async def _tried(self, question: tuple[str, ...], fresh_seconds: float, seconds: float) -> Answer:
        """What failed is not tried again for a while either: who has no database would ask for it without end."""
        began = self._now()
        try:
            answer = await self._fresh(question, fresh_seconds, seconds)
        except CockpitError as error:
            pause = max(FAILED_MS, 2 * (self._now() - began)) * self._random.uniform(0.5, 1.0)
            self._failed[question] = error, self._now() + pause
            raise
        self._failed.pop(question, None)
        return answer

    def _is_good(self, question: tuple[str, ...], known: Answer, fresh_seconds: float) -> bool:
        good_for = max(int(1000 * fresh_seconds), SLOW_FACTOR * known.took_ms)
        return known.given_at > self._outdated_at(question[0]) and self._now() - known.given_at < good_for

    def _outdated_at(self, program: str) -> int:
        """When this user last changed something that the program reports, in any process; negative: never."""
        at = self._outdated.get(program, Millis(-1))
        return at if self.shelf is None else max(at, self.shelf.outdated_at(program))

    async def _fresh(self, question: tuple[str, ...], fresh_seconds: float, seconds: float) -> Answer:
        began = self._now()
        if self.shelf is None:
            return Answer(await self._run(question, seconds), began, self._now() - began)
        printed, given_at = await self.shelf.get(
            "\0".join(question), int(1000 * fresh_seconds), lambda: self._run(question, seconds)
        )
        if given_at < self._outdated_at(question[0]):
            began = given_at = self._now()
            printed = await self._run(question, seconds)
        return Answer(printed, given_at, max(0, self._now() - began))

    async def _run(self, question: tuple[str, ...], seconds: float) -> Printed:
        separator = f"~{os.urandom(6).hex()}~"
        argv = [word.replace(SEPARATOR, separator) for word in question]
        for attempt in range(1, TRIES + 1):
            printed = await self._commands.run(argv, seconds=seconds)
            if PASSING in printed.stderr and attempt < TRIES:
                await asyncio.sleep(PAUSE_SECONDS * attempt)
                continue
            found = checked(printed._replace(separator=separator), argv)
            wrong = "" if found.verified else flaw(argv, found.stdout, separator)
            if not wrong:
                return found
            if attempt > 1:
                raise Garbled(command_of(argv), wrong)
        raise AssertionError("the last try returns")
