"""One cycle under rules, slow and plainly right: what starts, what is reserved, and in a word why the rest waits."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from tests.sched.naive_limits import amounts_asked, amounts_held
from tests.sched.naive_rules import NaiveRules
from tests.sched.reference import FOREVER, Occupied, hole_at, place


class NaiveEasy:
    """Afterwards: `starts`, `reservation`, and `words` by job: one for each partition that it was tried in."""

    def __init__(self, world, rules: NaiveRules, *, backfill: bool) -> None:
        self.world, self.rules, self.now, self.backfill = world, rules, world.now, backfill
        self.all_nodes = list(world.nodes.values())
        self.occupied, self.ends = dict(world.occupied), dict(world.ends)
        self.starts: list[tuple] = []
        self.head: tuple[Job, str, object, Millis] | None = None
        """Job, partition, what of its spec limits leave open, moment."""
        self.first_waiting: JobId | None = None
        self.refused: dict[tuple, str] = {}
        self.failed: dict[tuple, str] = {}
        self.opened: dict[tuple, tuple] = {}
        tried = []
        for job, name in rules.entries():
            tried.append((job, name))
            if job.id not in {start[0] for start in self.starts} and not rules.own(job):
                self.try_to_start(job, name)
        started = {start[0] for start in self.starts}
        self.words: dict[JobId, list[str]] = {}
        for job, name in tried:
            if job.id not in started:
                self.words.setdefault(job.id, []).append(rules.own(job) or self.word(job, name))
        self.started = started

    @property
    def reservation(self):
        if self.head is None or self.head[0].id in self.started:  # in another partition
            return None
        job, name, spec, moment = self.head
        nodes = self.rules.open_nodes(job, name, moment)
        number, placement = place(spec, nodes, self.still_there(moment))
        return job.id, moment, job.spec.specs.index(spec.specs[number]), placement

    def word(self, job: Job, name: str) -> str:
        """Return the word for a job after the pass; a job that a rule stops by then is explained by the rule."""
        word = self.rules.refused(job, name) or ("array" if self.rules.array_full(job) else "")
        if not word and not self.open_specs(job, name):
            word = "limit"
        request = self.request(job, name)
        shape = self.opened.get(request, self.shape(job, name, job.spec.specs))
        return word or self.refused.get(request) or self.failed[shape]

    def open_specs(self, job: Job, name: str) -> tuple:
        """Return the alternatives that no limit stops."""
        nodes = job.spec.nodes
        return tuple(s for s in job.spec.specs if not self.rules.exceeds(job, name, amounts_asked(s, nodes)))

    def shape(self, job: Job, name: str, specs) -> tuple:
        barred = tuple(sorted(node.name for node in self.rules.open_nodes(job, name, self.now)))
        return name, job.spec.nodes, specs, job.spec.pool, job.spec.reservation, barred

    def request(self, job: Job, name: str) -> tuple:
        whose = (job.account, job.submitter.name, job.qos, job.array is not None and job.array.at_once)
        return self.shape(job, name, job.spec.specs), whose, job.spec.time_limit_seconds

    def try_to_start(self, job: Job, name: str) -> None:
        request = self.request(job, name)
        if request in self.refused:
            return
        failed = self.failed.get(self.opened.get(request, request[0]))
        if failed is not None and not (failed == "would delay" and self.backfill and self.in_time(job)):
            return
        if word := self.rules.refused(job, name) or ("array" if self.rules.array_full(job) else ""):
            self.refused[request] = word
            return
        specs = self.open_specs(job, name)
        if not specs:
            self.refused[request] = "limit"
            return
        shape = self.opened[request] = self.shape(job, name, specs)
        word = self.consider(job, name, replace(job.spec, specs=specs))
        if word == "limit":
            self.refused[request] = word
        elif word:
            self.failed[shape] = word

    def in_time(self, job: Job) -> bool:
        return self.head is not None and self.end(job) <= self.head[3]

    def consider(self, job: Job, name: str, spec) -> str:
        nodes = self.rules.open_nodes(job, name, self.now)
        word = "no room" if place(spec, nodes, {}) else "kept"
        if not place(spec, self.rules.own_nodes(job, name), {}):
            return "never"
        if word == "kept" and not self.backfill:
            return word
        found = place(spec, nodes, self.occupied)
        if found is None:
            self.head = self.head or self.find_head(job, name, spec)
            self.first_waiting = self.first_waiting or job.id
            return word
        if self.first_waiting not in (None, job.id) and not self.backfill:
            return "would delay"
        if self.head and self.head[0].id != job.id:
            found = self.place_behind_head(job, spec, nodes, found)
        if found is None:
            return "would delay"
        if self.rules.exceeds(job, name, amounts_held(found[1])):
            return "limit"
        number = job.spec.specs.index(spec.specs[found[0]])
        self.starts.append((job.id, number, found[1], name))
        self.occupied[job.id], self.ends[job.id] = found[1], self.end(job)
        self.rules.running.append((job, name, found[1], job.spec.time_limit_seconds))
        return ""

    def end(self, job: Job) -> Millis:
        return Millis(self.now + 1000 * job.spec.time_limit_seconds)

    def find_head(self, job: Job, name: str, spec):
        """Return the first moment at which the job fits, in the partition and outside advance reservations."""
        changes = {max(self.now, end) for end in self.ends.values()} | {each.end_at for each in self.rules.reservations}
        for moment in sorted(changes):
            if place(spec, self.rules.open_nodes(job, name, moment), self.still_there(moment)):
                return job, name, spec, Millis(moment)
        return None

    def still_there(self, moment: Millis) -> Occupied:
        return {
            job: placement
            for job, placement in self.occupied.items()
            if not (self.head and self.head[0].id == job)  # until the next cycle it keeps its place in this partition
            if job not in self.ends or max(self.now, self.ends[job]) > moment
        }

    def place_behind_head(self, job: Job, spec, nodes, found):
        head, name, head_spec, moment = self.head
        if self.end(job) <= moment:
            return found
        open_to_head = self.rules.open_nodes(head, name, moment)
        then = self.still_there(moment)
        if place(head_spec, open_to_head, {**then, job.id: found[1]}):
            return found
        reserved = frozenset(part.node for part in place(head_spec, open_to_head, then)[1])
        other = place(spec, nodes, self.occupied, reserved)
        if other and place(head_spec, open_to_head, {**then, job.id: other[1]}):
            return other
        return self.by_another(job, spec, nodes, found[0] + 1)

    def by_another(self, job: Job, spec, nodes, first: int):
        """Place the job by one of its alternatives from number `first` on."""
        rest = replace(spec, specs=spec.specs[first:])
        found = place(rest, nodes, self.occupied) if rest.specs else None
        found = found and self.place_behind_head(job, rest, nodes, found)
        return found and (first + found[0], found[1])


def naive_holes(world, rules: NaiveRules) -> list[tuple]:
    """Yield (job, moment, spec index, placement, partition) under conservative backfilling: in order, each job in the
    earliest slot that is left over all its partitions; of equally early ones that of the first."""
    now = world.now
    taken = [(now, max(now + 1, world.ends.get(job, FOREVER)), job, each) for job, each in world.occupied.items()]
    found: dict[JobId, tuple] = {}
    for job, name in rules.entries():
        if rules.own(job) or rules.refused(job, name) or rules.array_full(job):
            continue
        if job.id in found and found[job.id][1] == now:
            continue
        others = [each for each in taken if each[2] != job.id]  # one slot is enough
        hole = naive_hole(job, name, rules, others, now)
        if hole is None or (job.id in found and hole[1] >= found[job.id][1]):
            continue
        if hole[1] == now:
            if rules.exceeds(job, name, amounts_held(hole[3])):
                continue
            rules.running.append((job, name, hole[3], job.spec.time_limit_seconds))
        taken = others
        taken.append((hole[1], hole[1] + 1000 * job.spec.time_limit_seconds, job.id, hole[3]))
        found[job.id] = hole
    return list(found.values())


def naive_hole(job: Job, name: str, rules: NaiveRules, taken: list[tuple], now: Millis) -> tuple | None:
    specs = tuple(s for s in job.spec.specs if not rules.exceeds(job, name, amounts_asked(s, job.spec.nodes)))
    spec = replace(job.spec, specs=specs)
    if not specs or not place(spec, rules.own_nodes(job, name), {}):
        return None
    moments = {now, *(end for _, end, _, _ in taken), *(each.end_at for each in rules.reservations)} - {FOREVER}
    for moment in sorted(moments):
        nodes = rules.open_nodes(job, name, moment)
        if hole := hole_at(spec, nodes, taken, Millis(moment), Millis(moment + 1000 * spec.time_limit_seconds)):
            return job.id, hole[0], job.spec.specs.index(spec.specs[hole[1]]), hole[2], name
    return None
