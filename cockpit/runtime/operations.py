"""The table of the socket's operations: for each name, the type of its arguments and its function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.model import asking
from cockpit.protocol import messages, pages
from cockpit.runtime import accounting, acting, predicting, reading, staging
from cockpit.runtime.priorities import priorities
from cockpit.runtime.priority_weights import set_weights
from cockpit.runtime.snapshots import snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

Operation = tuple[type[msgspec.Struct], "Callable[..., Coroutine[Any, Any, Any] | AsyncIterator[Any]]"]

OPERATIONS: dict[str, Operation] = {
    "status": (messages.NoArgs, reading.status),
    "overview": (messages.NoArgs, reading.overview_of),
    "jobs": (pages.JobsArgs, reading.jobs),
    "subscribe": (pages.SubscribeArgs, reading.subscribe),
    "job": (messages.JobArgs, reading.job),
    "nodes": (messages.NoArgs, reading.nodes),
    "holds": (messages.NoArgs, reading.holds),
    "priorities": (messages.PrioritiesArgs, priorities),
    "explain": (messages.JobArgs, predicting.explain),
    "starts": (messages.StartsArgs, predicting.starts),
    "predict": (messages.PredictArgs, predicting.predict),
    "reservations": (messages.NoArgs, reading.reservations),
    "events": (messages.EventsArgs, reading.list_events),
    "wait": (messages.WaitArgs, reading.wait),
    "logs": (asking.LogRequest, reading.logs),
    "submit": (messages.SubmitArgs, acting.submit_jobs),
    "cancel": (messages.CancelArgs, acting.cancel),
    "hold": (messages.JobArgs, acting.hold),
    "release": (messages.JobArgs, acting.release),
    "suspend": (messages.JobArgs, acting.suspend),
    "resume": (messages.JobArgs, acting.resume),
    "requeue": (messages.JobArgs, acting.requeue),
    "edit": (messages.EditArgs, acting.edit),
    "delete": (messages.JobArgs, acting.delete),
    "set_time_limit": (messages.SetTimeLimitArgs, acting.set_time_limit),
    "set_priority": (messages.SetPriorityArgs, acting.set_priority),
    "set_weights": (messages.SetWeightsArgs, set_weights),
    "make_reservation": (messages.ReservationArgs, acting.make_reservation),
    "end_reservation": (messages.NameArgs, acting.end_reservation),
    "drain_node": (messages.DrainArgs, acting.drain_node),
    "resume_node": (messages.NameArgs, acting.resume_node),
    "staged": (messages.NoArgs, staging.staged),
    "unstage": (messages.NameArgs, staging.unstage),
    "extend_hold": (messages.ExtendArgs, acting.extend_hold),
    "end_hold": (messages.JobArgs, acting.end_hold),
    "rules": (messages.NoArgs, reading.rules),
    "accounts": (messages.NoArgs, reading.accounts),
    "accounting": (messages.AccountingArgs, accounting.list_ended),
    "spending": (messages.SpendingArgs, accounting.spending_of),
    "change_accounts": (messages.ChangeAccountsArgs, acting.change_accounts),
    "catalogue": (messages.NoArgs, reading.catalogue),
    "change_catalogue": (messages.ChangeCatalogueArgs, acting.change_catalogue),
    "queues": (messages.NoArgs, reading.queues),
    "snapshot": (messages.NoArgs, snapshot),
    "apply_quota": (messages.ApplyQuotaArgs, acting.apply_quota),
    "remove_quota": (messages.NoArgs, acting.remove_quota),
    "stop": (messages.StopArgs, acting.stop),
    "request": (messages.RequestArgs, reading.request),
}
"""All operations but `shell`, which the connection handles itself because its answer carries file descriptors."""

SHELL = "shell"
ONCE = frozenset(
    {
        *("submit", "cancel", "hold", "release", "suspend", "resume", "requeue", "edit", "delete"),
        *("set_time_limit", "set_priority", "set_weights", "make_reservation", "end_reservation"),
        *("drain_node", "resume_node", "unstage", "extend_hold", "end_hold", "change_accounts", "change_catalogue"),
        *("apply_quota", "remove_quota"),
    }
)
"""Operations that happen once per request id. Reading needs no id, and a repeated `shell` or `stop` happens again."""
WAITING = frozenset({SHELL, "stop", "subscribe", "wait", "logs", "explain", "starts", "predict"})
"""Operations that may take long and have small answers: the connection answers other requests meanwhile."""
