"""The Clusters view: the clusters that the user has, and the jobs of a fleet over all of them, as two tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Line, Span, line
from cockpit.present.tables.clusters import CLUSTERS as CLUSTER_TABLE
from cockpit.present.tables.clusters import cluster_answer
from cockpit.present.tables.fleet import FLEET as FLEET_TABLE
from cockpit.present.tables.fleet import fleet_answer
from cockpit.tui.rows.fleet import FleetAnswer
from cockpit.tui.views.view import FetchContext, View, ViewContext, connecting, tabs_note

if TYPE_CHECKING:
    from collections.abc import Iterable


async def _fetch_clusters(context: FetchContext) -> None:
    context.take(CLUSTERS.id, await context.state.options.every.clusters())


async def _fetch_fleet(context: FetchContext) -> None:
    """Fetch the jobs of all clusters, and the pods of the unfolded ones."""
    try:
        jobs = (await context.backend.fleet()).jobs
    except RequestRefused as refused:
        context.take(FLEET.id, FleetAnswer(refusal=str(refused)))
        return
    listed = {row.job for row in jobs}
    unfolded = [JobId(job) for job in sorted(context.state.fleet_rows.with_pods & listed - {0})]
    pods = list((await context.backend.fleet(jobs=unfolded, pods=True)).pods) if unfolded else []
    context.take(FLEET.id, FleetAnswer(jobs, pods))


def _no_fleet(context: ViewContext) -> Iterable[Line]:
    answer = context.state.fleet_rows.answer
    if answer is None:
        return connecting(context.state)
    words = answer.refusal or ("No job passes the filter." if context.filter else FLEET_TABLE.empty)
    return (line(), line(Span(f"   {safe(words)}", MUTED)))


CLUSTERS: Final = View(
    table=CLUSTER_TABLE,
    title="Clusters",
    tab="clusters",
    rows=lambda state: state.cluster_rows,
    fetch=_fetch_clusters,
    key="8",
    action="clusters",
    help="Show all clusters that you use",
    opens="open_cluster",
    hint="state:live queued<10 cards>8 name~lab",
    panel=lambda row, context: cluster_answer(row, context.state.context(), context.keys, context.columns),
    note=lambda context: tabs_note(TABS, "clusters", context),
)
FLEET: Final = View(
    table=FLEET_TABLE,
    title="Clusters",
    tab="fleet",
    rows=lambda state: state.fleet_rows,
    fetch=_fetch_fleet,
    key="9",
    action="fleet",
    help="Show a fleet's jobs on all clusters",
    opens="unfold_fleet",
    hint="cluster:west state:running adoption:N name~bert",
    panel=lambda row, context: fleet_answer(row, context.state.context(), context.keys, context.columns),
    note=lambda context: tabs_note(TABS, "fleet", context),
    advice=_no_fleet,
)
TABS: Final[tuple[View, ...]] = (CLUSTERS, FLEET)
