"""The abstract base of the application: what screens, widgets and controllers may use of it.

`app.py` implements it at the end of a chain of classes. The other modules of the TUI import this base and never
`app.py`, so that there is no import cycle.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cockpit.errors import CockpitError
from cockpit.present.safe import safe
from cockpit.tui.keyboard import KeysInTurn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from textual.notifications import SeverityLevel

    from cockpit.backends.base import Backend, TypedLogin
    from cockpit.config.filters import SavedFilters
    from cockpit.model.accounts import Qos
    from cockpit.model.catalogue import CatalogueShown, EntryKey, EntryRow
    from cockpit.model.ids import JobId, Millis, NodeName
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import AccountRow, AccountsShown, ClusterRow, NodeRow, Overview
    from cockpit.present.columns import Column, Context
    from cockpit.present.frame import Key, TopBar
    from cockpit.present.job.answer import Around
    from cockpit.runtime.tensorboard import Board
    from cockpit.tui.rows.cards import CardRows
    from cockpit.tui.rows.lists import AccountRows, ClusterRows, JobRows, ListRows, QueueRows
    from cockpit.tui.rows.priority import PriorityRows
    from cockpit.tui.rows.spending import SpendingRows
    from cockpit.tui.theme import RoleTheme


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
    """What controllers may call on the main screen."""

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


class JobView(Protocol):
    """What controllers may call on a job's page."""

    def ask_search(self) -> None: ...
    def find(self, step: int) -> None: ...
    def stop_searching(self) -> bool: ...
    def turn_times(self) -> None: ...
    def wrap(self) -> None: ...
    def other_stream(self) -> None: ...
    def other_replica(self) -> None: ...


class Pace(Protocol):
    """The speed of a demo's virtual clock."""

    paused: bool
    speed: float
    """Virtual seconds per real second."""

    def faster(self) -> None: ...
    def slower(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class CockpitBase(KeysInTurn):
    """The application as screens, widgets and controllers see it."""

    backend: Backend
    themes: Mapping[str, RoleTheme]
    filters: SavedFilters
    clusters: Mapping[str, str]
    """A description of each cluster that can be opened, by name."""
    cluster: str
    """The name of the cluster that is open."""
    boards: list[Board]
    """TensorBoards that this application started; they end with it."""
    job_rows: JobRows
    node_rows: ListRows[NodeName, NodeRow]
    account_rows: AccountRows
    qos_rows: ListRows[str, Qos]
    queue_rows: QueueRows
    cluster_rows: ClusterRows
    catalogue_rows: ListRows[EntryKey, EntryRow]
    catalogue: CatalogueShown | None
    """The last answer of the catalogue; None: not fetched yet."""
    spending_rows: SpendingRows
    accounts: AccountsShown | None
    """The accounts as last fetched; None: not fetched yet."""
    card_rows: CardRows
    priority_rows: PriorityRows
    overview: Overview | None
    announces: bool
    """Whether every change shows the command that it runs on the cluster, and asks first (Slurm)."""
    loaded: bool
    """Whether a first page of the job list has arrived."""
    all_came: bool
    """Whether the whole job list has arrived."""

    @abstractmethod
    def waiting_seconds(self) -> int:
        """Return the number of seconds since the application was opened."""

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

    def saved_filters(self) -> Mapping[str, str]:
        """Return the saved filters of the present list by name.

        A file that cannot be read gives none here; using a saved filter then reports the error.
        """
        try:
            return self.filters.of(self.view_name)
        except CockpitError:
            return {}

    @property
    @abstractmethod
    def main_view(self) -> MainView:
        """The main screen, which lies below all pages and dialogs."""

    @property
    @abstractmethod
    def job_page(self) -> JobView | None:
        """The job's page on the screen; None where another screen is shown."""

    @property
    @abstractmethod
    def view_name(self) -> str:
        """The name of the present view: a list's, or `job` or `node` for a page."""

    @property
    @abstractmethod
    def read_only(self) -> str:
        """The reason why nothing may be changed; empty when changes are allowed."""

    @abstractmethod
    def place_under_cursor(self) -> AccountRow | Qos | None:
        """Return the account, user or QOS under the cursor; None in other views."""

    @abstractmethod
    def entry_under_cursor(self) -> EntryRow | None:
        """Return the catalogue's entry under the cursor; None in other views."""

    @abstractmethod
    def run_in_background(self, work: Awaitable[None]) -> None:
        """Await `work` in a task of its own; a `CockpitError` becomes a toast."""

    @abstractmethod
    def complete(self, text: str) -> Sequence[str]:
        """Return the possible continuations of a partly typed command, besides the names of actions."""

    @abstractmethod
    def now(self) -> Millis:
        """Return the cluster's present moment, or that of the pause while updates are paused."""

    @abstractmethod
    def context(self) -> Context:
        """Return the moment, time zone and user that texts depend on."""

    @abstractmethod
    def role_theme(self) -> RoleTheme:
        """Return the present colour theme."""

    @abstractmethod
    def standing(self) -> TopBar:
        """Return the contents of the top bar: cluster, user, access, and how fresh the data is."""

    @abstractmethod
    def keys_of_view(self) -> Iterable[Key]:
        """Return the keys of the bottom row."""

    @abstractmethod
    def help_entries(self) -> Sequence[HelpEntry]:
        """Return every action of the present view that has a key."""

    @abstractmethod
    def action_names(self) -> Sequence[str]:
        """Return the names that the command line completes."""

    @abstractmethod
    def filter_names(self, view: str) -> Sequence[str]:
        """Return the column names that a filter of this view understands, each with a colon."""

    @abstractmethod
    def chosen_rows(self) -> list[JobRow]:
        """Return the jobs that an action applies to: the marked ones, else the one under the cursor."""

    @abstractmethod
    def job_under_cursor(self) -> JobRow | None: ...

    @abstractmethod
    def detail_of(self, job: JobId) -> JobDetail | None:
        """Return the detail that was fetched last, if it is this job's; else None."""

    @abstractmethod
    def capacity_words(self) -> str:
        """Return the cluster's capacity: `This machine: 16 CPUs, 128G, 2 × RTX 4090.`"""

    @abstractmethod
    def around(self, columns: int, lines: int = 0) -> Around:
        """Return what the answer panel's text depends on, for a panel of this width and height in characters."""

    @property
    @abstractmethod
    def demand(self) -> Mapping[str, float]:
        """The number of cards that queued jobs request, by model."""

    @abstractmethod
    def shown_columns(self, width: int) -> Sequence[tuple[Column, int]]:
        """Return the columns of the Jobs view for a screen of this width."""

    @property
    @abstractmethod
    def pace(self) -> Pace | None:
        """The speed control of a demo's clock; None on a real cluster."""

    @property
    @abstractmethod
    def login(self) -> TypedLogin | None:
        """The prompt with which the user logs in to the cluster again; None: the cluster needs no login."""

    @property
    @abstractmethod
    def read_jobs(self) -> Callable[[str, str, str], list[JobSpec]]:
        """A function from (file name, text, folder) to job specs with the user's defaults; it raises `SpecErrors`."""

    @abstractmethod
    def wake(self) -> None:
        """Fetch from the cluster now instead of at the next tick, as another row or view is shown."""

    @abstractmethod
    def try_weights(self, weights: WeightChanges | None) -> None:
        """Show the queue's order under these weights beside the present one; None: only the present order."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Fetch all that the screen shows and draw it. Raises `CockpitError`."""

    @abstractmethod
    def toggle_updates(self) -> None:
        """Pause updates of the screen, or resume them."""

    @abstractmethod
    def go_to_cluster(self, name: str) -> None:
        """Close the application so that the caller opens the cluster of this name."""

    @abstractmethod
    def perform(self, action_id: str, run: Callable[[CockpitBase], Awaitable[None] | None] | None = None) -> None:
        """Run the action, or `run` in its place, or show a toast with the reason why it is refused."""

    @abstractmethod
    def run_command(self, text: str) -> None:
        """Run a line of the command line; errors become toasts."""

    @abstractmethod
    def use_theme(self, name: str) -> None:
        """Switch to this theme and redraw everything."""

    @abstractmethod
    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job once the list has it."""

    @abstractmethod
    def go_to(self, number: int) -> None:
        """Put the cursor on the job with this number, or show a toast where the list lacks it."""

    @abstractmethod
    def switch_tab(self, step: int) -> None:
        """Switch to the tab `step` places to the right on a job's page or in the Accounts view."""

    @abstractmethod
    def earlier_attempt(self) -> None:
        """Show the log of the attempt before the one that is shown."""

    @abstractmethod
    def open_page(self, tab: str) -> None:
        """Open the page of the chosen job at this tab; on a job's page, switch to the tab."""
