"""Which pods of a trace come, and in what order: arrivals that ask for a given multiple of a cluster's cards.

As in the experiments of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023; its simulator's `workloadTuning`): the
trace's pods in random order, then pods drawn from it at random, with replacement, until the next one would ask for more
than the target. A trace that asks for too much loses pods at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from cockpit.model.spec import JobSpec


def arriving(pods: Sequence[JobSpec], target_milli: int, seed: int) -> list[JobSpec]:
    """The pods that come, in order; together they ask for at most `target_milli` thousandths of cards. One of them
    at least must ask for some."""
    chance = Random(seed)  # noqa: S311 - a sample, no secret
    arrivals = list(pods)
    chance.shuffle(arrivals)
    asked = sum(map(card_milli, arrivals))
    while asked > target_milli:
        asked -= card_milli(arrivals.pop(chance.randrange(len(arrivals))))
    if len(arrivals) < len(pods):
        return arrivals
    while asked + card_milli(drawn := chance.choice(pods)) <= target_milli:
        asked += card_milli(drawn)
        arrivals.append(drawn)
    return arrivals


def card_milli(pod: JobSpec) -> int:
    """What a pod asks for of cards."""
    return pod.specs[0].card_milli * pod.nodes
