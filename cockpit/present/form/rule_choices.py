"""Partitions, queues, accounts, QOS and reservations as choices of the form, with the rules that keep a job out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.engine.submission.account_defaults import default_account, usual_qos
from cockpit.model.accounts import ROOT
from cockpit.model.cluster import Cluster, Enforce, PartitionState
from cockpit.model.spec import JobSpec, PriorityWord
from cockpit.present.form.choices import FieldChoice
from cockpit.present.form.node_choices import FittingNodes
from cockpit.present.reasons import reason_wording
from cockpit.present.units import counted, spoken
from cockpit.sched.nodes.reservation_windows import is_open_to
from cockpit.sched.rules.partitions import about_owner, about_size, nodes_of
from cockpit.sched.rules.rulebook import allowed_qos

if TYPE_CHECKING:
    from cockpit.model.cluster import Partition
    from cockpit.model.reasons import Reason
    from cockpit.model.view import QueueRow
    from cockpit.present.form.facts import ClusterFacts

_STATES: Final = {
    PartitionState.DOWN: "starts no jobs now (down)",
    PartitionState.DRAIN: "takes no new jobs now (drain)",
    PartitionState.INACTIVE: "takes and starts no jobs now (inactive)",
}


class RuleChoices:
    """The choices that follow from the cluster's rules for this user."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts, self._accounts, self._up = facts, facts.tree, facts.up

    @property
    def has_partitions(self) -> bool:
        """Whether `partitions` yields any."""
        rules = self._facts.rules
        named = rules is not None and any(each.name for each in rules.partitions)
        return named or any(map(_takes_jobs_by_name, self._facts.queues))

    def partitions(self, spec: JobSpec | None) -> Iterator[FieldChoice]:
        """Yield the partitions, and the queues that jobs name."""
        rules = self._facts.rules
        if rules is not None:
            fitting = FittingNodes(self._up, spec)
            yield from (self._partition(rules, each, spec, fitting) for each in rules.partitions if each.name)
        for row in self._facts.queues:
            if _takes_jobs_by_name(row):
                yield FieldChoice(row.name, f"{row.running} running, {row.waiting} waiting", row.stopped)

    def _partition(self, rules: Cluster, each: Partition, spec: JobSpec | None, fitting: FittingNodes) -> FieldChoice:
        members = {node.name for node in nodes_of(rules, each.name, (row.node for row in self._up))}
        parts = [counted(len(members), "node")]
        if spec is not None and members:
            parts.append(f"room now on {len(members & fitting.now)}")
        if each.max_time_seconds is not None:
            parts.append(f"at most {spoken(each.max_time_seconds)}")
        if each is rules.default_partition:
            parts.append("the default")
        reason = self._broken_rule(each, spec)
        why_not = _STATES.get(each.state, "") or (self._brief(reason) if reason is not None else "")
        # The nodes of a fleet's member are not known here.
        if not why_not and not rules.members and spec is not None and members and not members & fitting.when_empty:
            why_not = "no node in it is big enough"
        return FieldChoice(each.name, " · ".join(parts), why_not)

    def _broken_rule(self, each: Partition, spec: JobSpec | None) -> Reason | None:
        """Return the rule by which the partition refuses the job; None: none does, as far as is known."""
        account = self._account_of(spec)
        excluded = about_owner(each, self._facts.user, account, self._qos_of(spec, account))
        # Without an account it is not known yet whether the partition allows the job's.
        if account and excluded is not None:
            return excluded
        return about_size(each, spec) if spec is not None else None

    def accounts(self) -> Iterator[FieldChoice]:
        """Yield the user's accounts; where accounts are enforced also the others, with the reason."""
        rows = self._facts.accounts.rows if self._facts.accounts is not None else ()
        default, own = default_account(self._accounts, self._facts.user), dict[str, list[str]]()
        for row in rows:
            if row.association.user == self._facts.user:
                facts = own.setdefault(row.association.account, [])
                facts += ["your default"] * (row.association.account == default)
                facts += [f"fair share {row.fair_share:.2f}"] if row.fair_share is not None else []
                facts += [f"in partition {row.association.partition}"] if row.association.partition else []
        yield from (FieldChoice(name, " · ".join(dict.fromkeys(facts))) for name, facts in own.items())
        if self._facts.enforces(Enforce.ASSOCIATIONS):
            others = dict.fromkeys(
                row.association.account for row in rows if row.association.account not in {ROOT, *own}
            )
            yield from (FieldChoice(name, why_not="you are not a user of it") for name in others)

    def qos(self, spec: JobSpec | None) -> Iterator[FieldChoice]:
        """Yield every QOS; where they are enforced, those that the job's account lacks have the reason."""
        account = self._account_of(spec)
        association = self._accounts.of(account, self._facts.user)
        allowed = allowed_qos(self._accounts, association) if association is not None else tuple(self._accounts.qos)
        is_bound = self._facts.enforces(Enforce.QOS)
        for name, each in self._accounts.qos.items():
            parts = [f"priority {each.priority}"]
            if each.limits.max_wall_seconds is not None:
                parts.append(f"at most {spoken(each.limits.max_wall_seconds)}")
            if each.preempt:
                parts.append(f"preempts {', '.join(each.preempt)}")
            why_not = f"not allowed to you in account {account}" if is_bound and name not in allowed else ""
            yield FieldChoice(name, " · ".join(parts), why_not)

    def reservations(self, spec: JobSpec | None) -> Iterator[FieldChoice]:
        """Yield the reservations; those that the job may not use have the reason."""
        account = self._account_of(spec)
        for each in self._facts.reservations:
            is_open = is_open_to(each, self._facts.user, account, self._facts.now)
            yield FieldChoice(each.name, counted(len(each.nodes), "node"), "" if is_open else "over, or not for you")

    def _account_of(self, spec: JobSpec | None) -> str:
        named = spec.account if spec is not None else None
        return named or default_account(self._accounts, self._facts.user)

    def _qos_of(self, spec: JobSpec | None, account: str) -> str:
        if spec is not None and spec.qos:
            return spec.qos
        word = spec.priority if spec is not None else PriorityWord.NORMAL
        return usual_qos(self._accounts, self._accounts.of(account, self._facts.user), word)

    def _brief(self, reason: Reason) -> str:
        return reason_wording(reason, self._facts.now, None).brief


def _takes_jobs_by_name(row: QueueRow) -> bool:
    """Return whether jobs name this queue: one that says so, or a queue of one namespace, which its path ends with."""
    return row.by_name or (len(row.projects) == 1 and row.path.endswith(f"{row.name} ({row.projects[0]})"))
