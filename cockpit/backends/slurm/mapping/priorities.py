"""Parses sprio's output: weighted factors as it rounds them, totals as it truncates them."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.slurm.mapping import values
from cockpit.model.cluster import Weights
from cockpit.model.ids import JobId
from cockpit.model.priority import Breakdown, FactorName, Part

# Job, partition, user, then the total and the weighted factors, in the order in which `_breakdown` takes them apart.
COMMAND = ("sprio", "-o", "%i|%r|%u|%Y|%A|%B|%F|%J|%P|%Q|%S|%T|%N")

_NAMES = (
    FactorName.AGE,
    FactorName.ASSOC,
    FactorName.FAIRSHARE,
    FactorName.JOB_SIZE,
    FactorName.PARTITION,
    FactorName.QOS,
)


def breakdowns(printed: str, weights: Weights) -> Iterator[Breakdown]:
    """Yield the priority of each pending job in each partition. sprio leaves out jobs that do not wait for their turn.
    The tasks of an array share a line, under the array's id."""
    of = {
        FactorName.AGE: weights.age,
        FactorName.ASSOC: weights.assoc,
        FactorName.FAIRSHARE: weights.fairshare,
        FactorName.JOB_SIZE: weights.job_size,
        FactorName.PARTITION: weights.partition,
        FactorName.QOS: weights.qos,
    }
    for line in printed.split("\n"):
        fields = [each.strip() for each in line.split("|")]
        if len(fields) == 13 and fields[0][:1].isdigit():
            yield _breakdown(fields, of, weights)


def _breakdown(fields: list[str], of: dict[FactorName, int], weights: Weights) -> Breakdown:
    """Return the breakdown of a line of sprio. `of`: the weights by factor."""
    job, partition, _, total, *columns, site, tres, nice = fields
    # The site factor has no weight (priority_multifactor.html), so its contribution is the factor itself.
    parts = [Part(FactorName.SITE, _figure(site), 1.0, _figure(site))] if _figure(site) else []
    parts += [_part(name, of[name], _figure(column)) for name, column in zip(_NAMES, columns, strict=True)]
    parts += [
        _part(FactorName.TRES, weights.tres.get(name, 0.0), amount, name) for name, amount in values.tres(tres).items()
    ]
    return Breakdown(
        job=JobId(values.number(job) or 0),
        partition=partition,
        total=int(_figure(total)),
        # A factor of weight 0 is switched off; one with a contribution counts, whatever the configuration says.
        parts=tuple(each for each in parts if each.weight or each.contribution),
        nice=int(_figure(nice)),
    )


def _part(name: FactorName, weight: float, contribution: float, tres: str = "") -> Part:
    """Return a factor of the priority. sprio prints its contribution; the factor itself follows from the weight."""
    # Rounded as sprio's column is: with a small weight the factor is known to few digits.
    return Part(name, contribution / weight if weight else 0.0, weight, contribution, tres)


def _figure(printed: str) -> float:
    return values.decimal(printed) or 0.0
