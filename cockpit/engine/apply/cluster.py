"""Applies the events of nodes, cluster rules, accounts, the catalogue, quotas, reservations and usage to the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.engine.apply.rules import Rules, free, ledger, usage_rules, write_down
from cockpit.model import events
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import UsageReset
from cockpit.model.ids import Millis
from cockpit.model.node import NodeState
from cockpit.model.quota import places
from cockpit.sched.priority import usage

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import NodeName

RULES = Rules()


@RULES.of(events.ClusterConfigured)
def _(body: events.ClusterConfigured, state: ClusterState, _record: events.EventRecord) -> None:
    state.cluster = body.cluster
    if body.cluster.priority.usage_reset is UsageReset.NOW:
        state.usage_reset_at = Millis(0)  # makes the next decay reset usage, once


@RULES.of(events.UsageDecayed)
def _(body: events.UsageDecayed, state: ClusterState, record: events.EventRecord) -> None:
    passed = usage.updated(ledger(state), usage_rules(state), state.jobs.values(), record.at, reset=body.reset)
    write_down(state, passed)
    # The first decay begins the first period, from which `UsageReset` counts the next one.
    if body.reset or not state.usage_reset_at:
        state.usage_reset_at = record.at


@RULES.of(events.AccountsChanged)
def _(body: events.AccountsChanged, state: ClusterState, _record: events.EventRecord) -> None:
    associations = state.accounts.associations | {each.key: each for each in body.associations}
    qos = state.accounts.qos | {each.name: each for each in body.qos}
    accounts = Accounts(
        associations={key: each for key, each in associations.items() if key not in body.removed_associations},
        qos={name: each for name, each in qos.items() if name not in body.removed_qos},
    )
    # From the old tree to the new one, so before the old one is replaced.
    state.usage = usage.after_account_change(state.usage, state.accounts, accounts)
    state.accounts = accounts


@RULES.of(events.CatalogueChanged)
def _(body: events.CatalogueChanged, state: ClusterState, _record: events.EventRecord) -> None:
    gone = {each.key for each in body.removed}
    left = {key: each for key, each in state.catalogue.items() if key not in gone}
    state.catalogue = left | {each.key: each for each in body.entries}


@RULES.of(events.ReservationMade)
def _(body: events.ReservationMade, state: ClusterState, _record: events.EventRecord) -> None:
    # A new dictionary, here and below: snapshots of passes share the old one.
    state.reservations = state.reservations | {body.reservation.name: body.reservation}


@RULES.of(events.ReservationEnded)
def _(body: events.ReservationEnded, state: ClusterState, _record: events.EventRecord) -> None:
    state.reservations = {name: each for name, each in state.reservations.items() if name != body.name}


@RULES.of(events.NodeDrained)
def _(body: events.NodeDrained, state: ClusterState, _record: events.EventRecord) -> None:
    _change_node(state, body.node, state=NodeState.DRAINED, state_reason=body.reason, drained_by=body.by)
    if body.notice_at is not None:
        state.notices[body.node] = body.notice_at


@RULES.of(events.NodeResumed)
def _(body: events.NodeResumed, state: ClusterState, _record: events.EventRecord) -> None:
    _change_node(state, body.node, state=NodeState.UP, state_reason="", drained_by="")


@RULES.of(events.PricesChanged)
def _(body: events.PricesChanged, state: ClusterState, _record: events.EventRecord) -> None:
    state.nodes = {name: replace(node, price_milli=body.prices.get(name)) for name, node in state.nodes.items()}


def _change_node(state: ClusterState, name: NodeName, /, **fields: Any) -> None:  # noqa: ANN401 - of Node
    state.nodes = {**state.nodes, name: replace(state.nodes[name], **fields)}


@RULES.of(events.QuotaApplied)
def _(body: events.QuotaApplied, state: ClusterState, record: events.EventRecord) -> None:
    # Queues that the new tree has too keep the time at which they were added.
    known = state.queues_since
    state.quota = body.tree
    state.queues_since = {each.path: known.get(each.path, record.at) for each in places(body.tree.root)}


@RULES.of(events.QuotaRemoved)
def _(_body: events.QuotaRemoved, state: ClusterState, _record: events.EventRecord) -> None:
    state.quota, state.queues_since = None, {}


@RULES.of(events.OthersHeld)
def _(body: events.OthersHeld, state: ClusterState, record: events.EventRecord) -> None:
    state.others = state.others | {body.member: body.held}
    # The member's jobs may hold more or less; only less matters, but a wrong "released" costs no more than a try.
    free(state, [body.member], record.at)


@RULES.of(events.NodesChanged)
def _(body: events.NodesChanged, state: ClusterState, record: events.EventRecord) -> None:
    # A new dictionary: snapshots and indices of passes still refer to the old one.
    state.nodes = {node.name: node for node in body.nodes}
    free(state, [each.name for each in state.cluster.members], record.at)


@RULES.of(
    events.ShellOpened,
    events.CopyRemoved,
    events.ReceiverFailed,
    events.ReceiverRecovered,
    events.ClusterReported,
    events.EngineStarted,
    events.EngineStopAsked,
    events.EngineStopped,
)
def _(_body: object, _state: ClusterState, _record: events.EventRecord) -> None:
    """Leave the state as it is: these events are recorded only to be shown in the event list."""
