"""The description of the rows of each list view: its columns, by which users filter it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.present.tables.accounting import HOURS
from cockpit.present.tables.accounts import ACCOUNTS, QOS
from cockpit.present.tables.cards import CARDS
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.priority import PRIORITY
from cockpit.present.tables.queues import QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.present.columns import Table

VIEW_TABLES: Final[Mapping[str, Table]] = {
    table.name: table for table in (JOBS, NODES, CARDS, PRIORITY, ACCOUNTS, QOS, QUEUES, HOURS, CATALOGUE, CLUSTERS)
}
"""The tables, by the name of their view."""
