"""The texts of the main screen around its table: the answer panel, the note about filter and order, the empty list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.capabilities import Ability
from cockpit.present.card_map import card_answer, legend, totals
from cockpit.present.first_sight import empty_lines, no_cards_lines
from cockpit.present.job.answer import answer
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span, hung_within, line
from cockpit.present.tables.accounting import spending_answer
from cockpit.present.tables.accounts import first_account_lines, place_answer
from cockpit.present.tables.catalogue import entry_answer, no_entries_lines
from cockpit.present.tables.clusters import cluster_answer
from cockpit.present.tables.nodes import node_answer
from cockpit.present.tables.queues import legend_line, queue_answer
from cockpit.present.units import grouped, spoken
from cockpit.tui.action import ACCOUNTS, CARDS, CATALOGUE, CLUSTERS, JOBS, NODES, PRIORITY, QOS, QUEUES, SPENDING
from cockpit.tui.screens.entry_line import EntryLine
from cockpit.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDE, ROOMY = 100, 115
"""Widths in columns from which a note may be a sentence, and a long sentence."""
SHOW_WAIT_SECONDS = 3
LEAST_PANEL = 3
"""Height in lines of the answer panel on the smallest screens."""


class Panels(EntryLine):
    """The part of the main screen that writes texts about the present view."""

    @property
    def is_there(self) -> bool:
        """Whether the screen can be drawn: data may arrive before the first frame, or after the last."""
        return self.is_mounted and self.app.is_running

    def draw_answer(self) -> None:
        """Draw the panel about the row under the cursor."""
        if not self.is_there:
            return
        answers = {
            JOBS: self._job_answer,
            NODES: self._node_answer,
            CARDS: self._card_answer,
            ACCOUNTS: self._place_answer,
            QOS: self._place_answer,
            SPENDING: self._spending_answer,
            PRIORITY: self._rank_answer,
            QUEUES: self._queue_answer,
            CATALOGUE: self._entry_answer,
            CLUSTERS: self._cluster_answer,
        }
        panel = self.query_one("#answer", Lines)
        panel.show(hung_within(answers[self.view](), panel.size.width, panel.size.height))

    def _job_answer(self) -> Iterator[Line]:
        row = self.app.selection.job_under_cursor()
        if row is not None:
            size = self.query_one("#answer").size
            yield from answer(row, self.app.state.detail_of(row.id), self.app.state.around(size.width, size.height))

    def _node_answer(self) -> Iterator[Line]:
        row = self.node_under_cursor()
        if row is not None:
            yield from node_answer(row, self.app.state.job_rows.row, self.query_one("#answer").size.width)

    def _card_answer(self) -> Iterator[Line]:
        part, rows = self.cards.part, self.app.state.card_rows
        row = rows.row(self.cards.cursor_id)  # type: ignore[arg-type]  # ids of nodes
        if part is not None and row is not None:
            size = self.query_one("#answer").size
            job = self.app.state.job_rows.row(part.job) if part.job else None
            around = self.app.state.around(size.width, size.height)
            brief = size.height <= LEAST_PANEL
            yield from card_answer(part, row, job, around.context, size.width, brief=brief)
            key = around.keys.get("colours", ":colours")
            yield legend("by user" if rows.by_user else "by job", key)

    def _place_answer(self) -> Iterator[Line]:
        columns = self.query_one("#answer").size.width
        return place_answer(
            self.app.selection.place_under_cursor(), self.app.state.account_rows.tree, self._keys(), columns
        )

    def _spending_answer(self) -> Iterator[Line]:
        row, rows = self.name_under_cursor(), self.app.state.spending_rows
        if row is not None and rows.spending is not None:
            columns = self.query_one("#answer").size.width
            yield from spending_answer(row, rows.begins(), rows.by, self._keys(), columns, cards=rows.cards)

    def _queue_answer(self) -> Iterator[Line]:
        row, size = self.queue_under_cursor(), self.query_one("#answer").size
        if row is not None:
            rows, brief = self.app.state.queue_rows.rows(), size.height <= LEAST_PANEL
            takes, context = self.app.backend.capabilities.has(Ability.QUOTA_TREE), self.app.state.context()
            yield from queue_answer(row, rows, context, self._keys(), size.width, brief=brief, takes_tree=takes)

    def _entry_answer(self) -> Iterator[Line]:
        row = self.app.selection.entry_under_cursor()
        if row is not None:
            yield from entry_answer(row, self._keys(), self.query_one("#answer").size.width)

    def _cluster_answer(self) -> Iterator[Line]:
        row = self.cluster_under_cursor()
        if row is not None:
            yield from cluster_answer(row, self.app.state.context(), self._keys(), self.query_one("#answer").size.width)

    def _keys(self) -> Mapping[str, str]:
        return self.app.state.around(self.size.width).keys

    def _rank_answer(self) -> Iterator[Line]:
        size = self.query_one("#answer").size
        return self._ranks.answer(size, self.app.state.around(size.width).keys)

    def _note(self) -> Iterator[Span]:
        """Yield the note about the present view: its filter, its order, and what is special to the view."""
        if self.filter_text:
            yield Span(f"/ {safe(self.filter_text)}", ACCENT)
        notes = {JOBS: self._jobs_note, NODES: self._nodes_note, CARDS: self._cards_note, PRIORITY: self._ranks.note}
        notes |= {QUEUES: self._queues_note, CATALOGUE: lambda: iter(()), CLUSTERS: lambda: iter(())}
        yield from notes.get(self.view, self._accounts_note)()

    def _jobs_note(self) -> Iterator[Span]:
        if (silent := self.app.state.cluster_rows.silent()) and self.app.backend.capabilities.has(Ability.CLUSTERS):
            yield Span(f"   ⚠ {safe(', '.join(silent))}: no answer", "warning")
        if self.app.state.loaded and not self.app.state.all_came:
            yield Span(f"   {self._how_far()}", MUTED)
        jobs = self.app.state.job_rows.list
        if jobs.mine:
            yield Span("   mine", ACCENT)
        if jobs.sort_column:
            yield Span(f"   by {jobs.sort_column.replace('_', ' ')}{' ▼' if jobs.descending else ' ▲'}", ACCENT)

    def _how_far(self) -> str:
        """Return the progress of a list that is loading: `loading, 12 000 of 100 000 jobs so far`."""
        came, overview = len(self.app.state.job_rows.list.rows()), self.app.state.overview
        total = sum(overview.jobs_by_state.values()) if overview is not None else 0
        return f"loading, {grouped(came)} {f'of {grouped(total)} ' if total > came else ''}jobs so far"

    def _nodes_note(self) -> Iterator[Span]:
        if self.app.state.demand:
            yield Span("   queued jobs ask for  ", MUTED)
            yield Span("   ".join(f"{safe(model)} {cards:g}" for model, cards in self.app.state.demand.items()))

    def _cards_note(self) -> Iterator[Span]:
        yield Span("   ")
        yield from totals(self.app.state.card_rows.parts(), words=self.size.width >= WIDE)

    def _queues_note(self) -> Iterator[Span]:
        yield from legend_line() if self.size.width >= ROOMY else ()

    def _accounts_note(self) -> Iterator[Span]:
        key = self._keys().get("next_tab", ":next-tab")
        gap = "   " if self.size.width >= WIDE else " "
        for view, title in ((ACCOUNTS, "tree"), (QOS, "QOS"), (SPENDING, "hours")):
            yield Span(f"{gap}{title}", "strong" if view == self.view else MUTED)
        yield Span(f"{gap}{key}", ACCENT)

    @property
    def _is_empty(self) -> bool:
        """Whether the view has no rows and shows advice instead."""
        if self.view == ACCOUNTS and self.app.state.account_rows.tree.only_root:
            return True
        if self.view == PRIORITY:
            return bool(self._ranks.nothing({}))
        return not self.table.rows.order and self.view in {JOBS, CARDS, CATALOGUE}

    def _empty_lines(self) -> Iterator[Line]:
        if not self.app.state.loaded or (self.view == ACCOUNTS and self.app.state.accounts is None):
            return iter([line(), line(Span(f"   connecting … {self._waiting_words()}", MUTED))])
        if self.view == ACCOUNTS:
            return first_account_lines(self._keys(), locked=self.app.options.read_only or self._not_mine())
        keys = self.app.state.around(self.size.width).keys
        if self.view == CARDS:
            return no_cards_lines(sum(1 for _ in self.app.state.card_rows.parts()), keys)
        if self.view == CATALOGUE:
            return no_entries_lines(keys, filtered=bool(self.filter_text))
        if self.view == PRIORITY:
            return iter(self._ranks.nothing(keys))
        hidden = len(self.app.state.job_rows.list.rows())
        return empty_lines(self.app.state.capacity_words(), hidden, keys, demo=self.app.options.pace is not None)

    def _waiting_words(self) -> str:
        """Return how long the cockpit has been connecting; empty in the first seconds."""
        seconds = self.app.state.waiting_seconds()
        return f"{spoken(seconds)}, and goes on by itself" if seconds >= SHOW_WAIT_SECONDS else ""

    def _not_mine(self) -> str:
        shown = self.app.state.accounts
        return "" if shown is not None and shown.admin else "An administrator of this cluster adds the first one."
