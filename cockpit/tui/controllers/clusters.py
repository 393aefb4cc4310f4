"""Controllers of the Clusters view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.config.clusternames import DEMO, EVERY_CLUSTER
from cockpit.tui.action import CLUSTERS, JOBS

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_clusters(app: CockpitBase) -> None:
    """Close all pages, then show the Clusters view."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(CLUSTERS)


def open_cluster(app: CockpitBase) -> None:
    """Open the cluster under the cursor: its jobs where it is part of the present one, else in place of it."""
    row = app.main_view.cluster_under_cursor()
    if row is None:
        return
    if row.fleet:
        app.main_view.show_jobs_of_member(row.name)
    elif row.name == app.cluster:
        app.main_view.show_view(JOBS)
    else:
        app.go_to_cluster(row.name)


def every_job(app: CockpitBase) -> None:
    """List the jobs of all clusters in one table; a demo shows the jobs of its own clusters."""
    if app.cluster in {EVERY_CLUSTER, DEMO}:
        app.main_view.show_view(JOBS)
    else:
        app.go_to_cluster(EVERY_CLUSTER)
