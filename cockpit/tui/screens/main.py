"""The cockpit's frame: top bar, row of views, one table, the answer panel, the row of keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from cockpit.errors import CockpitError
from cockpit.formats.weighttext import read_weights, weights_text
from cockpit.model.view import QueueKind
from cockpit.present.account_answer import first_account_lines, place_answer
from cockpit.present.answer import answer
from cockpit.present.card_answer import card_answer, legend, totals
from cockpit.present.filters import quoted
from cockpit.present.first_sight import empty_lines, no_cards_lines
from cockpit.present.frame import key_at, key_row, top_bar, view_at, view_row
from cockpit.present.node_answer import node_answer
from cockpit.present.queue_answer import legend_line, queue_answer
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.present.spans import ACCENT, MUTED, Line, Span, line
from cockpit.tui.action import ACCOUNTS, CARDS, JOBS, NODES, PRIORITY, QOS, QUEUES
from cockpit.tui.card_map import CardMap
from cockpit.tui.screens.priority import PriorityPart
from cockpit.tui.widgets.entry import COMMAND, FILTER, NAME, WEIGHTS, Entry
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import Table
from cockpit.tui.widgets.titles import Titles

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from textual.app import ComposeResult

    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import NodeRow
    from cockpit.tui.face import Face

VIEWS = (("1", "Jobs"), ("2", "Nodes"), ("3", "Cards"), ("4", "Accounts"), ("5", "Priority"), ("6", "Queues"))
DEEDS = {"priority": "priorities"}
"""What shows a view, where it is not called as that."""
SMALL_HEIGHT = 30
WIDE, ROOMY = 100, 130
"""Columns from which on a note may be a sentence, and a long one."""
LEAST_PANEL, MOST_PANEL = 3, 9
"""Lines of the answer panel."""
TITLES = {
    JOBS: "Jobs",
    NODES: "Nodes",
    CARDS: "Cards",
    PRIORITY: "Priority",
    QUEUES: "Queues",
    ACCOUNTS: "Accounts",
    QOS: "Accounts",
}
"""In the row of views."""
HINTS = {
    JOBS: "state:queued user:me cards>=4 wait>2h name~bert !spot",
    NODES: "status:up cards>=4 card_model:A100 name~a0",
    CARDS: "model:A100 state:free,stranded user:me node~a0",
    ACCOUNTS: "user:me account:vision fair_share<0.5 running>0 limits~grptres",
    QOS: "name~high priority>=100 settings~maxwall",
    QUEUES: "depth>0 cards_borrowed>0 kind:quota name~nlp",
    PRIORITY: "user:me partition:gpu fairshare<1000 position<=20 note:held",
    WEIGHTS: "age=1000,fairshare=5000,tres/gres/gpu=200",
    COMMAND: "an action, a job's number, theme NAME, filter …; Tab completes",
    NAME: "a name for this filter",
}


class MainScreen(Screen[None]):
    """Draws what the app knows; asks it to act."""

    app: Face
    AUTO_FOCUS: ClassVar[str] = "#jobs"

    def __init__(self) -> None:
        super().__init__()
        self._filters = dict.fromkeys(TITLES, "")
        self._wrong = ""
        """What is wrong with the filter that is being typed."""
        self._came_from: Hashable | None = None
        """The row under the cursor before the filter was asked for."""
        self._weights_before: WeightChanges | None = None
        """What was tried out before other weights were asked for."""

    def compose(self) -> ComposeResult:
        theme = self.app.role_theme
        self.jobs = Table(self.app.job_rows, theme, id=JOBS)
        self.nodes = Table(self.app.node_rows, theme, id=NODES)
        self.cards = CardMap(self.app.card_rows, theme, id=CARDS)
        self.accounts = Table(self.app.account_rows, theme, id=ACCOUNTS)
        self.qos = Table(self.app.qos_rows, theme, id=QOS)
        self.queues = Table(self.app.queue_rows, theme, id=QUEUES)
        self.priority = Table(self.app.priority_rows, theme, id=PRIORITY)
        self._ranks = PriorityPart(self.app, self.priority)
        yield Lines(theme, id="top")
        yield Lines(theme, ground="background", id="views")
        yield Lines(theme, ground="background", id="legend")
        yield Titles(self.jobs, id="titles")
        with ContentSwitcher(initial=JOBS, id="rows"):
            yield self.jobs
            yield self.nodes
            yield self.cards
            yield self.accounts
            yield self.qos
            yield self.priority
            yield self.queues
        yield Lines(theme, ground="background", id="empty")
        yield Lines(theme, id="answer")
        yield Entry(id="entry")
        yield Lines(theme, id="keys")

    @property
    def view(self) -> str:
        """The list that is shown; also while the screen is only coming, or going."""
        shown = self.query(ContentSwitcher)
        return str(shown.first().current) if shown else JOBS

    @property
    def table(self) -> Table:
        """The one that is shown."""
        tables = {
            JOBS: self.jobs,
            NODES: self.nodes,
            CARDS: self.cards,
            PRIORITY: self.priority,
            QUEUES: self.queues,
            ACCOUNTS: self.accounts,
            QOS: self.qos,
        }
        return tables[self.view]

    def job_of_card(self) -> int:
        """The id of the job that holds the part of a card under the cursor; 0 where nobody does, or nobody one may
        see."""
        part = self.cards.part
        return (part.job or 0) if part is not None else 0

    def ranked_jobs(self) -> list[int]:
        """Ids of the queued jobs that are marked in their order, else of the one under the cursor."""
        rows = (self.app.priority_rows.row(row_id) for row_id in self.priority.chosen())
        return [row.job for row in rows if row is not None]

    @property
    def filter_text(self) -> str:
        """What the list that is shown is filtered by."""
        return self._filters[self.view]

    def show_view(self, view: str) -> None:
        """Another table in the same frame."""
        self.query_one(ContentSwitcher).current = view
        titles = self.query_one(Titles)
        titles.table = self.table
        titles.refresh()
        self.table.focus()
        self.app.wake()
        self.draw()

    # Drawing

    def draw(self) -> None:
        """Everything but the rows: they repaint themselves."""
        if not (self.is_mounted and self.app.is_running):
            return
        width = self.size.width
        self.query_one("#top", Lines).show([top_bar(self.app.standing(), self.app.overview, width)])
        note = tuple(self._note())
        self.query_one("#views", Lines).show([view_row(VIEWS, TITLES[self.view], note, width)])
        keys = line(Span(f" {self._wrong}", "warning")) if self._wrong else key_row(self.app.keys_of_view(), width)
        self.query_one("#keys", Lines).show([keys])
        self._ranks.draw_legend(self.query_one("#legend", Lines), width, shown=self.view == PRIORITY)
        self._draw_emptiness()
        self.draw_answer()

    def redraw_priorities(self) -> None:
        """Another answer, or other columns of it."""
        self._ranks.reordered()
        self.draw()

    def draw_answer(self) -> None:
        """The panel about what is under the cursor."""
        panel = self.query_one("#answer", Lines)
        answers = {
            JOBS: self._job_answer,
            NODES: self._node_answer,
            CARDS: self._card_answer,
            ACCOUNTS: self._place_answer,
            QOS: self._place_answer,
            PRIORITY: self._rank_answer,
            QUEUES: self._queue_answer,
        }
        panel.show(answers[self.view]())

    def _job_answer(self) -> Iterator[Line]:
        row = self.app.job_under_cursor()
        if row is not None:
            size = self.query_one("#answer").size
            yield from answer(row, self.app.detail_of(row.id), self.app.around(size.width, size.height))

    def _node_answer(self) -> Iterator[Line]:
        row = self.node_under_cursor()
        if row is not None:
            yield from node_answer(row, self.app.job_rows.row, self.query_one("#answer").size.width)

    def _card_answer(self) -> Iterator[Line]:
        part, rows = self.cards.part, self.app.card_rows
        row = rows.row(self.cards.cursor_id)  # type: ignore[arg-type]  # ids of nodes
        if part is not None and row is not None:
            size = self.query_one("#answer").size
            job = self.app.job_rows.row(part.job) if part.job else None
            around = self.app.around(size.width, size.height)
            brief = size.height <= LEAST_PANEL
            yield from card_answer(part, row, job, around.context, size.width, brief=brief)
            key = around.keys.get("colours", ":colours")
            yield legend("by user" if rows.by_user else "by job", key)

    def _place_answer(self) -> Iterator[Line]:
        columns = self.query_one("#answer").size.width
        return place_answer(self.app.place_under_cursor(), self.app.account_rows.tree, self._keys(), columns)

    def _queue_answer(self) -> Iterator[Line]:
        rows, size = self.app.queue_rows, self.query_one("#answer").size
        row = rows.row(cast("Any", self.queues.cursor_id)) if self.queues.cursor_id is not None else None
        if row is not None:
            yield from queue_answer(row, rows.rows(), self.app.context(), self._keys(), size.width)

    def _keys(self) -> Mapping[str, str]:
        return self.app.around(self.size.width).keys

    def _rank_answer(self) -> Iterator[Line]:
        size = self.query_one("#answer").size
        return self._ranks.answer(size, self.app.around(size.width).keys)

    def node_under_cursor(self) -> NodeRow | None:
        """None in an empty list."""
        name = self.nodes.cursor_id
        return None if name is None else self.app.node_rows.row(name)  # type: ignore[arg-type]  # ids of nodes

    def _note(self) -> Iterator[Span]:
        """What makes this list other than all rows in their usual order."""
        if self.filter_text:
            yield Span(f"/ {safe(self.filter_text)}", ACCENT)
        notes = {JOBS: self._jobs_note, NODES: self._nodes_note, CARDS: self._cards_note, PRIORITY: self._ranks.note}
        notes |= {QUEUES: self._queues_note}
        yield from notes.get(self.view, self._accounts_note)()

    def _jobs_note(self) -> Iterator[Span]:
        jobs = self.app.job_rows.list
        if jobs.mine:
            yield Span("   mine", ACCENT)
        if jobs.sort_column:
            yield Span(f"   by {jobs.sort_column.replace('_', ' ')}{' ▼' if jobs.descending else ' ▲'}", ACCENT)

    def _nodes_note(self) -> Iterator[Span]:
        if self.app.demand:
            yield Span("   queued jobs ask for  ", MUTED)
            yield Span("   ".join(f"{safe(model)} {cards:g}" for model, cards in self.app.demand.items()))

    def _cards_note(self) -> Iterator[Span]:
        yield Span("   ")
        yield from totals(self.app.card_rows.parts(), words=self.size.width >= WIDE)

    def _queues_note(self) -> Iterator[Span]:
        yield from legend_line() if self.size.width >= ROOMY else ()

    def _accounts_note(self) -> Iterator[Span]:
        key = self._keys().get("next_tab", ":next-tab")
        for view, title in ((ACCOUNTS, "tree"), (QOS, "QOS")):
            yield Span(f"   {title}", "strong" if view == self.view else MUTED)
        yield Span(f"   {key}", ACCENT)

    @property
    def _is_empty(self) -> bool:
        """There is nothing to show but what to do first."""
        if self.view == ACCOUNTS and self.app.account_rows.tree.only_root:
            return True
        if self.view == PRIORITY:
            return bool(self._ranks.nothing({}))
        return not self.table.rows.order and self.view in {JOBS, CARDS}

    def _draw_emptiness(self) -> None:
        nothing = self._is_empty
        empty = self.query_one("#empty", Lines)
        empty.display = nothing
        self.query_one("#rows").styles.display = "none" if nothing else "block"
        self.query_one(Titles).display = not nothing
        if nothing:
            empty.show(self._empty_lines())
        elif self.focused is None:  # a table that was hidden has lost the keys
            self.table.focus()

    def _empty_lines(self) -> Iterator[Line]:
        if not self.app.loaded or (self.view == ACCOUNTS and self.app.accounts is None):
            return iter([line(), line(Span("   connecting …", MUTED))])
        if self.view == ACCOUNTS:
            return first_account_lines(self._keys(), locked=self.app.read_only or self._not_mine())
        keys = self.app.around(self.size.width).keys
        if self.view == CARDS:
            return no_cards_lines(sum(1 for _ in self.app.card_rows.parts()), keys)
        if self.view == PRIORITY:
            return iter(self._ranks.nothing(keys))
        hidden = len(self.app.job_rows.list.rows())
        return empty_lines(self.app.capacity_words(), hidden, keys, demo=self.app.pace is not None)

    def _not_mine(self) -> str:
        shown = self.app.accounts
        return "" if shown is not None and shown.admin else "An administrator of this cluster adds the first one."

    # Filters and commands

    def ask_filter(self) -> None:
        """`/`: filters while one types."""
        self._came_from = self.table.cursor_id
        names = (
            []
            if self.filter_text
            else [*self.app.filter_names(self.view), *(f"{SAVED}{each}" for each in self.app.saved_filters())]
        )
        self._entry.ask(FILTER, self.filter_text, HINTS[self.view], names)
        self.run_worker(self._prepare_search(), name="search", group="search", exclusive=True)

    async def _prepare_search(self) -> None:
        """While the person thinks of a word. Rows that changed meanwhile are read when they are searched."""
        for _ in self.app.job_rows.list.prepare_search():
            await asyncio.sleep(0)

    def ask_filter_name(self) -> None:
        """Under which the present filter is saved."""
        self._entry.ask(NAME, "", f"{HINTS[NAME]}: {safe(self.filter_text)}", list(self.app.saved_filters()))

    def ask_command(self, text: str = "") -> None:
        """`:`: an action by its name; `text` is written already."""
        self._entry.ask(COMMAND, text, HINTS[COMMAND], self.app.action_names(), self.app.complete)

    def ask_weights(self) -> None:
        """The weights of now, to be changed; the order follows while one types."""
        rows = self.app.priority_rows
        self._weights_before = rows.tried
        if rows.weights is not None:
            self._entry.ask(WEIGHTS, weights_text(rows.weights), HINTS[WEIGHTS])

    @property
    def _entry(self) -> Entry:
        return self.query_one(Entry)

    @on(Entry.Changed)
    def _typed(self, event: Entry.Changed) -> None:
        if self._entry.kind == FILTER and self._entry.display:
            self.filter(event.value)
        elif self._entry.kind == WEIGHTS and self._entry.display:
            self._try(event.value)

    def _try(self, text: str) -> None:
        try:
            self.app.try_weights(read_weights(text))
        except CockpitError as error:
            self._wrong = str(error).splitlines()[0]
        else:
            self._wrong = ""
        self.draw()

    @on(Entry.Submitted)
    def _entered(self, event: Entry.Submitted) -> None:
        if self._entry.kind == WEIGHTS:
            self._try(event.value)
        if self._entry.kind in {FILTER, WEIGHTS} and self._wrong:
            return
        self._close_entry()
        if self._entry.kind == COMMAND:
            self.app.run_command(event.value)
        elif self._entry.kind == NAME and event.value.strip():
            self.app.run_command(f"save-filter {event.value.strip()}")

    @on(Entry.Left)
    def _left(self, event: Entry.Left) -> None:
        if event.kind == FILTER:
            self._unfilter()
        elif event.kind == WEIGHTS:
            self._wrong = ""
            self.app.try_weights(self._weights_before)
        self._close_entry()

    def _close_entry(self) -> None:
        self._entry.put_away()
        self.set_focus(self.table, scroll_visible=False)
        self.draw()

    def filter(self, text: str) -> None:
        """Show what matches; a filter that cannot be read says why, and the last one that could stays."""
        try:
            self._filter_rows(text)
        except CockpitError as error:
            self._wrong = str(error).removeprefix("filter: ")
        else:
            self._wrong = ""
            self._filters[self.view] = text
            self.table.order_changed()
        self.draw()

    def _filter_rows(self, text: str) -> None:
        app = self.app
        by = {
            JOBS: app.job_rows.list.filter_by,
            NODES: app.node_rows.filter_by,
            CARDS: app.card_rows.filter_by,
            PRIORITY: app.priority_rows.filter_by,
            QUEUES: app.queue_rows.filter_by,
            ACCOUNTS: app.account_rows.tree.filter_by,
            QOS: app.qos_rows.filter_by,
        }
        by[self.view](text)

    def _unfilter(self) -> None:
        """Everything again, the cursor where it was before the filter."""
        self.filter("")
        if self._came_from is not None:
            self.table.move_to(self._came_from)
            self._came_from = None

    def show_jobs_of_node(self) -> None:
        """The jobs that occupy the node under the cursor."""
        node = self.node_under_cursor()
        if node is not None:
            self.show_view(JOBS)
            self._came_from = self.jobs.cursor_id
            self.filter(f"node:{quoted(node.node.name)}")

    def show_jobs_of_user(self, user: str) -> None:
        """All of them, in whichever account."""
        self.show_view(JOBS)
        self._came_from = self.jobs.cursor_id
        self.filter(f"user:{quoted(user)}")

    def show_jobs_of_queue(self) -> None:
        """Of a partition, or of every project of the queue under the cursor."""
        here, rows = cast("Any", self.queues.cursor_id), self.app.queue_rows
        if here is None:
            return
        below = rows.below(here)
        names = [project for row in below for project in row.projects]
        if below[0].kind is QueueKind.PARTITION:
            text = f"partition:{quoted(below[0].path)}" if below[0].path else ""
        elif names:
            text = f"project:{','.join(map(quoted, names))}"
        else:
            self.app.notify("No project belongs to this queue, so it has no jobs.")
            return
        self.show_view(JOBS)
        self._came_from = self.jobs.cursor_id
        self.filter(text)

    def fold_all(self) -> None:
        """Accounts below the topmost ones, or everything again."""
        self.app.account_rows.tree.fold_all()
        self._refolded()

    def _fold_account(self) -> None:
        """Where the cursor is on a user: what that user belongs to."""
        tree, here = self.app.account_rows.tree, cast("Any", self.accounts.cursor_id)
        if here is None:
            return
        if not tree.fold(here) and tree.above(here):
            here = tree.above(here)[-1]
            tree.fold(here)
        self._refolded()
        self.accounts.move_to(here)

    def _refolded(self) -> None:
        self.accounts.order_changed()
        self.accounts.redraw()
        self.draw()

    def turn_colours(self) -> None:
        """The cards by user, or by job."""
        self.app.card_rows.by_user = not self.app.card_rows.by_user
        self.cards.redraw()
        self.draw()

    def toggle_mine(self) -> None:
        """Only one's own jobs, or everybody's."""
        jobs = self.app.job_rows.list
        jobs.show_mine(not jobs.mine)
        self._reordered()

    def unfold(self) -> bool:
        """Show the tasks of the array under the cursor; whether it was folded."""
        here: Any = self.jobs.cursor_id
        folded = here is not None and self.app.job_rows.folds.is_folded(here)
        if folded:
            self.toggle_fold()
        return folded

    def toggle_fold(self) -> None:
        """The tasks of the array under the cursor, or one row for them; marks stay with all of them or go."""
        if self.view == ACCOUNTS:
            self._fold_account()
            return
        folds, here = self.app.job_rows.folds, cast("Any", self.jobs.cursor_id)
        tasks = set(folds.tasks(here)) if here is not None else set()
        if not tasks:
            return
        was_folded = folds.is_folded(here)
        marked = here in self.jobs.marked if was_folded else tasks <= self.jobs.marked
        row_id = folds.toggle(here)
        self.jobs.marked -= {*tasks, row_id}
        if marked:
            self.jobs.marked |= tasks if was_folded else {row_id}
        self._reordered()
        self.jobs.redraw()
        if row_id is not None:
            self.jobs.move_to(row_id)

    def sort_by_neighbour(self, step: int) -> None:
        """By the next of the columns that are shown."""
        if self.view == PRIORITY:
            self._ranks.sort_by_neighbour(step)
            self.draw()
            return
        jobs = self.app.job_rows.list
        ids = [laid.column.id for laid in self.app.shown_columns(self.size.width)]
        place = ids.index(jobs.sort_column) if jobs.sort_column in ids else (-1 if step > 0 else 0)
        jobs.sort_by(ids[(place + step) % len(ids)], descending=False)
        self._reordered()

    def sort_by(self, column: str) -> None:
        """By this column; where it leads already, the other way round."""
        if self.view == PRIORITY:
            self._ranks.sort_by(column)
            self.draw()
            return
        jobs = self.app.job_rows.list
        jobs.sort_by(column, descending=column == jobs.sort_column and not jobs.descending)
        self._reordered()

    def reverse_sort(self) -> None:
        """The other way round."""
        if self.view == PRIORITY:
            self._ranks.reverse_sort()
            self.draw()
            return
        jobs = self.app.job_rows.list
        jobs.sort_by(jobs.sort_column or "id", descending=not jobs.descending)
        self._reordered()

    def _reordered(self) -> None:
        self.jobs.order_changed()
        self.query_one(Titles).refresh()
        self.draw()

    def step_back(self) -> None:
        """Out of the marks, then out of the filter, then out of one's own jobs alone or of other weights."""
        if self.table.clear_marks():
            return
        if self.filter_text or self._wrong:
            self._unfilter()
        elif self.view == JOBS and self.app.job_rows.list.mine:
            self.toggle_mine()
        elif self.view == PRIORITY:
            self.app.try_weights(None)

    # What happens

    @on(Table.CursorMoved)
    def _moved(self) -> None:
        self.app.wake()
        self.draw()

    @on(Table.Opened)
    def _opened(self) -> None:
        opens = {NODES: "node_jobs", QUEUES: "queue_jobs", ACCOUNTS: "unfold", QOS: "modify"}
        self.app.perform(opens.get(self.view, "open"))

    @on(Lines.Clicked, "#views")
    def _view_clicked(self, event: Lines.Clicked) -> None:
        if name := view_at(VIEWS, event.column):
            self.app.perform(DEEDS.get(name.lower(), name.lower()))

    @on(Lines.Clicked, "#keys")
    def _key_clicked(self, event: Lines.Clicked) -> None:
        if action := key_at(self.app.keys_of_view(), event.column):
            self.app.perform(action)

    def on_resize(self) -> None:
        height = self.size.height
        self.set_class(height < SMALL_HEIGHT, "small")
        self.query_one("#answer").styles.height = 1 + min(MOST_PANEL, max(LEAST_PANEL, height // 5 - 1))
        self.query_one(Titles).refresh()
        self.call_after_refresh(self.draw)
