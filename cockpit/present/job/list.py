"""The model behind the Jobs view: rows by id, and which of them are shown in what order.

A hundred thousand rows, of which a thousand change each second: what changes is moved, nothing is sorted again.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from cockpit.model.ids import is_apart, seniority
from cockpit.present.filters import compile_filter
from cockpit.present.saved import Saved, none_saved
from cockpit.present.searching import SearchMemory
from cockpit.present.sorting import arranged, comparables, key_parts
from cockpit.present.tables.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Column, Context

Key = Any
"""A sort key: a value that can be compared with every other key of the list."""
Id = TypeVar("Id")


class Ordered(Generic[Id]):
    """`ids` is what to read, `move` what changes it. They are given in the order of their keys."""

    def __init__(self, keys: list[Key], ids: list[Id]) -> None:
        self.ids = ids
        self._keys = keys

    def place(self, key: Key) -> int | None:
        """Return the place of the id with that key; None: no such key."""
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else None

    def move(self, gone: Iterable[Key], come: Iterable[tuple[Key, Id]]) -> None:
        """Take out the ids with these keys (each must be there), then put in these."""
        cuts = [(bisect_left(self._keys, key), True) for key in gone]
        new = sorted(come, key=itemgetter(0))
        if not cuts and (not self._keys or not new or self._keys[-1] < new[0][0]):
            self.ids += [each for _, each in new]
            self._keys += [key for key, _ in new]
            return
        edits = sorted([*cuts, *((bisect_left(self._keys, key), False) for key, _ in new)])
        self.ids = _edited(self.ids, edits, [each for _, each in new])
        self._keys = _edited(self._keys, edits, [key for key, _ in new])


T = TypeVar("T")


def _edited(old: list[T], edits: Sequence[tuple[int, bool]], new: Sequence[T]) -> list[T]:
    """Return the list with the edits applied. `edits`: ascending places, each with True to remove the element there, or
    False to insert the next element of `new` before it."""
    edited: list[T] = []
    coming = iter(new)
    done = 0
    for place, goes in edits:
        edited += old[done:place]
        done = place
        if goes:
            done += 1
        else:
            edited.append(next(coming))
    edited += old[done:]
    return edited


_id: Final = attrgetter("id")
_state: Final = attrgetter("state")

_ONE_WORD: Final = re.compile(r'[^\s!:=<>~"@][^\s!:=<>~"]*')

PREPARED_AT_ONCE: Final = 1_000


class Changes(NamedTuple):
    """Effect of a delta on the shown rows."""

    changed: list[JobId]
    """Shown rows whose cells may differ."""
    order_changed: bool


class JobList:
    """`context` gives the moment that filters and derived columns are judged at; `renew` judges again.

    A row is as it was as long as `row` gives the same object. Rows without another order stand in that of submission.
    """

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._judged = context
        self._rows: dict[JobId, JobRow] = {}
        self._counts: Counter[str] = Counter()
        self._saved = saved
        self._memory = SearchMemory(JOBS)
        self._text = ""
        self._filter = compile_filter("", JOBS)
        self._order: list[JobId] = []
        self._ordered: Ordered[JobId] | None = Ordered([], [])
        """`_order` with its keys; None until somebody needs those."""
        self._places: dict[JobId, int] | None = None
        """Of `_order` while it has no keys, once somebody asks: ten times faster than making those."""
        self.sort_column = ""
        self.descending = False
        self.mine = False
        self.largest_id = 0
        """Of the jobs that have been here."""
        self._age: Callable[[JobRow], int] = _id
        """What rows without another order stand by: ids alone, until one has been here that they do not order."""

    @property
    def order(self) -> Sequence[JobId]:
        """The ids that are shown."""
        return self._order

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of jobs by state, hidden ones included."""
        return +self._counts

    def row(self, job: JobId) -> JobRow | None:
        return self._rows.get(job)

    def rows(self) -> Collection[JobRow]:
        """All rows, hidden ones included."""
        return self._rows.values()

    def place(self, job: JobId) -> int | None:
        """Return the job's place in the shown order; None when it is not shown."""
        row = self._rows.get(job)
        if row is None:
            return None
        if self._ordered is not None:
            return self._ordered.place(self._keys([row])[0])
        if self._places is None:
            self._places = {each: place for place, each in enumerate(self._order)}
        return self._places.get(job)

    def apply(self, changed: Iterable[JobRow], removed: Iterable[JobId]) -> Changes:
        """Take over rows that are new or different, and forget those that are gone."""
        now = _by_id(changed)
        self._mind_tasks(now)
        ordered = self._keyed()
        before = [*filter(None, map(self._rows.get, chain(now, removed)))]
        old = {job: key for job, key in self._keys_by_id(before).items() if ordered.place(key) is not None}
        self._take(before, now)
        new = self._keys_by_id(self._passing(now.values()))
        gone = [key for job, key in old.items() if new.get(job) != key]
        come = [(key, job) for job, key in new.items() if old.get(job) != key]
        if gone or come:
            ordered.move(gone, come)
            self._order = ordered.ids
        return Changes(list(new), bool(gone or come))

    def replace_all(self, rows: Iterable[JobRow]) -> Changes:
        """Start over with these."""
        self._rows = {}
        self._counts.clear()
        self._memory.clear()
        self._take((), _by_id(rows))
        return Changes(list(self._rows), self.renew())

    def filter_by(self, text: str) -> None:
        """Show what matches. Raises `FilterError`, and then nothing has changed."""
        self._filter = compile_filter(text, JOBS, self._memory, self._saved)
        longer = _ONE_WORD.fullmatch(self._text) is not None and _ONE_WORD.fullmatch(text) is not None
        narrower = longer and text.startswith(self._text)
        self._text = text
        self._arrange([self._rows[job] for job in self._order] if narrower else self._rows.values())

    def prepare_search(self) -> Iterator[None]:
        """Read what the first word would have to wait for, in pieces of a few milliseconds."""
        rows = list(self._rows.values())
        for start in range(0, len(rows), PREPARED_AT_ONCE):
            self._memory.texts(rows[start : start + PREPARED_AT_ONCE], self._context())
            yield

    def show_mine(self, mine: bool) -> None:
        self.mine = mine
        self.renew()

    def sort_by(self, column: str, *, descending: bool) -> None:
        """Sort by the column of this name; empty: in order of submission."""
        self.sort_column, self.descending = column, descending
        self.renew()

    def renew(self) -> bool:
        """Judge everything as of now, and whether that shows other rows or another order: times go on by themselves."""
        before = self._order
        self._arrange(self._rows.values())
        return self._order != before

    def _take(self, before: Iterable[JobRow], now: Mapping[JobId, JobRow]) -> None:
        for row in before:
            self._counts[row.state] -= 1
            self._memory.forget(row.id)
            if row.id not in now:
                del self._rows[row.id]
        self._counts.update(map(_state, now.values()))
        self._rows |= now
        self._mind_tasks(now)
        self.largest_id = max(self.largest_id, max(now, default=0))

    def _mind_tasks(self, now: Mapping[JobId, JobRow]) -> None:
        """The id itself is ten times faster than `seniority`: it does where no scheduler names tasks by two numbers."""
        if self._age is _id and is_apart(max(now, default=0)):
            self._age = _seniority
            self._arrange([self._rows[job] for job in self._order])

    def _arrange(self, rows: Iterable[JobRow]) -> None:
        context = self._context()
        self._judged = lambda: context
        passing = self._passing(rows)
        ages = list(map(self._age, passing))
        if ages != sorted(ages):
            passing.sort(key=self._age)
        submitted = list(map(_id, passing))
        for column, descending in self._sorting():
            values = comparables(column, column.facts(passing, context))
            submitted = arranged(submitted, values, descending=descending)
        self._order = submitted
        self._ordered = self._places = None

    def _passing(self, rows: Iterable[JobRow]) -> list[JobRow]:
        context = self._context()
        if self.mine:
            rows = [row for row in rows if row.user == context.user]
        return self._filter.passing(rows, context)

    def _sorting(self) -> list[tuple[Column, bool]]:
        column = JOBS.find(self.sort_column)
        return [] if column is None else [(column, self.descending)]

    def _keyed(self) -> Ordered[JobId]:
        if self._ordered is None:
            rows = [self._rows[job] for job in self._order]
            self._ordered = Ordered(self._keys(rows), list(self._order))
            self._places = None
        return self._ordered

    def _keys_by_id(self, rows: Sequence[JobRow]) -> dict[JobId, Any]:
        return dict(zip(map(_id, rows), self._keys(rows), strict=True))

    def _keys(self, rows: Sequence[JobRow]) -> list[Any]:
        """Return the sort keys of rows: the facts of the sorted columns as of the moment of sorting, then seniority."""
        parts: list[list[Any]] = [list(map(self._age, rows))]
        for column, descending in self._sorting():
            parts[:0] = key_parts(column, column.facts(rows, self._judged()), descending=descending)
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _by_id(rows: Iterable[JobRow]) -> dict[JobId, JobRow]:
    listed = list(rows)
    return dict(zip(map(_id, listed), listed, strict=True))


def _seniority(row: JobRow) -> int:
    return seniority(row.id)
