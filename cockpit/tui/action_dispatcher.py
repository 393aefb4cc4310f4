"""The dispatcher of actions: it finds the action of a key, checks whether it is allowed now, and runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.capabilities import Ability
from cockpit.present.frame import Key
from cockpit.present.requests import refusal_text
from cockpit.tui import command_offers, commands
from cockpit.tui.action import ActionContext
from cockpit.tui.keymap import key_name
from cockpit.tui.palette_entries import jobs_named, palette_entries
from cockpit.tui.parts import HelpEntry
from cockpit.tui.widgets.entry import Suggestions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from cockpit.tui.action import Action
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.parts import PaletteEntry


class ActionDispatcher:
    """The part of the application that runs actions for keys, command line and palette, or shows why it refuses."""

    def __init__(self, app: Cockpit, actions: Sequence[Action]) -> None:
        """Make the dispatcher of these actions, which have the user's keys."""
        self._app = app
        self.actions = actions
        self._recent: dict[str, None] = {}

    def context(self) -> ActionContext:
        """Return the state by which actions decide whether they can be performed."""
        state, options, selection = self._app.state, self._app.options, self._app.selection
        chosen = selection.chosen_rows()
        return ActionContext(
            selection.view_name,
            chosen,
            options.read_only,
            demo=options.pace is not None,
            filter=self._app.main_screen.entry_line.filter_text,
            place=selection.place_under_cursor(),
            entry=selection.entry_under_cursor(),
            accounts=state.accounts,
            # Until the overview has arrived, allow it: the cluster refuses whatever the user has no right to.
            admin=state.overview is None or state.overview.admin,
            trying=state.priority_rows.tried is not None,
            has_terminal=self._app.main_screen.terminal_link is not None,
            no_undo=self._app.last_act.why_not,
            several=self._app.backend.capabilities.has(Ability.CLUSTERS),
            # In a merged view clusters differ: what can be done with the chosen jobs depends on where they run.
            capabilities=self._app.backend.capabilities_for(row.id for row in chosen),
        )

    def keys_of_view(self) -> Iterator[Key]:
        """Yield the keys of the bottom row; a key whose action is refused now is not enabled."""
        context = self.context()
        for action in self.actions:
            if action.in_row and action.keys and context.view in action.views:
                yield Key(key_name(action.keys[0]), action.label, not action.refusal(context), action.id)

    def help_entries(self) -> Sequence[HelpEntry]:
        """Return every action of the present view that has a key, with the reason why it is refused now."""
        context = self.context()
        return [
            HelpEntry(tuple(map(key_name, each.keys)), each.label, each.help, each.group, each.refusal(context))
            for each in self.actions
            if each.keys and context.view in each.views
        ]

    def palette(self) -> Sequence[PaletteEntry]:
        """Return what the palette finds, besides jobs: actions, saved filters, themes, clusters, nodes, queues."""
        return list(palette_entries(self._app, self.actions, self.context()))

    def jobs_named(self, text: str) -> Sequence[PaletteEntry]:
        """Return the first jobs whose id begins with the text, or whose name contains it."""
        return list(jobs_named(self._app, text))

    @property
    def recent(self) -> Sequence[str]:
        """The ids of the palette's entries that the user ran, the last one first."""
        return [*reversed(self._recent)]

    def run_entry(self, entry: PaletteEntry) -> None:
        """Run an entry of the palette, or show a toast with the reason why it is refused."""
        if entry.refusal:
            self._app.clear_notifications()
            self._app.notify(entry.refusal, severity="warning")
            return
        # A dictionary as an ordered set: what is run again moves to its end.
        self._recent.pop(entry.id, None)
        self._recent[entry.id] = None
        entry.run()

    def command_offer(self, text: str) -> Suggestions:
        """Return what may complete the typed command."""
        return command_offers.command_offer(self._app, self.actions, self.context(), text)

    def filter_offer(self, text: str) -> Suggestions:
        """Return what may complete the filter of the present view."""
        return Suggestions(command_offers.filter_candidates(self._app, text))

    def press(self, key: str) -> None:
        """Perform the action that the key has in the present view.

        Where it has none here, perform its action of another view, whose refusal tells the user that it does not apply.
        """
        actions = [action for action in self.actions if key in action.keys]
        in_view = [action for action in actions if self._app.selection.view_name in action.views]
        # A key is bound only if some action has it, so that there is one.
        self.perform((in_view or actions)[0].id)

    def perform(self, action_id: str, run: Callable[[Cockpit], Awaitable[None] | None] | None = None) -> None:
        """Run the action, or show a toast with the reason why it is refused.

        `run` replaces the action's own function where the command line already has the arguments that it would ask for.
        """
        # A screen that was pushed a moment ago has no widgets yet: try again once it has.
        if not self._app.screen.is_mounted:
            self._app.screen.call_later(self.perform, action_id, run)
            return
        action = next(each for each in self.actions if each.id == action_id)
        refusal = action.refusal(self.context())
        if refusal:
            # A key that is pressed again and again would pile up the same sentence.
            self._app.clear_notifications()
            self._app.notify(refusal, severity="warning")
            return
        try:
            # A plain function acts at once, so that the next key meets its effect. A coroutine waits for the cluster or
            # for a dialog, which needs keys itself: it runs in the background.
            work = (run or action.run)(self._app)
        except CockpitError as error:
            self._show_error(error)
        else:
            if work is not None:
                self._run_in_background(work)

    def change(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await `work` in a task of its own, or show a toast with the reason why nothing may be changed.

        It is called only if changes are allowed: in read-only mode errors in what the user typed are of no interest.
        """
        if self._app.options.read_only:
            self._app.notify(self._app.options.read_only, severity="warning")
        else:
            self._run_in_background(work())

    def _run_in_background(self, work: Awaitable[None]) -> None:
        """Await `work` in a task of its own; a `CockpitError` becomes a toast."""
        # Dialogs need a worker of Textual: elsewhere waiting for a dialog would keep the keys from it.
        self._app.run_worker(self._finish(work), group="actions")

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except CockpitError as error:
            self._show_error(error)
        # Also after an error: of several jobs the first ones may have changed.
        self._app.poller.wake()

    def _show_error(self, error: CockpitError) -> None:
        if isinstance(error, RequestRefused):
            self._app.notify(refusal_text(error.refusal, self._app.state.now()), severity="warning")
        else:
            self._app.notify(str(error), severity="error")

    def run_command(self, text: str) -> None:
        """Run a line of the command line; errors become toasts."""
        try:
            commands.run_command(self._app, text)
        except CockpitError as error:
            self._show_error(error)
