"""The application as screens and controllers see it: Textual's app with the parts that it owns.

`app.py` builds it. Screens, controllers and parts name this class and never `app.py`, so that there is no import cycle;
for the same reason the parts that lie above the screens are described here by protocols.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from textual.app import App

from cockpit.errors import CockpitError
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from textual.notifications import SeverityLevel

    from cockpit.backends.base import Backend
    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.view import AccountRow, ClusterRow, NodeRow
    from cockpit.present.frame import Key
    from cockpit.runtime.tensorboard import Board
    from cockpit.tui.app_options import AppOptions
    from cockpit.tui.app_state import AppState


class HelpEntry(NamedTuple):
    """An action with its keys as a line of the help page."""

    keys: tuple[str, ...]
    """Names of the keys as users read them, such as `Ctrl-c`."""
    label: str
    help: str
    group: str
    why_not: str
    """The reason why the action cannot be performed now; empty when it can."""


class MainView(Protocol):
    """The methods of the main screen that controllers may call."""

    def show_view(self, view: str) -> None: ...
    def show_jobs_of_node(self) -> None: ...
    def node_under_cursor(self) -> NodeRow | None: ...
    def ask_filter(self) -> None: ...
    def ask_filter_name(self) -> None: ...
    @property
    def filter_text(self) -> str: ...
    def filter(self, text: str) -> None: ...
    def ask_command(self, text: str = "") -> None: ...
    def show_jobs_of_user(self, user: str) -> None: ...
    def show_jobs_of_queue(self) -> None: ...
    def cluster_under_cursor(self) -> ClusterRow | None: ...
    def show_jobs_of_member(self, name: str) -> None: ...
    def show_jobs_of_name(self) -> None: ...
    def redraw_spending(self) -> None: ...
    def fold_all(self) -> None: ...
    def turn_colours(self) -> None: ...
    def ask_weights(self) -> None: ...
    def redraw_priorities(self) -> None: ...
    def toggle_mine(self) -> None: ...
    def toggle_fold(self) -> None: ...
    def unfold(self) -> bool: ...
    def sort_by_neighbour(self, step: int) -> None: ...
    def sort_by(self, column: str) -> None: ...
    def reverse_sort(self) -> None: ...
    def step_back(self) -> None: ...
    def move_to_job(self, row_id: JobId) -> None: ...


class JobView(Protocol):
    """The methods of a job's page that controllers may call."""

    def ask_search(self) -> None: ...
    def find(self, step: int) -> None: ...
    def stop_searching(self) -> bool: ...
    def turn_times(self) -> None: ...
    def wrap(self) -> None: ...
    def other_stream(self) -> None: ...
    def other_replica(self) -> None: ...
    def show_tab(self, tab: str) -> None: ...
    def turn(self, step: int) -> None: ...
    def earlier_attempt(self) -> None: ...


class PollerPart(Protocol):
    """The methods of the poller that screens and controllers may call."""

    def wake(self) -> None:
        """Fetch from the cluster now instead of at the next tick, as another row or view is shown."""

    def try_weights(self, weights: WeightChanges | None) -> None:
        """Show the queue's order under these weights beside the present one; None: only the present order."""

    async def catch_up(self) -> None:
        """Fetch all that the screen shows and draw it. Raises `CockpitError`."""

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

    def run_in_background(self, work: Awaitable[None]) -> None:
        """Await `work` in a task of its own; a `CockpitError` becomes a toast."""

    def keys_of_view(self) -> Iterable[Key]:
        """Return the keys of the bottom row."""

    def help_entries(self) -> Sequence[HelpEntry]:
        """Return every action of the present view that has a key."""

    def completions(self) -> Sequence[str]:
        """Return what the command line completes at its beginning; of several names the shortest first."""

    def continuations(self, text: str) -> Sequence[str]:
        """Return the possible continuations of a partly typed command, besides the names of actions."""


class Cockpit(App[int]):
    """The application; what it does lies in its parts."""

    backend: Backend
    options: AppOptions
    state: AppState
    main_screen: MainView
    """The screen that lies below all pages and dialogs."""
    selection: SelectionPart
    poller: PollerPart
    dispatcher: DispatcherPart
    boards: list[Board]
    """TensorBoards that this application started; they end with it."""
    next_cluster = ""
    """The name of the cluster to open after this application has closed; empty: none."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast, with control characters made visible and markup off.

        Refusals and errors quote names and paths that other users chose, so the text must not be interpreted.
        """
        harmless = "\n".join(map(safe, message.split("\n")))
        super().notify(harmless, title=safe(title), severity=severity, timeout=timeout, markup=markup)

    def check_terminal(self) -> None:
        """Raise `CockpitError` where no terminal can be given to a shell: in a browser, or when a script plays keys."""
        if self.is_headless or self.is_web:
            raise CockpitError("There is no terminal here for a shell: open the cockpit in one.")

    def close_pages(self) -> None:
        """Close all pages and dialogs, so that the main screen is shown."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def show_view(self, view: str) -> None:
        """Close all pages, then show this view of the main screen."""
        self.close_pages()
        self.main_screen.show_view(view)

    def go_to_cluster(self, name: str) -> None:
        """Close the application so that the caller opens the cluster of this name."""
        self.next_cluster = name
        self.exit(0)

    @abstractmethod
    def repaint(self) -> None:
        """Write the whole screen to the terminal again, as another program may have written on it."""

    @abstractmethod
    def use_theme(self, name: str) -> None:
        """Switch to this theme and redraw everything."""
