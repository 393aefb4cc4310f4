"""A priority in words, bars and sentences: its parts, how much each part adds, and weights that are tried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cockpit.model.cluster import Weights
from cockpit.model.jobdetail import JobDetail
from cockpit.model.priority import Breakdown, FactorName, Part, WeightChanges
from cockpit.model.view import WeightsSet
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.priority_parts import weight_of
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, line, line_width
from cockpit.present.width import pad, widest, width

FACTOR_WORDS: Final = {
    FactorName.SITE: "site",
    FactorName.AGE: "age",
    FactorName.ASSOC: "association",
    FactorName.FAIRSHARE: "fair share",
    FactorName.JOB_SIZE: "size",
    FactorName.PARTITION: "partition",
    FactorName.QOS: "QOS",
    FactorName.TRES: "resource",
}
"""Words for each factor; a weighted resource has its own name instead."""

BAR_COLUMNS: Final = 20
"""Width of a whole bar in terminal columns: that of the largest part, or that of all parts together."""
WIDE: Final = 100
"""Least width of the screen, in terminal columns, at which a line has bars too."""
GAP: Final = "   "

IN_ORDER: Final = (
    "This cluster serves in order of submission (priority/basic): jobs have no priority. "
    "Try weights out: cockpit priority --weights age=1000,fairshare=2000"
)


def factor_word(part: Part) -> str:
    """Return the harmless name of a part: `fair share`, `cpu`."""
    return safe(part.tres) if part.tres else FACTOR_WORDS[part.name]


def counting(breakdown: Breakdown) -> list[Part]:
    """Return the parts that add something, the largest contribution first."""
    return sorted((part for part in breakdown.parts if part.contribution), key=lambda part: -part.contribution)


def says_something(breakdown: Breakdown) -> bool:
    """Return whether the breakdown shows a priority; false for a held job and under order of submission."""
    return bool(breakdown.source or (breakdown.total and (breakdown.parts or breakdown.direct)))


def total_words(breakdown: Breakdown) -> str:
    """Return the total, such as `17 450`, and its origin where it was not computed."""
    if breakdown.source:
        return f"{units.grouped(breakdown.total)}, by {safe(breakdown.source)}"
    if breakdown.direct:
        return f"{units.grouped(breakdown.total)}, set by an administrator"
    if breakdown.kept:
        return f"{units.grouped(breakdown.total)}, as high as it was"
    return units.grouped(breakdown.total)


def in_a_line(breakdown: Breakdown, columns: int, lead: Line = ()) -> Line:
    """Return the priority in one line, the largest contribution first, with bars where there is room for them:
    `priority 17 450   fair share ▇▇▇▇▇ 11 800   age ▇ 3 120   others 1 030`. `lead`: the beginning of the line."""
    head = (*lead, Span(f"{GAP if lead else INDENT}priority ", MUTED), Span(total_words(breakdown), STRONG))
    # Figures first: in a narrow panel bars would push the smaller factors out.
    bars = BAR_COLUMNS if columns >= WIDE else 0
    shown = _within(_amounts(breakdown), columns - line_width(head), bars)
    whole = sum(amount for _, amount in shown if amount > 0) or 1
    return (*head, *(span for word, amount in shown for span in _piece(word, amount, amount / whole, bars)))


def priority_lines(detail: JobDetail) -> Iterator[Line]:
    """Yield a queued job's priorities with their parts; no lines where jobs have no priority."""
    for breakdown in detail.priority:
        if says_something(breakdown):
            yield from in_lines(breakdown, partition=len(detail.priority) > 1)


def in_lines(breakdown: Breakdown, *, partition: bool, bars: int = BAR_COLUMNS) -> Iterator[Line]:
    """Yield the total, then for each part a bar relative to the largest, the contribution, and the raw factor times the
    weight. `partition`: whether the partition is named; `bars`: the width of the longest bar."""
    where = Span(f" in {safe(breakdown.partition)}" if partition else "", MUTED)
    yield line(Span(f"{INDENT}priority ", MUTED), Span(total_words(breakdown), STRONG), where)
    amounts = _amounts(breakdown)
    words = widest([word for word, _ in amounts])
    figures = widest([figure(amount) for _, amount in amounts])
    largest = max((amount for _, amount in amounts), default=0) or 1
    products = [f"{GAP}{_raw(part)} × {units.grouped(part.weight)}" for part in counting(breakdown)]
    # Nice comes last and is no product.
    for (word, amount), product in zip(amounts, [*products, ""], strict=False):
        length = bar(max(amount, 0) / largest, bars, ACCENT)
        name = Span(f"{INDENT}  {pad(word, words)}  ", MUTED)
        yield line(name, *length, f" {figure(amount):>{figures}}", Span(product, MUTED))


def _amounts(breakdown: Breakdown) -> list[tuple[str, float]]:
    """Return what each part adds, the largest first, then what nice subtracts."""
    added = [(factor_word(part), part.contribution) for part in counting(breakdown)]
    return [*added, ("nice", -breakdown.nice)] if breakdown.nice else added


def _within(amounts: list[tuple[str, float]], room: int, bars: int) -> list[tuple[str, float]]:
    """Return as many amounts as fit into `room` columns, the smaller ones summed up as `others`."""
    # The sum of the line stays the total: what does not fit is one figure together.
    for count in range(len(amounts), 0, -1):
        rest = amounts[count:]
        shown = [*amounts[:count], ("others", sum(amount for _, amount in rest))] if rest else amounts
        if _labels_width(shown) + (bars and bars + 2 * len(shown)) <= room:
            return shown
    return []


def _labels_width(amounts: Sequence[tuple[str, float]]) -> int:
    return sum(width(f"{GAP}{word} {figure(amount)}") for word, amount in amounts)


def _piece(word: str, amount: float, part: float, bars: int) -> Line:
    filled = units.bar(part, bars).rstrip() if bars and amount > 0 else ""
    return Span(f"{GAP}{word} ", MUTED), Span(f"{filled} " if filled else "", ACCENT), Span(figure(amount))


def figure(amount: float) -> str:
    """Return a contribution: `3 120`, `−100` with a minus sign."""
    return f"−{units.grouped(-amount)}" if round(amount) < 0 else units.grouped(amount)


def weights_line(weights: Weights) -> str:
    """Return the weights above 0: `weights: age 10 000, fair share 20 000, cpu 50`."""
    named = {
        "age": weights.age,
        "fair share": weights.fairshare,
        "size": weights.job_size,
        "partition": weights.partition,
        "QOS": weights.qos,
        "association": weights.assoc,
        **{safe(name): weight for name, weight in weights.tres.items()},
    }
    counted: Sequence[str] = [f"{name} {units.grouped(weight)}" for name, weight in named.items() if weight]
    return "weights: " + (", ".join(counted) or "none, so only nice counts")


def weights_set(done: WeightsSet) -> str:
    """Return the sentence that says which weights are in force, and whether they stay after the engine's next start."""
    permanence = f"; {safe(done.file)} says the same now, so they stay" if done.file else ""
    return f"in force: {weights_line(done.weights)}{permanence}" + (f"\n{safe(done.trouble)}" if done.trouble else "")


def _raw(part: Part) -> str:
    """Return a raw factor: four digits below 1, else all its digits, as flags can raise a factor above 1."""
    return f"{part.raw:.4f}".rstrip("0").rstrip(".") if part.raw < 1 else f"{part.raw:.10g}"


FIRST_STEP: Final = 100
"""First value of a weight that is increased from 0."""
MOST: Final = (1 << 32) - 1
_LADDER: Final = (1, 2, 5, 10)


def stepped(weight: float, direction: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 … above or below the weight; below 1 the result is 0, and upwards
    `FIRST_STEP`."""
    if weight < 1:
        return FIRST_STEP if direction > 0 else 0
    # The power of ten of its first digit; the ladder has the steps up to the next one.
    base: int = 10 ** (len(str(int(weight))) - 1)
    if direction > 0:
        return min(next(step * base for step in _LADDER if step * base > weight), MOST)
    # Below the first step of a decade comes the 5 of the one before.
    lower = [step * base for step in _LADDER if step * base < weight] or [base // 2]
    return max(lower[-1], 0)


def with_step(weights: Weights, factor: FactorName, direction: int) -> WeightChanges:
    """Return the weights with one of them a step larger or smaller; for resources each of theirs. The site's factor has
    no weight."""
    if factor is FactorName.SITE:
        return whole(weights)
    if factor is FactorName.TRES:
        return whole(weights, tres={name: float(stepped(each, direction)) for name, each in weights.tres.items()})
    return whole(weights, **{factor.value: stepped(weight_of(weights, factor), direction)})


def whole(weights: Weights, **changed: object) -> WeightChanges:
    """Return all weights by name, with the given ones changed."""
    named = {name: getattr(weights, name) for name in WeightChanges.__struct_fields__}
    return WeightChanges(**(named | changed))
