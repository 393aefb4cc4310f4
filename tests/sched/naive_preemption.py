"""One cycle with preemption, slow and plainly right: every set of running jobs is tried, the smaller ones first.

For worlds with one partition, in order of submission, without limits or reservations.
"""

from __future__ import annotations

from itertools import combinations

from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from tests.sched.reference import Occupied, place


class NaivePreempting:
    """Afterwards it has `starts`, `switches` (jobs that resume), `evictions` (victims, and for which job) and
    `nominated` (nominated jobs)."""

    def __init__(self, world, *, backfill: bool) -> None:
        self.world, self.now, self.backfill = world, world.now, backfill
        self.nodes = list(world.nodes.values())
        self.qos = world.rules["accounts"].qos
        self.mode = world.rules["cluster"].preemption.mode[0]
        self.occupied, self.ends = dict(world.occupied), dict(world.ends)
        self.starts: list[tuple] = []
        self.switches: list[JobId] = []
        self.evictions: list[tuple[JobId, JobId]] = []
        self.nominated: set[JobId] = set()
        self.head: tuple | None = None
        self.waits: JobId | None = None
        self.failed: dict[tuple, str] = {}
        self.go_on()
        for job in world.queue:
            if job.clears and not job.held_by and place(job.spec, self.nodes, {}):
                self.keep_promise(job)
        for job in world.queue:
            if not job.held_by and job.id not in {start[0] for start in self.starts} | self.nominated:
                self.try_to_start(job)

    def go_on(self) -> None:
        still = [job for job in self.world.jobs.values() if job.state is JobState.SUSPENDED and job.id in self.occupied]
        for job in sorted(still, key=lambda each: (each.state_since, each.id)):
            if any(self.needs(self.world.jobs[other], job) for other in job.suspension.for_jobs):
                continue
            if all(self.free_cpus(part.node) >= part.cpus for part in job.attempt.placement):
                self.switches.append(job.id)
            self.occupied[job.id] = job.attempt.placement
            stood = job.attempt.suspended_ms + self.now - job.state_since
            self.ends[job.id] = Millis(job.attempt.placed_at + stood + 1000 * job.spec.time_limit_seconds)

    def needs(self, other: Job, job: Job) -> bool:
        if other.state is JobState.QUEUED:
            return job.id in other.clears and not other.held_by
        runs = other.id in self.world.occupied and other.state is not JobState.SUSPENDED
        nodes = {part.node for part in job.attempt.placement}
        return runs and any(part.node in nodes for part in other.attempt.placement)

    def free_cpus(self, name: str) -> int:
        held = [part.cpus for each in self.occupied.values() for part in each if part.node == name]
        return self.world.nodes[name].cpus - sum(held)

    def keep_promise(self, job: Job) -> None:
        if found := place(job.spec, self.nodes, self.occupied):
            self.start(job, found)
        elif found := place(job.spec, self.nodes, self.index_after_evictions()):
            endings = [each.ending for each in self.world.jobs.values() if each.id in self.occupied and each.ending]
            until = max([self.now, *(each.kill_at for each in endings if each.for_job == job.id)])
            self.nominate(job, found, -(-(until - self.now) // 1000))

    def start(self, job: Job, found) -> None:
        self.starts.append((job.id, *found))
        self.occupied[job.id], self.ends[job.id] = found[1], self.end(job)

    def nominate(self, job: Job, found, grace: int) -> None:
        self.nominated.add(job.id)
        self.occupied[job.id], self.ends[job.id] = found[1], self.end(job, grace)

    def end(self, job: Job, grace: int = 0) -> Millis:
        return Millis(self.now + 1000 * (job.spec.time_limit_seconds + grace))

    def index_after_evictions(self) -> Occupied:
        going = set() if self.mode == "SUSPEND" else {victim for victim, _ in self.evictions}
        leaving = {job.id for job in self.world.jobs.values() if job.ending is not None} | going
        return {job: held for job, held in self.occupied.items() if job not in leaving}

    def try_to_start(self, job: Job) -> None:
        spec = job.spec
        claim = job.qos if self.qos[job.qos].preempt else ""
        shape = (spec.nodes, spec.specs, spec.exclusive, claim)
        word = self.failed.get(shape)
        in_time = self.head is not None and self.end(job) <= self.head[2]
        if word is not None and not (word == "would delay" and self.backfill and in_time):
            return
        if word := self.consider(job, claim):
            self.failed[shape] = word

    def consider(self, job: Job, claim: str) -> str:
        if not place(job.spec, self.nodes, {}):
            return "never"
        found = place(job.spec, self.nodes, self.occupied)
        if found is None:
            if claim and self.make_room(job):
                return ""
            self.head = self.head or self.find_head(job)
            self.waits = self.waits or job.id
            return "no room"
        if not (found := self.place_behind_head(job, found, self.occupied, self.end(job))):
            return "would delay"
        self.start(job, found)
        return ""

    def make_room(self, job: Job) -> bool:
        if place(job.spec, self.nodes, self.index_after_evictions()):
            return False
        below = sorted(filter(lambda other: self.may(job, other), self.running()), key=self.rank)
        for size in range(1, len(below) + 1):
            for chosen in combinations(below, size):
                after = self.after(chosen)
                if place(job.spec, self.nodes, after):
                    return self.evict(job, chosen, after)
        return False

    def running(self) -> list[Job]:
        found = [self.world.jobs[job] for job in self.occupied]
        gone = {victim for victim, _ in self.evictions}
        on = [job for job in found if job.state in OCCUPYING and job.state is not JobState.SUSPENDED]
        return [job for job in on if job.ending is None and job.id not in gone]

    def may(self, job: Job, other: Job) -> bool:
        exempt = self.world.rules["cluster"].preemption.exempt_seconds if self.mode != "SUSPEND" else 0
        return other.qos in self.qos[job.qos].preempt and self.now >= other.attempt.placed_at + 1000 * exempt

    def rank(self, other: Job) -> tuple:
        return self.qos[other.qos].priority, -other.attempt.placed_at, -other.id

    def after(self, chosen) -> Occupied:
        left = {job: held for job, held in self.occupied.items() if job not in {each.id for each in chosen}}
        if self.mode == "SUSPEND":
            left |= {e.id: tuple(replace(part, cpus=0) for part in self.occupied[e.id]) for e in chosen}
        return left

    def evict(self, job: Job, chosen, after: Occupied) -> bool:
        still = self.mode == "SUSPEND"
        grace = 0 if still else max(self.qos[each.qos].grace_seconds for each in chosen)
        ends = dict(self.ends)
        if still:
            self.ends = {job: end for job, end in ends.items() if job not in {each.id for each in chosen}}
        found = self.place_behind_head(
            job, place(job.spec, self.nodes, after), after, self.end(job, grace), still=still
        )
        self.ends = ends
        if not found:
            return False
        ranked = sorted(self.running(), key=self.rank)
        self.evictions += [(each.id, job.id) for each in ranked if each in chosen]
        if still:
            self.occupied = after
            for each in chosen:
                self.ends.pop(each.id, None)
            self.start(job, found)
        else:
            self.nominate(job, found, grace)
            for each in chosen:
                gone = Millis(self.now + 1000 * self.qos[each.qos].grace_seconds)
                self.ends[each.id] = min(gone, self.ends.get(each.id, gone))
        return True

    def find_head(self, job: Job):
        for moment in sorted({max(self.now, end) for end in self.ends.values()}):
            if place(job.spec, self.nodes, self.still_there(moment, self.occupied)):
                return job.id, job.spec, moment
        return None

    def still_there(self, moment: Millis, occupied: Occupied) -> Occupied:
        return {
            job: held
            for job, held in occupied.items()
            if job not in self.ends or max(self.now, self.ends[job]) > moment
        }

    def place_behind_head(self, job: Job, found, occupied: Occupied, end: Millis, *, still: bool = False):
        if self.waits in (None, job.id):
            return found
        if not self.backfill:
            return None
        if self.head is None or self.head[0] == job.id:
            return found
        _, head, moment = self.head
        then = self.still_there(moment, occupied if still else self.occupied)
        if not place(head, self.nodes, then):
            return None
        if end <= moment:
            return found
        if place(head, self.nodes, {**then, job.id: found[1]}):
            return found
        reserved = frozenset(part.node for part in place(head, self.nodes, then)[1])
        other = place(job.spec, self.nodes, occupied, reserved)
        if other and place(head, self.nodes, {**then, job.id: other[1]}):
            return other
        return self.by_another(job, found[0] + 1, occupied, end, still=still)

    def by_another(self, job: Job, first: int, occupied: Occupied, end: Millis, *, still: bool):
        """Place the job by one of its alternatives from number `first` on."""
        rest = replace(job, spec=replace(job.spec, specs=job.spec.specs[first:]))
        found = place(rest.spec, self.nodes, occupied) if rest.spec.specs else None
        found = found and self.place_behind_head(rest, found, occupied, end, still=still)
        return found and (first + found[0], found[1])
