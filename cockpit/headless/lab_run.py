"""Runs the policy lab from the arguments of `cockpit lab`: fetches or reads the past, replays it twice, compares."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from cockpit.engine.replay.lab import (
    LabChanges,
    PastJob,
    Scenario,
    changed,
    missing_nodes,
    past_jobs,
    run_scenario,
    today,
)
from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError
from cockpit.headless.typed_line import account_request
from cockpit.model.accounts import Accounts, assoc_key
from cockpit.model.cluster import BackfillKind, Cluster
from cockpit.model.ids import Millis, NodeName
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.lab import LabReport, lab_report
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.model.view import AccountsShown

MOST_JOBS: Final = 20_000
"""Most jobs that are replayed, the last ones: some ten seconds for each of the two replays."""


class Prepared(msgspec.Struct, frozen=True):
    """The past and the two scenarios."""

    past: list[PastJob]
    today: Scenario
    changed: Scenario
    words: tuple[str, ...]
    """What is different, in words."""


def changes_of(args: Namespace, backfill_of: Scenario) -> LabChanges:
    """Return the changes that the arguments name."""
    backfill = None
    if args.backfill is not None or args.depth is not None:
        backfill = backfill_of.policy.backfill
        backfill = replace(
            backfill,
            kind=BackfillKind(args.backfill) if args.backfill is not None else backfill.kind,
            depth=args.depth if args.depth is not None else backfill.depth,
        )
    return LabChanges(
        weights=args.weights,
        backfill=backfill,
        accounts=tuple(account_request(text).change for text in args.accounts or ()),
        removed_nodes=tuple(NodeName(name) for name in (args.remove_nodes or "").split(",") if name),
        added_nodes=tuple(args.add_nodes or ()),
    )


def words_of(args: Namespace, changes: LabChanges) -> tuple[str, ...]:
    """Return what is different in words, one line for each kind of change."""
    lines: list[str] = []
    if changes.weights is not None:
        given = msgspec.to_builtins(changes.weights)
        tres = given.pop("tres", {})
        pairs = [*given.items(), *((f"tres/{name}", weight) for name, weight in tres.items())]
        lines.append("weights " + ", ".join(f"{name}={weight:g}" for name, weight in pairs))
    if changes.backfill is not None:
        lines.append(f"backfill {changes.backfill.kind}, depth {changes.backfill.depth or 'unlimited'}")
    lines += [f"accounts {text}" for text in args.accounts or ()]
    if changes.removed_nodes:
        lines.append(f"without {', '.join(changes.removed_nodes)}")
    lines += [f"{count} more like {name}" for count, name in changes.added_nodes]
    return tuple(lines)


def prepared(args: Namespace, past: list[PastJob], scenario: Scenario) -> Prepared:
    """Return the past and the scenarios. Raises `RequestRefused` for a change that would be refused, `SpecErrors`
    without jobs."""
    if not past:
        raise SpecErrors(
            ["There is no recorded job in this time: take a longer one with --since, such as --since 30d."]
        )
    changes = changes_of(args, scenario)
    if missing := missing_nodes(scenario, changes):
        known = ", ".join(sorted(node.name for node in scenario.nodes)[:10])
        message = f"There is no node {safe(missing[0])}; there are {safe(known)}."
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
    other = changed(scenario, changes)
    if isinstance(other, Refusal):
        raise RequestRefused(other)
    return Prepared(past, scenario, other, words_of(args, changes))


async def from_cluster(args: Namespace, backend: Backend, now: Millis, since: Millis) -> Prepared:
    """Return what the cluster recorded since a moment, and its rules."""
    ended = [job.row for job in await backend.accounting(since=since, until=None, user=None)]
    known = {row.id for row in ended}
    # The list has what waits and runs, and on a snapshot also what had ended, of which there is no accounting.
    listed = [row for row in await backend.jobs(ended=True) if row.id not in known]
    recent = [row for row in listed if row.ended_at is None or row.ended_at >= since]
    past = past_jobs([*ended, *recent], now)[-MOST_JOBS:]
    nodes = [row.node for row in await backend.nodes() if not row.login]
    return prepared(args, past, today(nodes, await _rules(backend), await _accounts(backend)))


async def _rules(backend: Backend) -> Cluster:
    """Return the rules; the defaults where the cluster does not tell them."""
    try:
        return await backend.rules()
    except RequestRefused:
        return Cluster()


async def _accounts(backend: Backend) -> Accounts:
    """Return the accounts; the built-in ones where the cluster does not tell any."""
    try:
        shown: AccountsShown = await backend.accounts()
    except RequestRefused:
        return Accounts()
    begin = Accounts()
    associations = {row.association.key: row.association for row in shown.rows}
    qos = {each.name: each for each in shown.qos}
    return Accounts(associations=begin.associations | associations, qos=begin.qos | qos)


def from_log(args: Namespace, source: str, data: bytes) -> Prepared:
    """Return the past of a log in SWF, on a machine of its processors."""
    from cockpit.formats.traces.swf import history, machine, multifactor, processors_said, read_swf

    processors = args.procs or processors_said(source, data)
    if processors is None:
        raise UsageError(f"{source}: its header has no MaxProcs; say with --procs N how many processors there were")
    known = history(read_swf(source, data), processors)
    past = [
        PastJob(
            arrival,
            arrival.submitted.submitter.name,
            arrival.submitted.account,
            f"queue {job.queue}" if job.queue >= 0 else "",
            job.waited if job.waited >= 0 else None,
        )
        for job, arrival in zip(known.jobs, known.arrivals, strict=True)
    ][-MOST_JOBS:]
    _, users = multifactor(known)
    accounts = Accounts(
        associations=Accounts().associations
        | {assoc_key(each.account, each.user, each.partition): each for each in users.associations}
    )
    return prepared(args, past, Scenario(nodes=(machine(processors),), accounts=accounts))


def run_lab(job: Prepared, watch: Callable[[int], None] | None = None) -> LabReport:
    """Replay the past twice and compare; `watch` is called with the number of jobs that have ended in both together."""
    before = run_scenario(job.today, job.past, watch)
    # Without a change there is nothing else to replay.
    if job.changed == job.today:
        return lab_report(job.past, before, before, job.words)
    count = len(job.past)
    after = run_scenario(job.changed, job.past, (lambda ended: watch(count + ended)) if watch else None)
    return lab_report(job.past, before, after, job.words)
