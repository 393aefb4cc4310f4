"""Bars of queues: each part takes its share, and no part that is there is left out."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.view import QueueKind, QueueRow
from cockpit.present.columns import Context
from cockpit.present.spans import plain
from cockpit.present.tables.queues import QUEUES, bar, bounds_of, jobs_filter, queue_answer, row_id


def queue(
    used: float = 0, kept: float = 0, most: float | None = None, *, path: str = "root/a", level: int = 1
) -> QueueRow:
    def of(amount: float) -> dict[str, int]:
        return {"gres/gpu": round(1000 * amount)}

    bounds = {} if most is None else of(most)
    kind = QueueKind.QUOTA if level >= 0 else QueueKind.PARTITION
    return QueueRow(kind=kind, path=path, name=path, level=max(level, 0), since=None, waiting=0, running=0,
                    used=of(used), min=of(kept), max=bounds, bounded=("gres/gpu",) if level >= 0 else ())  # fmt: skip


def answer(row: QueueRow) -> str:
    return "\n".join(plain(each) for each in queue_answer(row, [row], Context(now=Millis(0), zone=UTC), {}, 120))


def drawn(row: QueueRow, full: float, columns: int = 8) -> str:
    return plain(bar(row, "gres/gpu", round(1000 * full), columns)).ljust(columns)


@pytest.mark.req("UI-06")
@pytest.mark.parametrize(
    ("used", "kept", "full", "shown"),
    [
        (0, 0, 8, "········"),
        (2, 4, 8, "━━╌╌····"),
        (4, 4, 8, "━━━━····"),
        (6, 4, 8, "━━━━══··"),
        (8, 0, 8, "════════"),
        (0.25, 0, 100, "═·······"),
        (8.1, 8, 80, "━═······"),
        (0.1, 0.2, 100, "━╌······"),
        (12, 4, 8, "━━━═════"),
    ],
)
def test_the_bar_shows_own_borrowed_and_reserved_amounts(used: float, kept: float, full: float, shown: str) -> None:
    assert drawn(queue(used, kept), full) == shown


@pytest.mark.req("UI-06")
def test_the_root_and_a_partition_borrow_from_no_queue() -> None:
    assert drawn(queue(4, 8, path="root", level=0), 8) == "━━━━····"
    assert drawn(queue(4, 0, path="gpu", level=-1), 8) == "━━━━····"


@pytest.mark.req("UI-06")
def test_a_bar_is_full_at_the_nearest_bound_above() -> None:
    rows = [queue(path="root", level=0, most=16), queue(path="root/a"), queue(path="root/a/b", level=2, most=4)]
    bounds = bounds_of([*rows, queue(path="root/a/b/c", level=3)])
    assert [bounds[row_id(row)]["gres/gpu"] for row in rows] == [16_000, 16_000, 4_000]
    assert bounds["quota:root/a/b/c"]["gres/gpu"] == 4_000


@pytest.mark.req("UI-06")
def test_an_unlimited_queue_has_no_bar() -> None:
    cell = next(column.drawn for column in QUEUES.screen if column.id == "cards")
    assert plain(cell(queue(3), {}, 30)).split() == ["3/0/–"]
    assert "━" in plain(cell(queue(3, 4), {}, 30))


@pytest.mark.req("UI-06")
@pytest.mark.parametrize(
    ("most", "shown"), [(None, "3"), (3, "3/3"), (999_999, "3/999999"), (1_000_000, "3"), (2_000_000, "3")]
)
def test_the_bound_on_jobs_is_shown_beside_the_running_jobs_unless_unlimited(most: int | None, shown: str) -> None:
    row = replace(queue(), running=3, max_jobs=most)
    (running,) = (column for column in QUEUES.screen if column.id == "running")
    assert plain(running.drawn(row, {}, 20)) == shown


@pytest.mark.req("UI-06", "KU-04")
def test_a_queue_that_stands_alone_borrows_beyond_its_own() -> None:
    # A cluster queue of Kueue, or a quota of a namespace: nothing above it, and a guarantee of its own.
    alone = replace(queue(6, 4, path="team-a", level=0), alone=True)
    assert drawn(alone, 8) == "━━━━══··"
    assert "borrows 2 cards" in answer(alone)


@pytest.mark.req("KU-04")
def test_a_stopped_queue_says_so_in_the_list_and_in_the_panel() -> None:
    stopped = replace(queue(path="root/a"), stopped="it is closed")
    name = next(column.cell for column in QUEUES.columns if column.id == "name")
    assert name is not None
    assert name.draw is not None
    assert plain(name.draw(stopped, {})) == "  a  stopped"
    assert "admits no job: it is closed." in answer(stopped)


@pytest.mark.req("KU-04")
def test_the_jobs_of_a_queue_that_jobs_name_are_found_by_their_partition() -> None:
    rows = [replace(queue(path=path), name=path.rpartition("/")[2], by_name=True) for path in ("root/a", "root/a/b")]
    assert jobs_filter(rows[0], rows) == 'partition:"a","b"'
    assert jobs_filter(queue(path="root/a"), [queue(path="root/a")]) is None
