"""The model behind the Jobs view: rows by id, and which of them are shown in what order.

The list is made for a hundred thousand rows, of which a thousand change each second: changed rows are moved, and the
list is never sorted as a whole for them.
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
from cockpit.present.landing import landing_keys, landing_order
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
    """Ids in the order of their sort keys: `ids` is read, `move` changes it."""

    def __init__(self, keys: list[Key], ids: list[Id]) -> None:
        self.ids = ids
        self._keys = keys

    def place(self, key: Key) -> int | None:
        """Return the place of the id with that key; None: no such key."""
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else None

    def move(self, gone: Iterable[Key], come: Iterable[tuple[Key, Id]]) -> None:
        """Remove the ids with the keys in `gone` (each must be in the list), then insert those in `come`."""
        # All places are those in the old list: removing and inserting one by one would move the others, and copy the
        # list each time.
        cuts = [(bisect_left(self._keys, key), True) for key in gone]
        new = sorted(come, key=itemgetter(0))
        # New jobs come last in most orders: appending does not copy a hundred thousand ids.
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
    position = 0
    for place, removes in edits:
        edited += old[position:place]
        position = place
        if removes:
            position += 1
        else:
            edited.append(next(coming))
    edited += old[position:]
    return edited


_id: Final = attrgetter("id")
_state: Final = attrgetter("state")

_ONE_WORD: Final = re.compile(r'[^\s!:=<>~"@][^\s!:=<>~"]*')

PREPARED_AT_ONCE: Final = 1_000


class Changes(NamedTuple):
    """Effect of a delta on the shown rows."""

    changed: list[JobId]
    """Ids of shown rows whose cells may differ."""
    order_changed: bool


class JobList:
    """Rows by id, filtered and sorted. `context` gives the moment as of which filters and derived columns are
    evaluated; `renew` evaluates them again.

    While `row` returns the same object, the row has not changed. Rows without another order are in that of
    `landing.Rank`: what needs the user comes first.
    """

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._order_context = context
        self._rows: dict[JobId, JobRow] = {}
        self._counts: Counter[str] = Counter()
        self._saved = saved
        self._memory = SearchMemory(JOBS)
        self._landed: list[JobRow] | None = None
        """All rows in the order without a sort column; None until it is needed. A filter keeps it, so that typing one
        does not order a hundred thousand rows at each letter (25 ms)."""
        self._text = ""
        self._filter = compile_filter("", JOBS)
        self._order: list[JobId] = []
        self._ordered: Ordered[JobId] | None = Ordered([], [])
        """`_order` with its sort keys; None until they are needed."""
        self._places: dict[JobId, int] | None = None
        """Places in `_order` while it has no sort keys, computed when first needed: ten times faster than computing the
        keys."""
        self.sort_column = ""
        self.descending = False
        self.mine = False
        self.largest_id = 0
        """Largest id among all jobs that have been in the list."""
        self._age: Callable[[JobRow], int] = _id
        """Function that gives a row's place in the order of submission: the id, until a job has been in the list
        whose id does not give that order."""

    @property
    def order(self) -> Sequence[JobId]:
        """Ids of the shown rows, in order."""
        return self._order

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of jobs by state, hidden ones included."""
        # The plus leaves out states whose count has gone down to 0.
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
        """Apply a delta: insert or replace the changed rows, and remove the rows with the ids in `removed`."""
        now = _by_id(changed)
        self._switch_to_seniority(now)
        # From here on keys are worth their cost: each delta finds its rows by bisection instead of sorting all.
        ordered = self._keyed()
        before = [*filter(None, map(self._rows.get, chain(now, removed)))]
        # These keys must be computed before `_take` replaces the rows: ids are found in the order by the keys of
        # their old rows.
        old = {job: key for job, key in self._keys_by_id(before).items() if ordered.place(key) is not None}
        self._take(before, now)
        new = self._keys_by_id(self._passing(now.values()))
        # A row whose key is the same stays where it is, and is only drawn again.
        gone = [key for job, key in old.items() if new.get(job) != key]
        come = [(key, job) for job, key in new.items() if old.get(job) != key]
        if gone or come:
            ordered.move(gone, come)
            self._order = ordered.ids
        return Changes(list(new), bool(gone or come))

    def replace_all(self, rows: Iterable[JobRow]) -> Changes:
        """Replace all rows."""
        self._rows = {}
        self._counts.clear()
        self._memory.clear()
        self._take((), _by_id(rows))
        return Changes(list(self._rows), self.renew())

    def filter_by(self, text: str) -> None:
        """Set the filter. Raises `FilterError`; then nothing has changed."""
        self._filter = compile_filter(text, JOBS, self._memory, self._saved)
        longer = _ONE_WORD.fullmatch(self._text) is not None and _ONE_WORD.fullmatch(text) is not None
        # A longer word can only match rows that the shorter one matched, so the others need no second look.
        narrower = longer and text.startswith(self._text)
        self._text = text
        self._arrange([self._rows[job] for job in self._order] if narrower else None)

    def prepare_search(self) -> Iterator[None]:
        """Cache the search texts of all rows, in pieces of a few milliseconds, so that the first search does
        not wait."""
        rows = list(self._rows.values())
        for start in range(0, len(rows), PREPARED_AT_ONCE):
            self._memory.texts(rows[start : start + PREPARED_AT_ONCE], self._context())
            yield

    def show_mine(self, mine: bool) -> None:
        self.mine = mine
        self.renew()

    def sort_by(self, column: str, *, descending: bool) -> None:
        """Sort by the column of this name; empty: what needs the user first."""
        self.sort_column, self.descending = column, descending
        self.renew()

    def renew(self) -> bool:
        """Evaluate filter and order as of now, and return whether the shown rows or their order differ: times change
        without a delta."""
        before = self._order
        self._arrange()
        return self._order != before

    def _take(self, before: Iterable[JobRow], now: Mapping[JobId, JobRow]) -> None:
        """Replace the rows in `before` by those in `now`, and update the counts and the search cache."""
        self._landed = None
        for row in before:
            self._counts[row.state] -= 1
            self._memory.forget(row.id)
            if row.id not in now:
                del self._rows[row.id]
        self._counts.update(map(_state, now.values()))
        self._rows |= now
        self._switch_to_seniority(now)
        self.largest_id = max(self.largest_id, max(now, default=0))

    def _switch_to_seniority(self, now: Mapping[JobId, JobRow]) -> None:
        """Change to `seniority` as sort key once a scheduler names tasks by two numbers. Until then the id is the key,
        which is ten times faster."""
        if self._age is _id and is_apart(max(now, default=0)):
            self._age = lambda row: seniority(row.id)
            self._arrange([self._rows[job] for job in self._order])

    def _arrange(self, rows: Iterable[JobRow] | None = None) -> None:
        """Filter and sort these rows as of now (None: all); the result is the shown order."""
        context = self._context()
        # Deltas must compute keys as of this moment, too: with the times of a later one, bisection would not find
        # rows.
        self._order_context = lambda: context
        if (column := self._sorting()) is not None:
            passing = self._by_age(self._passing(self._rows.values() if rows is None else rows))
            values = comparables(column, column.facts(passing, context))
            self._order = arranged(list(map(_id, passing)), values, descending=self.descending)
        elif rows is None:
            self._order = list(map(_id, self._passing(self._all_landed(context.user))))
        else:
            self._order = landing_order(self._by_age(self._passing(rows)), context.user)
        self._ordered = self._places = None

    def _by_age(self, rows: list[JobRow]) -> list[JobRow]:
        """Return the rows in order of submission."""
        ages = list(map(self._age, rows))
        # They nearly always are, which is cheap to find out by numbers alone.
        return rows if ages == sorted(ages) else sorted(rows, key=self._age)

    def _all_landed(self, user: str) -> list[JobRow]:
        if self._landed is None:
            order = landing_order(self._by_age(list(self._rows.values())), user)
            self._landed = list(map(self._rows.__getitem__, order))
        return self._landed

    def _passing(self, rows: Iterable[JobRow]) -> list[JobRow]:
        context = self._context()
        if self.mine:
            rows = [row for row in rows if row.user == context.user]
        return self._filter.passing(rows, context)

    def _sorting(self) -> Column | None:
        """Return the column by which the rows are sorted; None: by none."""
        return JOBS.find(self.sort_column)

    def _keyed(self) -> Ordered[JobId]:
        if self._ordered is None:
            rows = [self._rows[job] for job in self._order]
            self._ordered = Ordered(self._keys(rows), list(self._order))
            self._places = None
        return self._ordered

    def _keys_by_id(self, rows: Sequence[JobRow]) -> dict[JobId, Any]:
        return dict(zip(map(_id, rows), self._keys(rows), strict=True))

    def _keys(self, rows: Sequence[JobRow]) -> list[Any]:
        """Return the sort keys of rows: the facts of the sorted column as of the moment of sorting, then seniority."""
        context, ages = self._order_context(), list(map(self._age, rows))
        if (column := self._sorting()) is None:
            return landing_keys(rows, ages, context.user)
        # In front of the age: of equal facts the earlier submission comes first.
        parts = key_parts(column, column.facts(rows, context), descending=self.descending)
        return list(zip(*parts, ages, strict=True))


def _by_id(rows: Iterable[JobRow]) -> dict[JobId, JobRow]:
    listed = list(rows)
    return dict(zip(map(_id, listed), listed, strict=True))
