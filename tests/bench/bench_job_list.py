"""The job list without its screen: rows arrive, change, are filtered and sorted."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.model.job import JobState
from cockpit.model.reasons import NotEnoughFree, Resource
from cockpit.present.columns import Context
from cockpit.present.job.list import JobList
from cockpit.protocol.pages import PAGE_ROWS, JobsPage, page_of, rows_of
from cockpit.tui.opening import GC_THRESHOLDS
from tests.bench.figures import Figures
from tests.doubles.samples import NOW, job_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.jobrow import JobRow

ROWS = 100_000
STATES = (JobState.QUEUED, JobState.RUNNING, JobState.ERROR, JobState.SUCCEEDED)
CONTEXT = Context(now=NOW, user="ann")
FILTERS = ("state:queued", "user:me", "name~llama", "cards>=4 state:running", "wait>2h", "name~vit !user:bob")
WORDS = ("v", "vi", "vit", "vit-1", "bob", "nobody")
COLUMNS = ("name", "user", "state", "cards", "started_at", "elapsed", "why")


def a_row(random: Random, job: int) -> JobRow:
    state = random.choice(STATES)
    waits = NotEnoughFree(Resource.CARDS, random.randrange(1, 9), ("A100",), 1, 0, ())
    return job_row(
        job,
        name=f"{random.choice(['llama', 'vit', 'bert'])}-{random.randrange(10**6)}",
        user=random.choice(["ann", "bob", "carol", "dave"]),
        state=state,
        started_at=None if state is JobState.QUEUED else NOW - random.randrange(10**8),
        submitted_at=NOW - 2 * 10**8 + job,
        card_milli=1000 * random.randrange(9),
        reason=waits if state is JobState.QUEUED else None,
        output=f"/data/out/{job}",
    )


@pytest.fixture(scope="module", autouse=True)
def as_seldom_collected_as_in_the_app() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.fixture(scope="module")
def pages() -> list[bytes]:
    """As the engine sends them."""
    random = Random(5)
    rows = [a_row(random, job) for job in range(1, ROWS + 1)]
    return [msgspec.msgpack.encode(page_of(rows[at : at + PAGE_ROWS], brief=True)) for at in range(0, ROWS, PAGE_ROWS)]


def milliseconds(work: Callable[[], object]) -> float:
    before = perf_counter()
    work()
    return (perf_counter() - before) * 1000


def load(jobs: JobList, page: bytes) -> None:
    jobs.apply(rows_of(msgspec.msgpack.decode(page, type=JobsPage)), ())


@pytest.fixture(scope="module")
def loaded(pages: list[bytes]) -> JobList:
    jobs = JobList(lambda: CONTEXT)
    for page in pages:
        load(jobs, page)
    return jobs


def test_rows_arrive(figure: Figures, pages: list[bytes]) -> None:
    jobs = JobList(lambda: CONTEXT)
    each = [milliseconds(lambda page=page: load(jobs, page)) for page in pages]
    assert len(jobs.order) == ROWS
    figure("PF-12", "of it, the model without a screen, 100 000 jobs", sum(each) / 1000)
    figure("PF-12", "of it, longest stall of the loop", max(each))


def test_rows_change(figure: Figures, loaded: JobList) -> None:
    random = Random(6)
    loaded.sort_by("name", descending=False)
    each = []
    for _ in range(10):
        rows = [loaded.row(random.randrange(1, ROWS + 1)) for _ in range(ROWS // 100)]
        changed = [replace(row, state=random.choice(STATES), version=row.version + 1) for row in rows if row]
        each.append(milliseconds(lambda changed=changed: loaded.apply(changed, ())))
    figure("PF-13", "of it, the model taking 1 % changed rows", median(each))


def test_filter(figure: Figures, loaded: JobList) -> None:
    loaded.sort_by("", descending=False)
    figure(
        "PF-17", "filter, 100 000 rows", max(milliseconds(lambda text=text: loaded.filter_by(text)) for text in FILTERS)
    )
    loaded.filter_by("")
    for _ in loaded.prepare_search():  # as the screen does while the first word is thought of
        pass
    each = [milliseconds(lambda word=word: loaded.filter_by(word)) for word in WORDS]
    figure("PF-17", "filter by a word in any column, 100 000 rows", median(each))
    loaded.filter_by("")


def test_sort(figure: Figures, loaded: JobList) -> None:
    each = [milliseconds(lambda column=column: loaded.sort_by(column, descending=True)) for column in COLUMNS]
    figure("PF-17", "sort, 100 000 rows", median(each))
