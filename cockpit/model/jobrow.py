"""One line of the job list, and many of them by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any, overload

import msgspec

from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, ArrayTask, JobState
from cockpit.model.reasons import Reason
from cockpit.model.spec import Access, JobKind
from cockpit.model.staging import Progress


class JobRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of the job list. Fields are sent by position: append only, with defaults.

    A hundred thousand of them are common; nothing in them leads back, so the garbage collector need not look.
    """

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
    """Set while it is being ended."""
    end_cause: EndCause | None
    exit_code: int | None
    """As a shell reports it."""
    nodes: int
    cpus: int
    """Over all nodes, of the alternative that runs, else of the first."""
    memory_mib: int
    card_milli: int
    card_models: tuple[str, ...]
    placed_on: tuple[NodeName, ...]
    time_limit_seconds: int
    reason: Reason | None
    """Why it waits, or stands still; None when it does neither."""
    command: str
    project: str
    pool: str = ""
    output: str = ""
    algorithm: str = ""
    oom: bool = False
    """Its memory limit ended it."""
    lost: str = ""
    """Why it is unknown how its command ended: a sentence."""
    partitions: tuple[str, ...] = ()
    """Where it runs, or ran; while it is queued, where it may."""
    account: str = ""
    qos: str = ""
    priority: int | None = None
    """While it is queued on a cluster with priorities: the best of its partitions; 0: held."""
    array: ArrayTask | None = None
    suspended_ms: int = 0
    """How long it stood still since it started; not counting the present pause, which began with the state."""
    starts_by: Millis | None = None
    """While it is queued and the plan keeps room for it: its start, no later than that."""
    clusters: tuple[str, ...] = ()
    """On a fleet: where it is bound to, in order of its replicas."""
    access: Access | None = None
    """What other members of its project may do. None: nothing."""
    may: Access = Access.RW
    """What the asker may do."""
    workers: tuple[int, int, int] | None = None
    """Of an elastic job: the fewest that it runs with, how many it asks for at its start, the most that it may have."""
    kind: JobKind = JobKind.REGULAR
    attempt: int = 1
    """The number of its current or last one, or of the first that is to come."""
    retries: tuple[int, int] | None = None
    """How often it has begun again by itself after a failure, and how often it may; None: it has not failed."""
    hook: str = ""
    """Which script of its own failed, so that its command was not run."""
    staged: Progress | None = None
    """While its files are copied: how far those of its slowest replica are."""
    spec_name: str = ""
    """Of the catalogue's spec that it asks for: of the alternative that runs, else of the first."""
    tasks: tuple[int, ...] = ()
    """Of another scheduler's array: the indices of all that this row stands for, which wait and are alike. Its sizes
    and its place are those of the first. Empty: it stands for itself."""
    component: tuple[int, int] | None = None
    """Of another scheduler's heterogeneous job: the first of its components, which all start together, and which of
    them it is, from 0."""
    waits_until: Millis | None = None
    """While it is suspended for want of room for its fewest workers: for how long at most."""
    slow: tuple[float, float] | None = None
    """Of its iterations that were slow: what part of their time their hardware took, and the job's threshold for it."""
    ended_by: str = ""
    """The user who stops or stopped it; empty: no user did."""
    failed: tuple[int, int] | None = None
    """Rank and exit code of the replica that failed first; None: none has, or the job has only one."""
    failure: str = ""
    """While it is queued: the exception that a defect raised while the job was judged or foretold; empty: none."""

    @property
    def queued(self) -> bool:
        """It stands in the queue, be it to go on."""
        return self.state is JobState.QUEUED or self.waits_until is not None

    @property
    def holds(self) -> bool:
        """Something of the cluster is its own."""
        return self.state in OCCUPYING and self.waits_until is None


FIELDS: tuple[str, ...] = JobRow.__struct_fields__
_PLACES = {field: place for place, field in enumerate(FIELDS)}


class JobRows(Sequence[JobRow]):
    """Rows kept by column, as they travel: a row is made when one is looked at, and most lists need none.

    `columns`: one list for each field of `JobRow`, in its order, all of one length.
    """

    def __init__(self, columns: Sequence[list[Any]]) -> None:
        self._columns = columns

    @classmethod
    def joined(cls, parts: Iterable[JobRows]) -> JobRows:
        """All of them, in order. There is at least one."""
        first, *others = parts
        if not others:
            return first
        columns = zip(first._columns, *(part._columns for part in others), strict=True)  # noqa: SLF001 - of its own kind
        return cls([list(chain.from_iterable(pieces)) for pieces in columns])

    def column(self, field: str) -> list[Any]:
        """One value a row. Not to be changed."""
        return self._columns[_PLACES[field]]

    def where(self, passing: Sequence[bool]) -> JobRows:
        """The rows that pass."""
        return JobRows([list(compress(column, passing)) for column in self._columns])

    @cached_property
    def _rows(self) -> list[JobRow]:
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
