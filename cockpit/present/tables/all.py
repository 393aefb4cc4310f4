"""All tables by their names."""

from __future__ import annotations

from typing import Final

from cockpit.present.columns import TableView
from cockpit.present.tables.accounting import ACCOUNTING, HOURS, SUMS
from cockpit.present.tables.accounts import ACCOUNTS
from cockpit.present.tables.block_list import BLOCK_LIST
from cockpit.present.tables.cards import CARD_MODELS, CARDS
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.clusters import CLUSTERS
from cockpit.present.tables.engine import ENGINE, FINDINGS
from cockpit.present.tables.events import EVENTS
from cockpit.present.tables.fleet import FLEET, FLEET_PODS
from cockpit.present.tables.forecast import STARTS
from cockpit.present.tables.holds import HOLDS
from cockpit.present.tables.job import JOB
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.lab import LAB
from cockpit.present.tables.launch import LAUNCH, LAUNCH_SCRIPT
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.outlook import EXPLAIN, PREDICT
from cockpit.present.tables.overview import OVERVIEW
from cockpit.present.tables.priority import PRIORITY
from cockpit.present.tables.qos import QOS
from cockpit.present.tables.queues import QUEUES, QUOTA
from cockpit.present.tables.replicas import REPLICAS
from cockpit.present.tables.reservations import RESERVATIONS
from cockpit.present.tables.staged import STAGED
from cockpit.present.tables.trials import TRIALS
from cockpit.present.tables.usage import USAGE
from cockpit.present.tables.waits import WAITS

_ALL: Final = (
    *(JOBS, JOB, USAGE, EXPLAIN, STARTS, PREDICT, PRIORITY, NODES, CARDS, CARD_MODELS, HOLDS),
    *(QUEUES, QUOTA, RESERVATIONS, EVENTS, OVERVIEW, ENGINE, FINDINGS, ACCOUNTS, QOS, CATALOGUE),
    *(ACCOUNTING, SUMS, HOURS, LAUNCH, LAUNCH_SCRIPT, STAGED, TRIALS, REPLICAS, BLOCK_LIST, CLUSTERS),
    *(FLEET, FLEET_PODS, WAITS, LAB),
)

TABLES: Final[dict[str, TableView]] = {table.name: table for table in _ALL}
