"""What must fit together in a snapshot: people edit these files, and other programs write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.accounts import ROOT, assoc_key
from cockpit.model.accounttree import account_troubles
from cockpit.model.job import OCCUPYING
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.engine.state import ClusterState
    from cockpit.model.accounts import Accounts
    from cockpit.model.job import Job
    from cockpit.model.node import Allocation

MOST_ERRORS = 20


def snapshot_errors(state: ClusterState) -> list[str]:
    """One sentence for each contradiction, led by its place; of many only the first ones."""
    found = [error for _, error in zip(range(MOST_ERRORS + 1), _errors(state), strict=False)]
    return [*found[:MOST_ERRORS], "state: further contradictions are not listed"] if len(found) > MOST_ERRORS else found


def _errors(state: ClusterState) -> Iterator[str]:
    yield from _misnamed("nodes", {name: node.name for name, node in state.nodes.items()})
    yield from _misnamed("jobs", {job: found.id for job, found in state.jobs.items()})
    yield from _misnamed("reservations", {name: found.name for name, found in state.reservations.items()})
    yield from _accounts(state.accounts)
    for key in state.usage:
        if key not in state.accounts.associations:
            yield f"state.usage: {_key(key)} matches no association; remove it or add the association"
    for job in state.jobs.values():
        yield from _job(job, state)


def _accounts(accounts: Accounts) -> Iterator[str]:
    at = "state.accounts"
    yield from _misnamed("accounts.associations", {key: each.key for key, each in accounts.associations.items()})
    yield from _misnamed("accounts.qos", {name: each.name for name, each in accounts.qos.items()})
    if assoc_key(ROOT) not in accounts.associations:
        yield f"{at}.associations: has no account root, which is above all others"
    for trouble in account_troubles(accounts):
        yield f"{at}: {_key(trouble.key)}: {trouble.field}: {trouble.sentence}"


def _misnamed(at: str, names: Mapping[object, object]) -> Iterator[str]:
    """Entries that stand under another name than their own."""
    for key, own in names.items():
        if key != own:
            yield f"state.{at}: what stands under {_key(key)} calls itself {_key(own)}"


def _job(job: Job, state: ClusterState) -> Iterator[str]:
    at = f"state.jobs[{job.id}]"
    if job.state in OCCUPYING and job.attempt is None:
        yield f"{at}: is {job.state} without an attempt"
    attempts = () if job.attempt is None else (*job.earlier, job.attempt)
    if job.attempt is not None and (job.state in OCCUPYING or job.kept):
        for part in job.attempt.placement:
            yield from _allocation(f"{at}.attempt", part, state)
    for attempt in attempts:
        there = len(job.spec.specs)
        if not 0 <= attempt.spec_index < there:
            yield f"{at}: attempt {attempt.number} is of alternative {attempt.spec_index}, and there are {there}"
    if not job.spec.specs:
        yield f"{at}.spec.specs: is empty"


def _allocation(at: str, part: Allocation, state: ClusterState) -> Iterator[str]:
    node = state.nodes.get(part.node)
    if node is None:
        yield f"{at}: runs on node {visible(part.node)}, which is not among the nodes"
        return
    for each in part.slices:
        if not 0 <= each.card < len(node.cards):
            yield f"{at}: has card {each.card} of node {visible(part.node)}, which has {len(node.cards)}"


def _key(key: object) -> str:
    return visible(str(key))
