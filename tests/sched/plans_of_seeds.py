"""Prints every plan of some worlds, byte for byte: `python -m tests.sched.plans_of_seeds 20`."""

from __future__ import annotations

import sys

import msgspec

from cockpit.model.cluster import BackfillKind
from tests.sched.ruled_worlds import RuledWorld


def told(seed: int, kind: BackfillKind) -> bytes:
    """All that the world's plans say."""
    world, lines = RuledWorld(seed, kind), []
    for number in range(30):
        world.step()
        if number % 3 == 2:
            plan = world.run()
            waiting = [(job.id, world.reason(job.id)) for job in world.queue]
            lines.append((plan.version, plan.starts, plan.reservations, plan.order, plan.next_at, waiting))
    return msgspec.json.encode(lines)


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        for kind in BackfillKind:
            sys.stdout.buffer.write(told(seed, kind) + b"\n")
