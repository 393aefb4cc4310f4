"""The acts of a chaos run. Each is drawn from the seed, and carried out on what is there at that moment.

An act is a method of `Disturbances`; it returns what it has done, for the printed plan, or an empty text if there was
nothing that it could be done to.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from cockpit.model import events
from tests.e2e.aftermath import engine_process, journal, kill, lives
from tests.e2e.chaos.machine import NODES, PRICE
from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.e2e.chaos.machine import Machine

MOST_DRAINED = 3
"""Nodes out of service at a time; so the jobs go on."""
DEATHS = (
    "appended WorkersRecalled",
    "appended WorkersLeft",
    "appended WorkersAdded",
    "appended WorkerReplaced",
    "appended JobRequeued",
    "appended JobPlaced",
    "appended EndingBegan",
    "appended ReplicaStarted",
    "appended GraceEnded",
)
"""Points at which an engine dies, between a decision and its effects."""
WEIGHTS = {
    "reclaim": 5,
    "give_notice": 3,
    "kill_worker": 6,
    "kill_shim": 3,
    "cut_link": 3,
    "mend_links": 2,
    "fail_node": 2,
    "kill_engine": 4,
    "let_engine_die": 2,
    "restart_engine": 1,
    "set_clock": 2,
    "drain": 2,
    "resume_nodes": 5,
    "submit_urgent": 3,
    "change_price": 2,
    "suspend": 1,
    "resume_job": 2,
    "requeue": 1,
    "unblock": 1,
}


class Disturbances:
    """What happens to a machine with jobs."""

    def __init__(self, machine: Machine, random: Random) -> None:
        self.machine, self.random = machine, random
        self.user = machine.user
        self.killed: list[tuple[int, int, int]] = []
        """Replicas (job, attempt, rank) whose process or shim was killed here."""
        self._cut: list[tuple[int, int, int]] = []
        self._suspended: list[str] = []
        self._urgent = 0

    def act(self) -> tuple[str, str]:
        """Do one thing; its name and what it was done to."""
        random = self.random
        name = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        return name, getattr(self, name)()

    # nodes

    def _drained(self) -> list[str]:
        return [row["name"] for row in self.user.rows("nodes") if row["status"] != "up"]

    def _up(self) -> str:
        """A node that may be taken out of service; empty: enough are."""
        drained = self._drained()
        pick = self.random.random()
        up = [name for name in NODES if name not in drained]
        return up[int(pick * len(up))] if len(drained) < MOST_DRAINED else ""

    def reclaim(self) -> str:
        node, grace = self._up(), self.random.choice((0, 1, 2, 4))
        return node and self._done(f"{node} in {grace} s", "reclaim", node, "--grace", str(grace))

    def give_notice(self) -> str:
        node, seconds = self._up(), self.random.choice((1, 3, 5))
        if node:
            self.machine.give_notice(node, seconds)
        return node and f"{node} in {seconds} s"

    def drain(self) -> str:
        node = self._up()
        return node and self._done(node, "nodes", "drain", node, "--reason", "chaos")

    def resume_nodes(self) -> str:
        drained = self._drained()
        return self._done(", ".join(drained), "nodes", "resume", *drained) if drained else ""

    def fail_node(self) -> str:
        """Cut the machine's network: a fault of each node on which a job with `resume` runs."""
        if not self.machine.network:
            return ""
        self.machine.set_interface("down")
        watched = self._jobs("resumes", "shrinks")
        if watched:  # two patrols find it
            before = self._faults()
            with_patience(lambda: self._faults() > before)
        self.machine.set_interface("up")
        return f"the interface, with {len(watched)} watched jobs"

    def _faults(self) -> int:
        return sum(isinstance(record.body, events.FaultFound) for record in journal(self.user))

    def change_price(self) -> str:
        price = self.random.choice((PRICE, "0.9"))
        self.machine.set_price(price)
        return price

    # processes

    def kill_worker(self) -> str:
        return self._kill(self._one(self.machine.trainers()), "")

    def kill_shim(self) -> str:
        one = self._one(self.machine.trainers())
        return self._kill(one and (one[0], self._holder(one[0])), "the shim of ")

    def _kill(self, one: tuple[tuple[int, int, int], int] | None, what: str) -> str:
        if one is None or not one[1]:
            return ""
        (job, attempt, rank), pid = one
        self.killed.append((job, attempt, rank))
        kill(pid)
        return f"{what}{job}#{attempt}/{rank}"

    def _one(self, trainers: dict[tuple[int, int, int], int]) -> tuple[tuple[int, int, int], int] | None:
        pick = self.random.random()
        return list(trainers.items())[int(pick * len(trainers))] if trainers else None

    def _holder(self, replica: tuple[int, int, int]) -> int:
        try:
            return self.user.holder_pid(str(replica[0]), replica[1], replica[2])
        except (OSError, ValueError):
            return 0

    def cut_link(self) -> str:
        one = self._one(self.machine.trainers())
        if one is None or not self.machine.network:
            return ""
        replica, _ = one
        holder = self._holder(replica)
        if not holder or not self.machine.set_link(holder, replica[2], "down"):
            return ""
        self._cut.append(replica)
        return "{}#{}/{}".format(*replica)

    def mend_links(self) -> str:
        mended, self._cut = self._cut, []
        for replica in mended:
            if holder := self._holder(replica):
                self.machine.set_link(holder, replica[2], "up")
        return ", ".join("{}#{}/{}".format(*replica) for replica in mended)

    # the engine

    def kill_engine(self) -> str:
        pid = engine_process(self.user)
        kill(pid)
        return str(pid)

    def let_engine_die(self) -> str:
        point = self.random.choice(DEATHS)
        pid = engine_process(self.user)
        if pid is None:
            return ""
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not lives(pid))
        self.user.env["COCKPIT_DIE_AT"] = point
        self.user.run("engine", "start")  # it may die while this command waits for it
        del self.user.env["COCKPIT_DIE_AT"]
        return point

    def restart_engine(self) -> str:
        return self._done("in order", "engine", "restart")

    def set_clock(self) -> str:
        offset = self.random.choice((0, -20, -600, -3600))
        self.machine.set_clock(offset)
        return f"{offset} s"

    # jobs

    def _jobs(self, *kinds: str) -> list[dict[str, Any]]:
        rows = self.user.rows("jobs", "--filter", "state:running", "--columns", "id,name")
        return [row for row in rows if not kinds or row["name"].partition("-")[0] in kinds]

    def submit_urgent(self) -> str:
        self._urgent += 1
        name, nodes = f"urgent-{self._urgent}", self.random.choice((1, 1, 2))
        specs = [{"cpus": self.random.choice((2, 4)), "memory": "64M"}]
        fields = {"qos": "high", "specs": specs, "time_limit": "1d"}
        if nodes > 1:
            fields |= {"nodes": nodes, "mode": "pytorch"}
        file = self.user.job("sleep 2", name=name, **fields)
        return self._done(f"{name}, {nodes} x {specs[0]['cpus']} CPUs", "submit", str(file))

    def suspend(self) -> str:
        jobs = self._jobs()
        pick = self.random.random()
        if not jobs:
            return ""
        job = str(jobs[int(pick * len(jobs))]["id"])
        self._suspended.append(job)
        return self._done(job, "suspend", job)

    def resume_job(self) -> str:
        if not self._suspended:
            return ""
        return self._done(self._suspended[0], "resume", self._suspended.pop(0))

    def requeue(self) -> str:
        jobs = self._jobs()
        pick = self.random.random()
        job = str(jobs[int(pick * len(jobs))]["id"]) if jobs else ""
        return job and self._done(job, "requeue", job, "--yes")

    def unblock(self) -> str:
        for row in self._jobs():
            blocked = self.user.rows("job", str(row["id"]), "--block-list")
            if blocked:
                node = str(blocked[0]["node"])
                return self._done(f"{node} of {row['id']}", "unblock", str(row["id"]), node)
        return ""

    # the end

    def mend(self) -> None:
        """Put everything in order that an act has disturbed and that nobody else puts in order."""
        self.mend_links()
        if self.machine.network:
            self.machine.set_interface("up")
        self.machine.set_price(PRICE)
        self.machine.set_clock(0)
        self.restart_engine()  # with the machine's time
        self.resume_nodes()
        eventually(self._nothing_is_suspended)

    def _nothing_is_suspended(self) -> bool:
        """A suspended job resumes once the CPUs that it had are free; one without nodes resumes by itself."""
        rows = self.user.rows("jobs", "--filter", "state:suspended", "--columns", "id,placed_on")
        suspended = [str(row["id"]) for row in rows if row["placed_on"]]
        for job in suspended:
            self.user.run("resume", job)
        return not suspended

    def _done(self, what: str, *words: str) -> str:
        """Run the command; what was done, or why it was refused. The state may have changed since it was looked at."""
        done = self.user.run(*words)
        return what if done.returncode == 0 else f"{what}: {done.stderr.decode().strip()}"


def with_patience(holds: Callable[[], object], seconds: float = 15) -> None:
    """Wait for what mostly happens; where it does not, the run goes on."""
    try:
        eventually(holds, seconds)
    except AssertionError:
        return
