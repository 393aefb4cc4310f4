"""QOS: the columns of their list for every output, and the panel about the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from cockpit.formats.slurm.sacctmgr import qos_words
from cockpit.model.accounts import Qos
from cockpit.model.view import AccountRow
from cockpit.present.columns import NOTHING, Cell, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, key_hint, labelled, line, spread

PREEMPTION = ("Preempt=", "PreemptMode=")


def _preempts_cell(qos: Qos, _: Context) -> Line:
    names = safe(", ".join(qos.preempt))
    return line(Span(names or NOTHING, "text" if names else MUTED), Span(f" {safe(qos.preempt_mode.lower())}", MUTED))


def qos_limits(qos: Qos) -> tuple[str, ...]:
    """Return the words for a QOS besides its priority and preemption, in sacctmgr's syntax."""
    # The list has a column for what a QOS preempts.
    return tuple(word for word in qos_words(qos) if not word.startswith(PREEMPTION))


QOS: Final = TableView(
    name="accounts-qos",
    identity=("name",),
    key=attrgetter("name"),
    help="QOS with their priorities and limits",
    empty="No QOS.",
    columns=(
        Column("name", "NAME", "The QOS", cell=Cell(12, title="QOS", role=STRONG, grows=1, most=24)),
        Column("priority", "PRIORITY", "For the factor qos", ValueKind.INTEGER, cell=Cell(8)),
        Column(
            "settings",
            "SETTINGS",
            "By sacctmgr's names",
            ValueKind.WORDS,
            derive=lambda row, _: qos_words(row),
            cell=Cell(20, lambda row, _: line(safe(" ".join(qos_limits(row)))), title="LIMITS", grows=6),
        ),
    ),
    screen_only=(
        Column(
            "preempt",
            "PREEMPTS",
            "QOS whose jobs it may preempt",
            ValueKind.WORDS,
            cell=Cell(16, _preempts_cell, grows=1, most=30, after="priority"),
        ),
    ),
)


def by_priority(rows: Iterable[Qos]) -> list[Qos]:
    """Return the QOS in the order of the TUI: the highest priority first."""
    return sorted(rows, key=lambda qos: (-qos.priority, qos.name))


def qos_answer(qos: Qos, rows: Sequence[AccountRow], keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Yield harmless lines about a QOS. `rows`: the accounts, among which those with this QOS are named; `keys`: the
    first key of each action by the action's id."""
    factor = "" if qos.usage_factor == 1 else f", usage counts {qos.usage_factor:g} times"
    left = line(Span(safe(qos.name), ACCENT), Span(f"  adds priority {qos.priority}{factor}.", STRONG))
    yield spread(left, key_hint(keys.get("next_tab", "]"), "accounts"), columns)
    yield labelled("limits", " ".join(qos_limits(qos)) or "none")
    mode = f" ({qos.preempt_mode.lower()})" if qos.preempt_mode else ""
    yield labelled("preempts", f"{', '.join(qos.preempt)}{mode}" if qos.preempt else "no jobs")
    users = [each.association.key.removesuffix("/") for each in rows if qos.name in each.association.qos]
    yield labelled("named by", ", ".join(users) or "no account")
