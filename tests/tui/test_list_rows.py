"""The row model of a list: what it shows, and which rows it says have changed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.node import NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import ClusterRow, ClusterState
from cockpit.present.columns import Context
from cockpit.present.spans import plain
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.nodes import NODES
from cockpit.tui.app_options import NoOthers
from cockpit.tui.rows.lists import ClusterRows, ListRows
from tests.doubles.samples import NOW, node_row

LARGE = NodeSpec(cpus=60, memory_mib=1024)


def rows_for(spec: NodeSpec | None) -> ListRows[str, object]:
    return ListRows(NODES, lambda: Context(now=NOW, chosen=spec))


@pytest.mark.req("UI-03")
def test_a_list_reports_changed_and_moved_rows() -> None:
    rows = rows_for(None)
    assert rows.take([node_row("a"), node_row("b")]) == (["a", "b"], True)
    assert rows.take([node_row("a"), replace(node_row("b"), used_cpus=1)]) == (["b"], False)
    assert rows.take([node_row("b")]) == (["b"], True)
    assert (rows.place("b"), rows.place("a"), rows.row("a")) == (0, None, None)


@pytest.mark.req("UI-03")
def test_cells_and_titles_have_the_same_columns() -> None:
    rows = rows_for(None)
    rows.take([node_row("a")])
    for width in (60, 118, 198):
        assert len(rows.cells("a", width)) == len(rows.columns(width))


@pytest.mark.req("JT-44")
def test_a_filter_of_nodes_judges_the_status_that_the_list_shows() -> None:
    rows = rows_for(LARGE)
    rows.take([node_row("a"), node_row("b", state=NodeState.DOWN)])
    rows.filter_by("status:tight")
    assert list(rows.order) == ["a"]
    assert "tight" in "".join(plain(cell) for cell in rows.cells("a", 118))


@pytest.mark.req("UI-10", "TR-04")
def test_silent_clusters_are_named_also_behind_a_filter() -> None:
    rows = ClusterRows(CLUSTERS, lambda: Context(now=NOW))
    states = {"east": ClusterState.LIVE, "west": ClusterState.SILENT}
    rows.take([ClusterRow(name=name, way="local", state=state) for name, state in states.items()])
    rows.filter_by("name:east")
    assert rows.silent() == ["west"]


@pytest.mark.req("UI-10")
async def test_without_other_clusters_there_are_none_to_list() -> None:
    assert await NoOthers().clusters() == []
