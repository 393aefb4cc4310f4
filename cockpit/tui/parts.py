"""The parts of the application as those see them that lie below them in the import order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import AccountRow
    from cockpit.present.frame import Key
    from cockpit.tui.widgets.entry import Suggestions


class HelpEntry(NamedTuple):
    """An action with its keys as a line of the help page."""

    keys: tuple[str, ...]
    """Names of the keys as users read them, such as `Ctrl-c`."""
    label: str
    help: str
    group: str
    why_not: str
    """The reason why the action cannot be performed now; empty when it can."""


class PaletteEntry(NamedTuple):
    """Something that the palette finds and Enter runs: an action, a view, a job, a theme."""

    id: str
    name: str
    about: str
    run: Callable[[], object]
    keys: tuple[str, ...] = ()
    """Names of its keys as users read them."""
    refusal: str = ""
    """The reason why it cannot be run now; empty when it can."""
    is_elsewhere: bool = False
    """Whether it belongs to another view, so that it is listed only for a name that was typed."""


# Controllers, screens and the entry line name these protocols instead of the classes, which import them in turn:
# actions import controllers, the dispatcher imports the actions, the selection imports the pages.
class JobView(Protocol):
    """The methods of a job's page that controllers may call."""

    def ask_search(self) -> None: ...
    def find(self, step: int) -> None: ...
    def ask_place(self) -> None: ...
    def open_pager(self) -> None: ...
    def stop_searching(self) -> bool: ...
    def toggle_times(self) -> None: ...
    def wrap(self) -> None: ...
    def other_stream(self) -> None: ...
    def toggle_merged(self) -> None: ...
    def other_replica(self) -> None: ...
    def show_tab(self, tab: str) -> None: ...
    def switch_tab(self, step: int) -> None: ...
    def earlier_attempt(self) -> None: ...


class PollerPart(Protocol):
    """The methods of the poller that screens and controllers may call."""

    def wake(self) -> None:
        """Fetch from the cluster now instead of at the next tick, as another row or view is shown."""

    def try_weights(self, weights: WeightChanges | None) -> None:
        """Show the queue's order under these weights beside the present one; None: only the present order."""

    async def catch_up(self) -> None:
        """Fetch all that the screen shows and draw it. Raises `CockpitError`."""

    async def fetch_names(self) -> bool:
        """Fetch once the queues and accounts, whose names palette and command line offer; return whether any came."""

    def toggle_updates(self) -> None:
        """Pause updates of the screen, or resume them."""

    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job once the list has it."""


class SelectionPart(Protocol):
    """The selection: the present view, and what is marked or under the cursor in it."""

    @property
    def view_name(self) -> str:
        """The name of the present view: a list's, or `job` or `node` for a page."""

    @property
    def job_page(self) -> JobView | None:
        """The job's page on the screen; None where another screen is shown."""

    def chosen_rows(self) -> list[JobRow]:
        """Return the jobs that an action applies to: the marked ones, else the one under the cursor."""

    def job_under_cursor(self) -> JobRow | None:
        """Return the job under the cursor of the list of jobs."""

    def place_under_cursor(self) -> AccountRow | Qos | None:
        """Return the account, user or QOS under the cursor; None in other views."""

    def entry_under_cursor(self) -> EntryRow | None:
        """Return the catalogue's entry under the cursor; None in other views."""


class DispatcherPart(Protocol):
    """The methods of the action dispatcher that screens and controllers may call."""

    def perform(self, action_id: str, run: Callable[[Any], Awaitable[None] | None] | None = None) -> None:
        """Run the action, or `run` in its place, or show a toast with the reason why it is refused."""

    def run_command(self, text: str) -> None:
        """Run a line of the command line; errors become toasts."""

    def change(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await `work` in a task of its own, or show a toast with the reason why nothing may be changed."""

    def keys_of_view(self) -> Iterable[Key]:
        """Return the keys of the bottom row."""

    def help_entries(self) -> Sequence[HelpEntry]:
        """Return every action of the present view that has a key."""

    def palette(self) -> Sequence[PaletteEntry]:
        """Return what the palette finds, besides jobs: actions, saved filters, themes, clusters, nodes, queues."""

    def jobs_named(self, text: str) -> Sequence[PaletteEntry]:
        """Return the first jobs whose id begins with the text, or whose name contains it."""

    @property
    def recent(self) -> Sequence[str]:
        """The ids of the palette's entries that the user ran, the last one first."""

    def run_entry(self, entry: PaletteEntry) -> None:
        """Run an entry of the palette, or show a toast with the reason why it is refused."""

    def command_offer(self, text: str) -> Suggestions:
        """Return what may complete the typed command."""

    def filter_offer(self, text: str) -> Suggestions:
        """Return what may complete the filter of the present view."""
