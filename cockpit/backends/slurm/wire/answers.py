"""Caches the answers of Slurm's read commands, so that cockpit does not load the controller.

A command goes through these steps:

1. An answer in memory that is young enough is returned. Its permitted age grows with the time that the command took.
2. A command that failed a moment ago raises the same error again, without another call.
3. Otherwise the answer comes from the cache that this user's (or all users') cockpits share, if that one is young
   enough; only one process at a time fetches a new one.
4. The command runs with a random field separator. It is repeated when Slurm was busy for a moment. One that asks the
   accounting database ends early if that does not answer (`wire.database`).
5. The output is checked to be complete (`mapping.completeness`). An incomplete answer is fetched once more, then
   `Garbled`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from cockpit.backends.slurm.mapping.completeness import flaw
from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.wire.calls import PASSING, Commands, Garbled, Printed, check_success, command_of
from cockpit.backends.slurm.wire.database import DatabaseWatch
from cockpit.errors import CockpitError
from cockpit.model.ids import Millis

T = TypeVar("T")
PATIENCE_SECONDS = 30.0
SLOW_FACTOR = 20
"""An answer stays good for this many times as long as the command took: at most 1/20 of the time is spent asking."""
TRIES = 3
PAUSE_SECONDS = 0.5
JOBS_REPORTED_BY = frozenset({"squeue", "scontrol", "sprio", "sshare", "sacct"})
"""Programs whose answers change with an act on jobs, nodes or reservations."""
PROGRAMS = JOBS_REPORTED_BY | {"sacctmgr"}
FAILED_MS = 3_000
"""Least time before a failed command is tried again; twice the time that it took, if that is longer."""

Fetch = Callable[[], Awaitable[Printed]]


class AnswerCache(Protocol):
    """Answers that the cockpits of one machine share."""

    async def get(self, question: str, fresh_ms: int, fetch: Fetch) -> tuple[Printed, Millis]:
        """Return an answer that is at most `fresh_ms` old and its time: another process's, or one from `fetch`."""
        ...

    def outdate(self, program: str) -> None:
        """Stop using earlier answers of the program for this user, who changed something that it reports."""
        ...

    def outdated_at(self, program: str) -> Millis:
        """Return when this user last called `outdate` for the program, in any process; negative: never."""
        ...


class Answer(NamedTuple):
    """An answer that is kept in memory."""

    printed: Printed
    given_at: Millis
    """When the command was started: the answer may be of any moment since."""
    took_ms: int


class PollIntervals(NamedTuple):
    """How old the answers of each kind may be before the command runs again, in seconds, and the time limit of one."""

    jobs: float = 10.0
    nodes: float = 20.0
    details: float = 30.0
    priorities: float = 20.0
    shares: float = 60.0
    reservations: float = 60.0
    accounting: float = 60.0
    settings: float = 300.0
    patience: float = 30.0
    """Time limit of one command: sacctmgr without its database would try for minutes."""

    @classmethod
    def every(cls, seconds: float, patience: float) -> PollIntervals:
        """List jobs every `seconds`, and everything else in the default proportion to that."""
        usual = cls()
        factor = seconds / usual.jobs
        # Without the last field: a time limit has nothing to do with how often the cluster is asked.
        jobs, nodes, *others = (factor * each for each in usual[:-1])
        return cls(jobs, nodes, *others)._replace(patience=patience)


class ParsedAnswers:
    """Keeps what answers were parsed into, so that an answer which has not changed is not parsed again."""

    def __init__(self) -> None:
        self._parsed: dict[str, tuple[object, Any]] = {}

    def once(self, what: str, source: object, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called again only when `source`, what it is made of, has changed."""
        # compared by value: a command that ran again mostly prints what it printed before
        known = self._parsed.get(what)
        if known is None or known[0] != source:
            known = self._parsed[what] = (source, make())
        made: T = known[1]
        return made

    def forget(self, what: str) -> None:
        self._parsed.pop(what, None)


class Answers:
    """Runs the read commands of one cluster and keeps their answers while they are fresh."""

    def __init__(
        self, commands: Commands, now: Callable[[], Millis], random: Random, cache: AnswerCache | None = None
    ) -> None:
        self._commands, self._now, self._random = commands, now, random
        self.cache = cache
        self._cached: dict[tuple[str, ...], Answer] = {}
        self._failed: dict[tuple[str, ...], tuple[CockpitError, float]] = {}
        """Errors of failed commands, and the time in milliseconds until which the command is not run again."""
        self._asking: dict[tuple[str, ...], asyncio.Lock] = {}
        self._outdated: dict[str, Millis] = {}
        """Time of the last change that a program reports, by program."""
        self.database = DatabaseWatch(commands, now, random)
        self.patience = PATIENCE_SECONDS
        """Default time limit of one command, in seconds."""

    def forget(self, programs: Collection[str] = PROGRAMS) -> None:
        """Stop using all earlier answers of these programs, because something that they report was changed.

        This includes answers that other cockpits of this user share and answers that are still under way.
        """
        # a time rather than a deletion: an answer that is under way now was asked for before the change
        for program in programs:
            self._outdated[program] = self._now()
            if self.cache is not None:
                self.cache.outdate(program)
        # A command that failed before the change may succeed after it.
        self._failed = {question: known for question, known in self._failed.items() if question[0] not in programs}

    async def ask(self, argv: Sequence[str], fresh_seconds: float, *, seconds: float | None = None) -> Printed:
        """Return an answer that is at most `fresh_seconds` old, or older when the cluster is slow.

        `seconds`: time limit of the command. Raises `Unreachable`, `Failed`.
        """
        question = tuple(argv)
        # One lock for each command: callers that want the same answer at the same time share one run.
        async with self._asking.setdefault(question, asyncio.Lock()):
            known = self._cached.get(question)
            if known is not None and self._is_good(question, known, fresh_seconds):
                return known.printed
            # in the lock, so that callers who waited for a failing command get its error and do not run it too
            if question in self._failed and self._now() < self._failed[question][1]:
                raise self._failed[question][0]
            fetching = self._fetch_or_remember_failure(question, fresh_seconds, seconds or self.patience)
            known = self._cached[question] = await self._of_database(question, fetching)
            return known.printed

    async def ask_now(self, argv: Sequence[str], *, seconds: float | None = None) -> Printed:
        """Run the command now, whatever is cached, for decisions that need the present state.

        Raises `Unreachable`, `Failed`.
        """
        question = tuple(argv)
        async with self._asking.setdefault(question, asyncio.Lock()):
            began = self._now()
            printed = await self._of_database(question, self._run(question, seconds or self.patience))
            # without the shared cache: another cockpit's answer may be of before the decision
            # Kept all the same: readers who come within the next seconds need not run it once more.
            self._cached[question] = Answer(printed, began, self._now() - began)
            return printed

    async def _of_database(self, question: tuple[str, ...], asking: Coroutine[Any, Any, T]) -> T:
        """Run the command; if it asks the accounting database, only as long as that answers."""
        return await (self.database.answered(asking) if question[0] in self._commands.database_programs else asking)

    def last(self, argv: Sequence[str]) -> Printed | None:
        """Return the last answer of the command, however old."""
        known = self._cached.get(tuple(argv))
        return known.printed if known is not None else None

    def replace_by_error(self, argv: Sequence[str], error: CockpitError) -> None:
        """Discard the last answer of the command, which proved wrong, and raise `error` instead for `FAILED_MS`."""
        question = tuple(argv)
        self._cached.pop(question, None)
        self._failed[question] = error, self._now() + FAILED_MS

    def given_at(self, argv: Sequence[str]) -> Millis | None:
        """Return when the last answer of the command was given."""
        known = self._cached.get(tuple(argv))
        return known.given_at if known is not None else None

    async def _fetch_or_remember_failure(
        self, question: tuple[str, ...], fresh_seconds: float, seconds: float
    ) -> Answer:
        """Fetch an answer, and remember a failure so that the command is not repeated at once.

        Without that a cluster whose database is away would be asked for it at every look.
        """
        began = self._now()
        try:
            answer = await self._fresh(question, fresh_seconds, seconds)
        except CockpitError as error:
            # The random factor spreads the retries of many cockpits over time.
            pause = max(FAILED_MS, 2 * (self._now() - began)) * self._random.uniform(0.5, 1.0)
            self._failed[question] = error, self._now() + pause
            raise
        self._failed.pop(question, None)
        return answer

    def _is_good(self, question: tuple[str, ...], known: Answer, fresh_seconds: float) -> bool:
        # `given_at` is when the command was started: an answer that came after a change may have been made before it
        good_for = max(int(1000 * fresh_seconds), SLOW_FACTOR * known.took_ms)
        return known.given_at > self._outdated_at(question[0]) and self._now() - known.given_at < good_for

    def _outdated_at(self, program: str) -> int:
        """Return when this user last changed something that the program reports, in any process; negative: never."""
        at = self._outdated.get(program, Millis(-1))
        return at if self.cache is None else max(at, self.cache.outdated_at(program))

    async def _fresh(self, question: tuple[str, ...], fresh_seconds: float, seconds: float) -> Answer:
        """Return an answer that is at most `fresh_seconds` old, from the cache or from the command."""
        began = self._now()
        if self.cache is None:
            return Answer(await self._run(question, seconds), began, self._now() - began)
        printed, given_at = await self.cache.get(
            "\0".join(question), int(1000 * fresh_seconds), lambda: self._run(question, seconds)
        )
        if given_at < self._outdated_at(question[0]):
            # Another process fetched the answer before this user's change reached the controller: ask again, alone.
            began = given_at = self._now()
            printed = await self._run(question, seconds)
        return Answer(printed, given_at, max(0, self._now() - began))

    async def _run(self, question: tuple[str, ...], seconds: float) -> Printed:
        """Run the command, up to `TRIES` times while the controller is busy, and check that its output is complete."""
        # Users choose job names and comments: a separator that they could guess would let them forge fields.
        separator = f"~{os.urandom(6).hex()}~"
        # `question`, with the fixed placeholder, is the key of both caches: the random one would make every question a
        # new one.
        argv = [word.replace(SEPARATOR, separator) for word in question]
        for attempt in range(1, TRIES + 1):
            printed = await self._commands.run(argv, seconds=seconds)
            if PASSING in printed.stderr and attempt < TRIES:
                await asyncio.sleep(PAUSE_SECONDS * attempt)
                continue
            answer = check_success(printed._replace(separator=separator), argv)
            wrong = "" if answer.verified else flaw(argv, answer.stdout, separator)
            if not wrong:
                return answer
            # One repetition: a cut answer is mostly a full pipe or a killed wrapper, which the next run does not meet.
            if attempt > 1:
                raise Garbled(command_of(argv), wrong)
        raise AssertionError("the last try returns")
