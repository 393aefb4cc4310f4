"""The map of the cards: a line for each node, a cell for each card, split into its slices.

Adjacent whole cards of one job are drawn as one bar. Parts that no job holds have signs of their own, so that the map
is readable without colours too: `·` free, `░` stranded, `╌` out of service, `✗` before the name of a held container,
`?` before that of a job which has as much of the node, but on cards that the cluster does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise, zip_longest
from typing import NamedTuple
from zlib import crc32

from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.columns import NOTHING, Context
from cockpit.present.folding import id_text
from cockpit.present.job_values import elapsed_seconds
from cockpit.present.moments import clock
from cockpit.present.phrases import UNKNOWN_CARD
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, key_hint, line, spread
from cockpit.present.states import GLYPHS
from cockpit.present.tables.cards import CardRow, CardState, in_use_words, usage
from cockpit.present.width import clusters

HUES = 8
GAP = 2
"""Terminal columns between two columns of the view; cards are one terminal column apart."""
LEAST_CELL, MOST_CELL = 3, 24
NODE_COLUMNS, MODEL_COLUMNS, ALLOCATED_COLUMNS, STRANDED_COLUMNS = 10, 8, 7, 8
MODEL_NEED, STRANDED_NEED = 100, 90
BAR, BOUNDARY, EDGE = "━", "┿", "│"
SHAPES = {CardState.FREE: "·", CardState.STRANDED: "░", CardState.OUT: "╌"}
ROLES = {CardState.FREE: "free", CardState.STRANDED: "stranded", CardState.OUT: "drained"}
FIGURES = frozenset({"ALLOC", "STRANDED"})
"""Titles of the columns whose figures are aligned at the right."""
PICKED = "picked"
"""Colour role of the part under the cursor."""

Hue = Callable[[CardRow], str]


def by_job(row: CardRow) -> str:
    """Return the colour role of a job's cards, the same on every node."""
    return f"hue{(row.job or 0) % HUES}"


def by_user(row: CardRow) -> str:
    """Return the colour role of a user's cards, the same for all the user's jobs."""
    # Not `hash`, which differs in each process: a user's colour is the same tomorrow.
    return f"hue{crc32(row.user.encode('utf-8', 'surrogatepass')) % HUES}"


class Layout(NamedTuple):
    """Widths of the view's columns in terminal columns; 0: the column is not shown."""

    node: int
    model: int
    cell: int
    """Width of one card, without the terminal column between two cards."""
    cards: int
    """Largest number of cards that are shown of a node."""
    allocated: int
    stranded: int

    @property
    def map_columns(self) -> int:
        return max(self.cards * (self.cell + 1) - 1, 0)

    def widths(self) -> list[int]:
        """Return the widths of the shown columns, in order."""
        return [each for each in (self.node, self.model, self.map_columns, self.allocated, self.stranded) if each]

    def titles(self) -> list[str]:
        named = (
            (self.node, "NODE"),
            (self.model, "MODEL"),
            (self.map_columns, "CARDS"),
            (self.allocated, "ALLOC"),
            (self.stranded, "STRANDED"),
        )
        return [title for width, title in named if width]


def laid_out(total: int, most_cards: int, longest_name: int) -> Layout:
    """Return the layout for `total` terminal columns, the most cards of one node and the longest node name."""
    node = min(max(longest_name, 4), NODE_COLUMNS if total < MODEL_NEED else 2 * NODE_COLUMNS)
    model = MODEL_COLUMNS if total >= MODEL_NEED else 0
    stranded = STRANDED_COLUMNS if total >= STRANDED_NEED else 0
    others = [each for each in (node, model, ALLOCATED_COLUMNS, stranded) if each]
    # The map gets what the other columns leave, shared by the cards of the node with most of them.
    room = total - sum(others) - GAP * len(others)
    cell = min(max((room + 1) // max(most_cards, 1) - 1, LEAST_CELL), MOST_CELL)
    return Layout(node, model, cell, min(most_cards, max((room + 1) // (cell + 1), 1)), ALLOCATED_COLUMNS, stranded)


def cells(
    parts: Sequence[CardRow],
    layout: Layout,
    hue: Hue,
    *,
    lit: Collection[tuple[int, int]] | None = None,
    picked: tuple[int, int] | None = None,
) -> list[Line]:
    """Return one node's line as cells for the columns of `layout.widths()`. `lit`: the keys of the parts that pass the
    filter; None: all pass. `picked`: the key of the part under the cursor."""
    node = parts[0].node
    # A node may have several models; the order of its cards is kept.
    models = dict.fromkeys(part.card.model for part in parts)
    allocated = sum(part.milli for part in parts if part.job is not None)
    stranded = sum(part.milli for part in parts if part.state is CardState.STRANDED)
    columns = [
        (layout.node, line(Span(safe(node.name), STRONG))),
        (layout.model, line(Span(safe(", ".join(models)), MUTED))),
        (layout.map_columns, _map(parts, layout, _Look(hue, lit, picked))),
        (layout.allocated, line(f"{units.cards(allocated)}/{len(node.cards)}")),
        (layout.stranded, line(Span(f"{units.cards(stranded)}", "warning") if stranded else Span(NOTHING, MUTED))),
    ]
    return [cell for width, cell in columns if width]


def part_at(parts: Sequence[CardRow], layout: Layout, column: int) -> CardRow | None:
    """Return the part at a terminal column, counted from the left edge of the map; None between and beside cards."""
    cell = _cell(parts, layout)
    card, within = divmod(column, cell + 1)
    of_card = [part for part in parts if part.card.index == card]
    columns = [part for part, width in zip(of_card, _shares(of_card, cell), strict=True) for _ in range(width)]
    return columns[within] if within < len(columns) else None


class _Look(NamedTuple):
    """The inputs from which a part's colour role is derived."""

    hue: Hue
    lit: Collection[tuple[int, int]] | None
    picked: tuple[int, int] | None

    def role(self, part: CardRow) -> str:
        return PICKED if part.key == self.picked else self.plain(part)

    def plain(self, part: CardRow) -> str:
        """Return the part's role without the cursor."""
        # Parts that the filter does not match stay on the map, faint, so that their neighbours keep their places.
        if self.lit is not None and part.key not in self.lit:
            return "free"
        if part.job is None:
            return ROLES[part.state]
        return "held" if part.state is CardState.HELD else self.hue(part)


def _cell(parts: Sequence[CardRow], layout: Layout) -> int:
    """Return the width of each of the node's cards; shared cards of a node with few cards are widened to fill
    the map."""
    # Slices need columns for their names; on a node of two cards there is room that a node of eight does not have.
    if all(part.whole for part in parts):
        return layout.cell
    return max((layout.map_columns + 1) // len({part.card.index for part in parts}) - 1, layout.cell)


def _map(parts: Sequence[CardRow], layout: Layout, look: _Look) -> Line:
    cell, spans = _cell(parts, layout), list[Span]()
    # Cards beyond those that fit are left out; ALLOC and STRANDED still count them.
    for _, run in groupby((part for part in parts if part.card.index < layout.cards), key=_run):
        together = list(run)
        spans += [Span(" ")] * bool(spans)
        spans += _bar(together, cell, look) if _held_whole(together[0]) else _split(together, cell, look)
    return tuple(spans)


def _held_whole(part: CardRow) -> bool:
    return part.whole and part.job is not None


def _run(part: CardRow) -> tuple[object, ...]:
    """Return a grouping key, equal for adjacent whole cards of one job and for the parts of one card."""
    return _holder(part) if _held_whole(part) else (part.card.index,)


def _holder(part: CardRow) -> tuple[object, ...]:
    return part.job, part.name, part.state, part.assumed


def _bar(run: Sequence[CardRow], cell: int, look: _Look) -> Iterator[Span]:
    """Yield the job's name, then a bar up to the end of its last card; the boundaries of cards are visible after the
    name."""
    # The boundary behind a card has its role without the cursor; behind the last card there is none.
    roles = [role for part in run for role in (*[look.role(part)] * cell, look.plain(part))][:-1]
    return _painted(_part_label(run[0]), BOUNDARY.join([BAR * cell] * len(run)), roles)


def _split(parts: Sequence[CardRow], cell: int, look: _Look) -> Iterator[Span]:
    """Yield a card's parts, each as wide as its size; adjacent slices of one job are drawn as one."""
    sized = zip(parts, _shares(parts, cell), strict=True)
    segments = [list(group) for _, group in groupby(sized, key=lambda each: _holder(each[0]))]
    for segment, after in zip_longest(segments, segments[1:]):
        first = segment[0][0]
        roles = [look.role(part) for part, columns in segment for _ in range(columns)]
        if first.job is None:
            yield from _painted("", SHAPES[first.state] * len(roles), roles)
        elif after is None or after[0][0].job is None or len(roles) < LEAST_CELL:
            yield from _painted(_part_label(first), " " * len(roles), roles)
        else:
            # Another job follows: an edge keeps the two names apart.
            yield from _painted(_part_label(first), " " * (len(roles) - 1), roles[:-1])
            yield Span(EDGE, MUTED)


def _painted(name: str, ground: str, roles: Sequence[str]) -> Iterator[Span]:
    """Yield the name drawn over the ground, clipped to it; each column has its role."""
    pieces = list(_clipped(name, len(ground)))
    # The ground has one column per character, the name may have two.
    pieces += [(char, 1) for char in ground[sum(columns for _, columns in pieces) :]]
    starts = accumulate((columns for _, columns in pieces), initial=0)
    for role, group in groupby(zip(starts, pieces, strict=False), key=lambda each: roles[each[0]]):
        yield Span("".join(text for _, (text, _) in group), role)


def _shares(parts: Sequence[CardRow], cell: int) -> list[int]:
    """Return the columns of each part by its size: at least one while there are enough, and `cell` in total."""
    total = sum(part.milli for part in parts) or WHOLE_CARD
    # Edges are rounded, not widths, so that errors do not add up. An edge leaves one column for each part before and
    # behind it while there are enough columns.
    edges, before = [0], 0
    for number, part in enumerate(parts, 1):
        before += part.milli
        edges.append(min(max(round(cell * before / total), edges[-1] + 1), max(cell - len(parts) + number, edges[-1])))
    edges[-1] = cell
    return [right - left for left, right in pairwise(edges)]


def _part_label(part: CardRow) -> str:
    held = GLYPHS[JobState.ERROR] if part.state is CardState.HELD else ""
    return f"{UNKNOWN_CARD * part.assumed}{held}{safe(part.name)}"


def _clipped(text: str, columns: int) -> Iterator[tuple[str, int]]:
    """Yield each character that fits into `columns`, with its width."""
    for cluster, size in clusters(text):
        columns -= size
        if columns < 0:
            return
        yield cluster, size


def card_answer(
    part: CardRow, row: NodeRow, job: JobRow | None, context: Context, columns: int, *, brief: bool
) -> Iterator[Line]:
    """Yield harmless lines about a card; two lines where `brief`. `row`: the card's node; `job`: the job that holds it;
    None where the user may not see it."""
    place = line(Span(f"{safe(part.node.name)} ", ACCENT), Span(safe(usage(part, context)), ACCENT))
    left = (*place, Span(f"  {_sentence(part, job, context)}", STRONG))
    yield spread(left, key_hint("Enter", "its job") if part.job else (), columns)
    in_use = in_use_words(part, context)
    yield line(Span(f"{INDENT}card    ", MUTED), _hardware(part), Span("   in use  ", MUTED), in_use)
    if not brief:
        if job is not None:
            yield line(Span(f"{INDENT}job     ", MUTED), *_job(job, context))
        yield line(Span(f"{INDENT}node    ", MUTED), _beside(row))
        yield ()


def legend(colours: str, key: str, *, unknown: bool = False) -> Line:
    """Return the line that explains the signs; `colours` says what colours stand for, `key` switches it. `unknown`:
    whether the map has jobs on cards that are not known."""
    signs = [
        (BAR, "text", "alloc"),
        (GLYPHS[JobState.ERROR], "held", "held"),
        *(((UNKNOWN_CARD, "text", "unknown"),) if unknown else ()),
        # With one sign more the line has room for shorter words only.
        *((SHAPES[state], role, str(state).partition(" ")[0] if unknown else str(state)) for state, role in _EMPTY),
    ]
    spans = [span for sign, role, word in signs for span in (Span(sign, role), Span(f" {word}  ", MUTED))]
    return line(Span(f"{INDENT}signs   ", MUTED), *spans, Span(f" {colours} ", MUTED), Span(f"({key})", ACCENT))


def totals(parts: Iterable[CardRow], *, words: bool) -> Line:
    """Return how much of all cards is allocated, free and stranded; without `words` in the shortest form."""
    milli = dict.fromkeys(CardState, 0)
    for part in parts:
        milli[part.state] += part.milli
    allocated, total = milli[CardState.ALLOCATED] + milli[CardState.HELD], sum(milli.values())
    spans = [
        Span(
            f"{units.cards(allocated)} of {units.counted_cards(total)} allocated"
            if words
            else f"{units.cards(allocated)} alloc"
        )
    ]
    for state in (CardState.FREE, CardState.STRANDED, *((CardState.OUT,) if words else ())):
        if milli[state]:
            role = "warning" if state is CardState.STRANDED else "text"
            spans += [Span(" · ", MUTED), Span(f"{units.cards(milli[state])} {state}", role)]
    return tuple(spans)


_EMPTY = ((CardState.FREE, "free"), (CardState.STRANDED, "stranded"), (CardState.OUT, "drained"))


def _sentence(part: CardRow, job: JobRow | None, context: Context) -> str:
    """Return the sentence about the part: its user and size, or why it is free."""
    # Thousandths as the job file has them: a quarter of a card is 250.
    card = "a card" if part.assumed else f"card {part.card.index + 1}"
    size = (
        ("a whole card" if part.assumed else "the whole card") if part.whole else f"{part.milli}/{WHOLE_CARD} of {card}"
    )
    match part.state:
        case CardState.ALLOCATED | CardState.HELD:
            held = ", held by its failed container" if part.state is CardState.HELD else ""
            unknown = ", not known which" if part.assumed else ""
            return f"{safe(part.user)}  {size}{unknown}{_since(job, context)}{held}"
        case CardState.STRANDED:
            return f"{size} is free, but no job that waits or runs could use it."
        case CardState.OUT:
            reason = f": {safe(part.node.state_reason)}" if part.node.state_reason else ""
            return f"{size} is free, but the node is {part.node.state}{reason}."
    return f"{size} is free."


def _since(job: JobRow | None, context: Context) -> str:
    if job is None or job.started_at is None:
        return ""
    return f" since {clock(job.started_at, context.now, context.zone)}"


def _job(job: JobRow, context: Context) -> Line:
    state = Span(f"{GLYPHS[job.state]} {job.state}", str(job.state))
    elapsed = elapsed_seconds(job, context)
    if elapsed is None:
        return line(f"{id_text(job)} {safe(job.name)}  ", state)
    ran = f"  {units.duration(elapsed)} of {units.limit(job.time_limit_seconds)}"
    return line(f"{id_text(job)} {safe(job.name)}  ", state, ran)


def _beside(row: NodeRow) -> str:
    cpus, memory_mib = max(row.node.cpus - row.used_cpus, 0), max(row.node.memory_mib - row.used_memory_mib, 0)
    pool = f", pool {safe(row.node.pool)}" if row.node.pool else ""
    return f"{units.counted(cpus, 'CPU')} and {units.memory(memory_mib)} of memory free{pool}"


def _hardware(part: CardRow) -> str:
    memory = f" {units.memory(part.card.memory_mib)}" if part.card.memory_mib else ""
    cut = f", cut into {part.card.slices}" if part.card.slices else ""
    return f"{safe(part.card.model)}{memory}{cut}"
