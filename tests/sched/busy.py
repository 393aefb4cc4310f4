"""A cluster that is full, with a long queue of many kinds of jobs."""

from __future__ import annotations

from random import Random

from cockpit.model.ids import Millis
from tests.sched.world import World, node, spec_of, wants

NODES, SEED = 100, 7
LIMITS = (600, 1800, 3600, 14_400, 43_200, 86_400)


def busy_world(queued: int, now: int = 0) -> World:
    """A hundred nodes with eight cards, all in use, and so many jobs that wait for one to four nodes of them."""
    random = Random(SEED)
    world = World(*(node(f"n{number:03}", 8) for number in range(NODES)))
    world.now = Millis(now)
    while len(world.queue) < queued:
        gang = random.choice((1, 1, 1, 1, 2, 4))
        cards = 1000 * random.choice((1, 2, 4, 8))
        spec = spec_of(wants(cards), nodes=gang, limit=random.choice(LIMITS))
        world.submit_spec(spec, user=f"user{random.randrange(30)}")
        if len(world.queue) % 50 == 0:
            world.run()
    return world
