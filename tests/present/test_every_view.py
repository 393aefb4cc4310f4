"""Every view's cells and every page's lines, of made-up rows, as they are shown in several widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from cockpit.model.accounts import Qos
from cockpit.model.attempt import Replica
from cockpit.model.catalogue import EntryRow
from cockpit.model.forecast import Outlook
from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Allocation
from cockpit.model.reasons import Reason
from cockpit.model.spec import NodeSpec
from cockpit.model.view import AccountRow, ClusterRow, NodeRow, Overview, QueueRow
from cockpit.present import frame, node_page
from cockpit.present.columns import TableView, laid_out
from cockpit.present.fleet_tree import FleetLine
from cockpit.present.folding import fold
from cockpit.present.job.answer import PanelContext, answer
from cockpit.present.job.page import job_page
from cockpit.present.job.tabs import TABS, head_line, tab_lines
from cockpit.present.outlook import outlook_lines
from cockpit.present.reasons import reason_wording
from cockpit.present.spans import fitted
from cockpit.present.tables.accounts import ACCOUNTS, AccountTree
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.fleet import FLEET
from cockpit.present.tables.jobs import laid_out_jobs
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.qos import QOS
from cockpit.present.tables.queues import QUEUES
from tests.doubles.made_up import ABSENT, made_up
from tests.present.recorded import assert_as_recorded, with_roles
from tests.present.test_every_table import CONTEXT

WIDTHS = (60, 80, 100, 120, 160, 200)
ROWS = 12
TREE = AccountTree(lambda: CONTEXT)

NOT_CHOSEN = replace(CONTEXT, chosen=None)

Layout = Callable[[int], Sequence[tuple[Any, int]]]
"""The columns of a view with their widths, by the width of its table."""


def layout_of(table: TableView) -> Layout:
    return lambda total: laid_out(table.screen, total)


VIEWS: dict[str, tuple[Any, Layout, Callable[[Any], Any]]] = {
    "jobs": (JobRow, laid_out_jobs, lambda _: CONTEXT),
    "nodes": (NodeRow, layout_of(NODES), lambda _: NOT_CHOSEN),
    "nodes-chosen": (NodeRow, layout_of(NODES), lambda _: CONTEXT),
    "queues": (QueueRow, layout_of(QUEUES), lambda row: row.max),
    "fleet": (FleetLine, layout_of(FLEET), lambda _: CONTEXT),
    "clusters": (ClusterRow, layout_of(CLUSTERS), lambda _: CONTEXT),
    "accounts": (AccountRow, layout_of(ACCOUNTS), lambda _: TREE),
    "qos": (Qos, layout_of(QOS), lambda _: CONTEXT),
    "catalogue": (EntryRow, layout_of(CATALOGUE), lambda _: CONTEXT),
}
"""By view: the kind of its rows, its layout, and what the cells of a row depend on besides it."""


def made(kind: Any, rows: int = ROWS) -> list[Any]:
    return [made_up(kind, number) for number in range(ABSENT, rows)]


def around(number: int, columns: int = 110) -> PanelContext:
    """Nothing else is known but the job's outlook, and that of every second one only."""
    outlook = made_up(Outlook, number) if number % 2 else None
    keys = {each: each[0].upper() for each in ("cancel", "release", "shell", "extend_hold", "end_hold", "logs")}
    return PanelContext(CONTEXT, columns, 30, keys, lambda _: None, outlook)


@pytest.mark.req("UI-01")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("total", WIDTHS[1:])
def test_the_columns_of_a_view_fill_every_width_from_80_on(view: str, total: int) -> None:
    laid = list(VIEWS[view][1](total))
    assert sum(width for _, width in laid) + 2 * (len(laid) - 1) == total
    assert all(width >= 1 for _, width in laid)


@pytest.mark.req("UI-01")
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_looks_as_it_did(view: str) -> None:
    kind, layout, scene = VIEWS[view]
    lines = []
    for total in WIDTHS:
        laid = layout(total)
        lines.append("|".join(f"{column.heading[:width]:{width}}" for column, width in laid))
    for row in made(kind):
        cells = [(column, width, column.drawn(row, scene(row), width)) for column, width in layout(WIDTHS[-1])]
        fit = [fitted(each, width, right=column.leans_right) for column, width, each in cells]
        lines.append("|".join(with_roles(each).strip() for each in fit))
    assert_as_recorded(f"view-{view}", lines)


def a_job(number: int) -> JobDetail:
    """Its parts agree: it asks for a node, has one state and one set of ranks, and was placed once it was submitted."""
    found = made_up(JobDetail, number)
    attempt = found.job.attempt
    if attempt is not None:
        ranks = range(1 + number % 3)
        attempt = replace(
            attempt,
            placement=tuple(replace(made_up(Allocation, number + rank), rank=rank) for rank in ranks),
            replicas=tuple(replace(made_up(Replica, number + rank), rank=rank) for rank in ranks),
            placed_at=max(attempt.placed_at, found.job.submitted_at),
            launcher=None,
        )
    use = (
        () if attempt is None else tuple(replace(each, rank=rank) for rank, each in enumerate(found.use[: len(ranks)]))
    )
    spec = replace(found.job.spec, specs=found.job.spec.specs or (made_up(NodeSpec, number),))
    return replace(found, job=replace(found.job, spec=spec, state=found.row.state, attempt=attempt), use=use)


def of_a_job(number: int) -> Iterator[str]:
    detail = a_job(number)
    yield f"== {detail.row.state}"
    yield with_roles(head_line(detail, around(number)))
    yield from map(with_roles, answer(detail.row, detail, around(number)))
    yield from map(with_roles, answer(detail.row, None, around(number, columns=70)))


def of_every_job(lines_of: Callable[[int], Iterator[str]]) -> list[str]:
    return [line for number in range(ABSENT, 2 * ROWS) for line in lines_of(number)]


@pytest.mark.req("UI-02")
def test_the_answer_about_a_job_is_as_it_was() -> None:
    assert_as_recorded("job-answer", of_every_job(of_a_job))


@pytest.mark.req("UI-02")
def test_the_page_of_a_job_is_as_it_was() -> None:
    def page(number: int) -> Iterator[str]:
        yield f"== {number}"
        yield from job_page(a_job(number), CONTEXT)

    assert_as_recorded("job-page", of_every_job(page))


@pytest.mark.req("UI-02")
@pytest.mark.parametrize("tab", [tab for tab in TABS if tab not in {"logs", "record", "spec"}])
def test_the_tabs_of_a_job_are_as_they_were(tab: str) -> None:
    def lines(number: int) -> Iterator[str]:
        yield f"== {number}"
        yield from map(with_roles, tab_lines(tab, a_job(number), around(number)))

    assert_as_recorded(f"job-{tab}", of_every_job(lines))


@pytest.mark.req("UI-02")
@pytest.mark.parametrize("tab", ["priority", "events", "usage"])
def test_the_charts_of_a_job_keep_to_a_narrow_page(tab: str) -> None:
    def lines(number: int) -> Iterator[str]:
        yield f"== {number}"
        yield from map(with_roles, tab_lines(tab, a_job(number), around(number, columns=46)))

    assert_as_recorded(f"job-{tab}-narrow", of_every_job(lines))


@pytest.mark.req("UI-01")
def test_folded_rows_look_as_they_did() -> None:
    tasks = [replace(made_up(JobRow, number), component=None, tasks=()) for number in range(ROWS)]
    lines = []
    for count, last in ((8, 7), (800, 799), (120_000, 119_999)):
        for first in range(0, ROWS, 4):
            batch = [
                replace(row, array=ArrayTask(JobId(10), index, 0, count, 0, last))
                for index, row in enumerate(tasks[first : first + 4])
            ]
            (row,) = fold(batch, all_that_live=True)
            cells = (fitted(column.drawn(row, CONTEXT, width), width) for column, width in laid_out_jobs(WIDTHS[-1]))
            lines.append("|".join(with_roles(each).strip() for each in cells))
    assert_as_recorded("view-jobs-folded", lines)


@pytest.mark.req("UI-02")
def test_the_text_of_predictions_is_unchanged() -> None:
    lines = [with_roles(line) for outlook in made(Outlook, 2 * ROWS) for line in outlook_lines(outlook, CONTEXT)]
    assert_as_recorded("outlook", lines)


@pytest.mark.req("UI-02")
def test_every_reason_reads_as_it_did() -> None:
    reasons = made(Reason, 3 * len(get_args(Reason)))
    assert {type(each) for each in reasons} == set(get_args(Reason))
    wordings = [reason_wording(each, CONTEXT.now, CONTEXT.zone) for each in reasons]
    assert_as_recorded("reasons", dict.fromkeys(" | ".join((each.brief, *each.clauses)) for each in wordings))


@pytest.mark.req("JT-45")
def test_the_page_of_a_node_is_as_it_was() -> None:
    lines = [with_roles(line) for row in made(NodeRow) for line in node_page.node_lines(row, lambda _: None, CONTEXT)]
    assert_as_recorded("node-page", lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_top_bar_is_as_it_was(columns: int) -> None:
    lines = []
    for number in range(ABSENT, ROWS):
        standing = made_up(frame.TopBar, number)
        overviews = (None, made_up(Overview, number))
        lines += [with_roles(frame.top_bar(standing, overview, columns)) for overview in overviews]
    assert_as_recorded(f"top-bar-{columns}", dict.fromkeys(lines))
