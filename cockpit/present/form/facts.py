"""What the form knows of the cluster, from which the candidates of its fields are made."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cockpit.model.accounts import Accounts
from cockpit.model.catalogue import EntryRow
from cockpit.model.cluster import Cluster, Enforce, Reservation
from cockpit.model.ids import Millis
from cockpit.model.node import NodeState
from cockpit.model.view import AccountsShown, NodeRow, QueueRow
from cockpit.sched.rules.rulebook import enforced


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the cluster for the form; what it does not have or has not answered yet is empty."""

    user: str = ""
    admin: bool = True
    now: Millis = Millis(0)
    nodes: tuple[NodeRow, ...] = ()
    rules: Cluster | None = None
    accounts: AccountsShown | None = None
    queues: tuple[QueueRow, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    catalogue: tuple[EntryRow, ...] = ()
    images: Mapping[str, str] = {}
    """The images of the user's jobs, each with the name of a job."""
    host_image: bool = True
    """Whether a job without an image runs in the file system of its node."""
    demand: Mapping[str, float] = {}
    """The number of cards that queued jobs request, by model."""

    @property
    def up(self) -> list[NodeRow]:
        """The nodes in service that run jobs."""
        return [row for row in self.nodes if row.node.state is NodeState.UP and not row.login]

    @property
    def tree(self) -> Accounts:
        """The accounts and QOS that the user may see."""
        shown = self.accounts
        return Accounts(
            associations={row.association.key: row.association for row in shown.rows} if shown else {},
            qos={each.name: each for each in shown.qos} if shown else {},
        )

    def enforces(self, part: Enforce) -> bool:
        """Return whether the cluster refuses jobs by this part of its accounting rules."""
        return self.rules is not None and part in enforced(self.rules.enforce)
