"""The row of a job in a list, and lists of rows stored by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any, overload

import msgspec

from cockpit.model.alerts import Alert
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, ArrayTask, JobState
from cockpit.model.reasons import Reason
from cockpit.model.spec import NO_LIMIT_SECONDS, Access, JobKind
from cockpit.model.staging import Progress


class JobRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The row of a job in a list. Fields are sent by position: append new ones at the end, with defaults.

    Lists may have hundreds of thousands of rows. No field refers back to a row, so that the garbage collector can
    skip them (`gc=False`).
    """

    # array_like: names of fields would be most of the bytes of a long list.
    id: JobId
    version: int
    name: str
    user: str
    state: JobState
    state_since: Millis
    submitted_at: Millis
    started_at: Millis | None
    ended_at: Millis | None
    held_until: Millis | None
    ending: EndCause | None
    """Why the job is being ended; None: it is not."""
    end_cause: EndCause | None
    exit_code: int | None
    """The exit code as a shell reports it; None: the job has not ended."""
    nodes: int
    cpus: int
    """The CPUs over all nodes, of the alternative that was placed, else of the first."""
    memory_mib: int
    card_milli: int
    card_models: tuple[str, ...]
    placed_on: tuple[NodeName, ...]
    time_limit_seconds: int
    """How long it may run; `NO_LIMIT_SECONDS`: as long as it needs."""
    reason: Reason | None
    """Why the job is queued or suspended; None: it is neither, or the reason is not known."""
    command: str
    project: str
    pool: str = ""
    output: str = ""
    algorithm: str = ""
    oom: bool = False
    """Whether it was killed for exceeding its memory limit."""
    lost: str = ""
    """Why the exit status is unknown, as a sentence; empty: it is known."""
    partitions: tuple[str, ...] = ()
    """The partition in which it runs or ran; while it is queued, all in which it may run."""
    account: str = ""
    qos: str = ""
    priority: int | None = None
    """The highest priority in any of its partitions, 0 while it is held; None: it is not queued, or the cluster has no
    priorities."""
    array: ArrayTask | None = None
    suspended_ms: int = 0
    """The length of its suspensions since it started, without the present one, which began at `state_since`."""
    starts_by: Millis | None = None
    """The latest start of a queued job with a backfill reservation; None: it has none."""
    clusters: tuple[str, ...] = ()
    """On a fleet: the member cluster of each replica, by rank."""
    access: Access | None = None
    """The access of other members of its project; None: none."""
    may: Access = Access.RW
    """The access of the user who gets the row."""
    workers: tuple[int, int, int] | None = None
    """The least, initial and most number of workers of an elastic job; None: it is not elastic."""
    kind: JobKind = JobKind.REGULAR
    attempt: int = 1
    """The number of the current or last attempt, or 1 before the first."""
    retries: tuple[int, int] | None = None
    """The number of retries so far, and the most that it may have; None: it has not been retried."""
    hook: str = ""
    """The job's own script that failed, so that the command was not run; empty: none."""
    staged: Progress | None = None
    """The staging progress of its slowest replica; None: it is not staging."""
    spec_name: str = ""
    """The catalogue's name of its node spec: of the alternative that was placed, else of the first."""
    tasks: tuple[int, ...] = ()
    """The indices of all waiting and equal tasks of another scheduler's array that this row describes. Sizes and
    position are those of the first task. Empty: the row describes one job."""
    component: tuple[int, int] | None = None
    """For a component of another scheduler's heterogeneous job, whose components start together: the id of the first
    component, and the number of this one, from 0. None: it is no component."""
    waits_until: Millis | None = None
    """Until when the job waits at most while suspended for lack of its least number of workers; None: it is not."""
    slow: tuple[float, float] | None = None
    """The hardware's share of the time of a slow iteration, and the job's threshold for it; None: none was slow."""
    ended_by: str = ""
    """The user who stops or stopped it; empty: no user did."""
    failed: tuple[int, int] | None = None
    """Rank and exit code of the replica that failed first; None: none has, or the job has only one."""
    failure: str = ""
    """The exception, caused by a defect, that scheduling or predicting the queued job raised; empty: none."""
    leaving: tuple[int, Millis] | None = None
    """Of an elastic job: the number of workers that were asked to end, and when the first is killed; None: none."""
    alert: Alert | None = None
    """The last alert about it; None: there was none."""

    @property
    def has_time_limit(self) -> bool:
        return self.time_limit_seconds < NO_LIMIT_SECONDS

    @property
    def queued(self) -> bool:
        """Whether it is in the queue, for its first start or to resume."""
        return self.state is JobState.QUEUED or self.waits_until is not None

    @property
    def holds(self) -> bool:
        """Whether it occupies resources."""
        return self.state in OCCUPYING and self.waits_until is None


FIELDS: tuple[str, ...] = JobRow.__struct_fields__
_PLACES = {field: place for place, field in enumerate(FIELDS)}


class JobRows(Sequence[JobRow]):
    """A sequence of rows that is stored by column, as it is sent. Rows are built when they are first accessed, which
    most lists never need."""

    def __init__(self, columns: Sequence[list[Any]]) -> None:
        """`columns`: one list for each field of `JobRow`, in its order, all of the same length."""
        self._columns = columns

    @classmethod
    def joined(cls, parts: Iterable[JobRows]) -> JobRows:
        """Return the rows of all parts, in order. There must be at least one part."""
        # The usual list is one part, whose columns need not be copied.
        first, *others = parts
        if not others:
            return first
        columns = zip(first._columns, *(part._columns for part in others), strict=True)  # noqa: SLF001 - of its own kind
        return cls([list(chain.from_iterable(pieces)) for pieces in columns])

    def column(self, field: str) -> list[Any]:
        """Return the values of one field, one for each row. Do not change the list."""
        return self._columns[_PLACES[field]]

    def where(self, passing: Sequence[bool]) -> JobRows:
        """Return the rows for which `passing` is true."""
        return JobRows([list(compress(column, passing)) for column in self._columns])

    @cached_property
    def _rows(self) -> list[JobRow]:
        # All rows in one loop of C code, instead of one call of Python for each.
        return list(map(JobRow, *self._columns))

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[JobRow]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: int) -> JobRow: ...

    @overload
    def __getitem__(self, place: slice) -> JobRows: ...

    def __getitem__(self, place: int | slice) -> JobRow | JobRows:
        if isinstance(place, int):
            return self._rows[place]
        return JobRows([column[place] for column in self._columns])
