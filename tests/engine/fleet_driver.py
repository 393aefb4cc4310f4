"""A fleet and its members as pure engines under one hand-moved clock; orders and reports go between them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine import decide
from cockpit.engine.due import due
from cockpit.engine.effects import RemoveContainer, SignalReplica, StartReplica
from cockpit.engine.fleet.orders import MemberDecision, Open, orders
from cockpit.engine.fleet.reports import fleet_nodes, fleet_rules, others_held, part_ended, part_placed, part_started
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.events import EventBody
from cockpit.model.ids import JobId
from tests.engine.driver import EngineDriver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cockpit.model.cluster import Cluster
    from cockpit.model.fleet import Member
    from cockpit.model.ids import ReplicaId
    from cockpit.model.node import Node

RESERVING = {"kubernetes": "1.28", "scheduler": "6.8.0", "enable_reservation": True}
COUNTING = {"kubernetes": "1.26.3", "scheduler": "6.8.0", "enable_reservation": True}


class FleetDriver(EngineDriver):
    """Its own machine is the fleet's. Invariants are checked after every event everywhere."""

    def __init__(self, members: Sequence[Member], nodes: Mapping[str, Sequence[Node]], rules: Cluster | None = None):
        self.members = {each.name: EngineDriver(*nodes[each.name]) for each in members}
        machines = {name: each.machine for name, each in self.members.items()}
        seen = fleet_nodes(machines)
        super().__init__(*seen)
        self.machines = machines
        self.closed: dict[str, list[StartReplica]] = {name: [] for name in self.members}
        """Containers that do not begin yet."""
        self.tell(events.ClusterConfigured(fleet_rules(members, seen, rules)))

    def settle(self) -> None:
        """Let all clusters decide and exchange reports until no report is left."""
        while True:
            before = self._versions()
            for name, machine in self.machines.items():
                self.act(others_held(self.machine, name, machine))
            self.schedule()
            self._carry_out()
            for name, member in self.members.items():
                member.now = self.now
                member.schedule()
                self._hear(name)
            if before == self._versions():
                return

    def after(self, ms: int) -> None:
        """Let time pass for all clusters."""
        self.pass_time(ms)
        for member in self.members.values():
            member.now = self.now
            member.act(due(member.machine, self.now))
        self.settle()

    def end(self, job: JobId, **status: object) -> None:
        """All replicas end at their members."""
        for name, there in self.parts(job).items():
            for replica in self.members[name].replicas(there):
                self._ended(name, replica, ExitStatus(**status))
        self.settle()

    def ends_one(self, job: JobId, rank: int, **status: object) -> None:
        """One replica ends at its member."""
        for name, there in self.parts(job).items():
            part = self.members[name].job(there).part
            if part is not None and rank in part.ranks:
                replica = self.members[name].replicas(there)[part.ranks.index(rank)]
                self._ended(name, replica, ExitStatus(**status))
        self.settle()

    def parts(self, job: JobId) -> dict[str, JobId]:
        """By member, its job for the job's current attempt."""
        found: dict[str, JobId] = {}
        attempt = self.job(job).attempt
        for name, member in self.members.items():
            for each in member.machine.state.jobs.values():
                key = (each.part.job, each.part.attempt) if each.part is not None else None
                if attempt is not None and key == (job, attempt.number):
                    found[name] = each.id
        return found

    def running(self, job: JobId) -> int:
        """How many of its replicas run."""
        attempt = self.job(job).attempt
        return sum(1 for each in attempt.replicas if each.started_at) if attempt is not None else 0

    def bodies(self, kind: type) -> list[EventBody]:
        return [record.body for record in self.journal if isinstance(record.body, kind)]

    def _versions(self) -> list[int]:
        return [len(self.journal), *(len(each.journal) for each in self.members.values())]

    def _carry_out(self) -> None:
        """The fleet's effects, as orders to members."""
        pending, self.effects = self.effects, []
        for effect in pending:
            if isinstance(effect, StartReplica | SignalReplica | RemoveContainer):
                for order in orders(effect, self.machine, self.machines):
                    match order:
                        case MemberDecision(name, decision):
                            self.members[name].act(decision(self.machines[name], self.now))
                            self._hear(name)
                        case Open(name, job):
                            self._open(name, job)

    def _hear(self, name: str) -> None:
        """A member's effects, as reports to the fleet."""
        member = self.members[name]
        pending, member.effects = member.effects, []
        for effect in pending:
            match effect:
                case StartReplica():
                    self._placed(name, effect)
                case SignalReplica():
                    self._signalled(name, effect.replica)

    def _placed(self, name: str, effect: StartReplica) -> None:
        job = self.members[name].job(effect.replica.job)
        if job.part is None:
            self._started(name, effect.replica)
            return
        self.closed[name].append(effect)
        self.act(part_placed(self.machine, name, job))

    def _open(self, name: str, job: JobId) -> None:
        opened = [each for each in self.closed[name] if each.replica.job == job]
        self.closed[name] = [each for each in self.closed[name] if each.replica.job != job]
        for effect in opened:
            self._started(name, effect.replica)

    def _started(self, name: str, replica: ReplicaId) -> None:
        member = self.members[name]
        member.act(decide.replica_started(member.machine, replica, ""))
        part = member.job(replica.job).part
        if part is not None:
            self.act(part_started(self.machine, part, replica.rank, ""))

    def _signalled(self, name: str, replica: ReplicaId) -> None:
        begun = replica not in {each.replica for each in self.closed[name]}
        self.closed[name] = [each for each in self.closed[name] if each.replica != replica]
        self._ended(name, replica, ExitStatus(signal=15) if begun else ExitStatus(lost="it never began"))

    def _ended(self, name: str, replica: ReplicaId, status: ExitStatus) -> None:
        member = self.members[name]
        part = member.job(replica.job).part
        member.act(decide.replica_ended(member.machine, replica, status, self.now))
        if part is not None:
            self.act(part_ended(self.machine, part, replica.rank, status, self.now, 0))
