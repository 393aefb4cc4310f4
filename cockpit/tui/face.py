"""What screens and deeds may use of the application: its knowledge, and its ways to act. `app.py` is the one that keeps
these promises; nothing else here imports it.
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
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import AccountRow, AccountsShown, ClusterRow, NodeRow, Overview
    from cockpit.present.cells.jobs import Laid
    from cockpit.present.columns import Context
    from cockpit.present.frame import Key, Standing
    from cockpit.present.job.answer import Around
    from cockpit.runtime.tensorboard import Board
    from cockpit.tui.rows.accounts import AccountRows, QosRows
    from cockpit.tui.rows.cards import CardRows
    from cockpit.tui.rows.catalogue import CatalogueRows
    from cockpit.tui.rows.clusters import ClusterRows
    from cockpit.tui.rows.jobs import JobRows
    from cockpit.tui.rows.nodes import NodeRows
    from cockpit.tui.rows.priority import PriorityRows
    from cockpit.tui.rows.queues import QueueRows
    from cockpit.tui.rows.spending import SpendingRows
    from cockpit.tui.theme import RoleTheme


class HelpEntry(NamedTuple):
    """An action as the help lists it."""

    keys: tuple[str, ...]
    """As people read them."""
    label: str
    help: str
    group: str
    why_not: str
    """Why it cannot be done just now; empty when it can."""


class MainView(Protocol):
    """The main screen, as deeds use it."""

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
    """A job's page, as deeds use it."""

    def ask_search(self) -> None: ...
    def find(self, step: int) -> None: ...
    def stop_searching(self) -> bool: ...
    def turn_times(self) -> None: ...
    def wrap(self) -> None: ...
    def other_stream(self) -> None: ...
    def other_replica(self) -> None: ...


class Pace(Protocol):
    """How fast a demo lives."""

    paused: bool
    speed: float
    """Virtual seconds in a real one."""

    def faster(self) -> None: ...
    def slower(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Face(KeysInTurn):
    """The application as its parts see it."""

    backend: Backend
    themes: Mapping[str, RoleTheme]
    filters: SavedFilters
    clusters: Mapping[str, str]
    """What can be opened, by name, with a word about each."""
    cluster: str
    """Which of them this is."""
    boards: list[Board]
    """TensorBoards that this cockpit has started, which end with it."""
    job_rows: JobRows
    node_rows: NodeRows
    account_rows: AccountRows
    qos_rows: QosRows
    queue_rows: QueueRows
    cluster_rows: ClusterRows
    catalogue_rows: CatalogueRows
    spending_rows: SpendingRows
    accounts: AccountsShown | None
    """As last seen; None: not asked for yet."""
    card_rows: CardRows
    priority_rows: PriorityRows
    overview: Overview | None
    announces: bool
    """Every act shows the command that it runs on the cluster, and asks."""
    loaded: bool
    """Jobs of the first list have come."""
    all_came: bool
    """All of them have."""

    @abstractmethod
    def waiting_seconds(self) -> int:
        """Since it was opened."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """As Textual's, but words from outside, of which refusals and errors are full, are only words."""
        harmless = "\n".join(map(safe, message.split("\n")))
        super().notify(harmless, title=safe(title), severity=severity, timeout=timeout, markup=markup)

    def check_terminal(self) -> None:
        """Raises `CockpitError` where there is no terminal to hand over: in a browser, or played by a script."""
        if self.is_headless or self.is_web:
            raise CockpitError("There is no terminal here that could be handed over.")

    def saved_filters(self) -> Mapping[str, str]:
        """Of the list that is shown; a file that cannot be read is complained about when one of them is used."""
        try:
            return self.filters.of(self.view_name)
        except CockpitError:
            return {}

    @property
    @abstractmethod
    def main_view(self) -> MainView:
        """The screen under all others."""

    @property
    @abstractmethod
    def job_page(self) -> JobView | None:
        """The page of a job, if that is what is shown."""

    @property
    @abstractmethod
    def view_name(self) -> str:
        """Of the list that is shown, or `job` for a job's page."""

    @property
    @abstractmethod
    def read_only(self) -> str:
        """Why nothing may be changed; empty when it may."""

    @abstractmethod
    def place_under_cursor(self) -> AccountRow | Qos | None:
        """The account, user or QOS; None in other views."""

    @abstractmethod
    def entry_under_cursor(self) -> EntryRow | None:
        """Of the catalogue; None in other views."""

    @abstractmethod
    def undertake(self, doing: Awaitable[None]) -> None:
        """Let it go on beside everything else; how it fails is told."""

    @abstractmethod
    def complete(self, text: str) -> Sequence[str]:
        """What a command that is begun may become, beside the names of actions."""

    @abstractmethod
    def now(self) -> Millis: ...

    @abstractmethod
    def context(self) -> Context:
        """The moment, the zone and the person that words depend on."""

    @abstractmethod
    def role_theme(self) -> RoleTheme:
        """The colours of now."""

    @abstractmethod
    def standing(self) -> Standing:
        """How this cockpit stands to its cluster."""

    @abstractmethod
    def keys_of_view(self) -> Iterable[Key]:
        """The bottom row."""

    @abstractmethod
    def help_entries(self) -> Sequence[HelpEntry]:
        """Every action of this view that has a key."""

    @abstractmethod
    def action_names(self) -> Sequence[str]:
        """What the command line completes."""

    @abstractmethod
    def filter_names(self, view: str) -> Sequence[str]:
        """Keys that a filter of this view understands, each with its colon."""

    @abstractmethod
    def chosen_rows(self) -> list[JobRow]:
        """The jobs that an action is about."""

    @abstractmethod
    def job_under_cursor(self) -> JobRow | None: ...

    @abstractmethod
    def detail_of(self, job: JobId) -> JobDetail | None:
        """The last detail that was asked for, if it is this job's."""

    @abstractmethod
    def capacity_words(self) -> str:
        """`This machine: 16 CPUs, 128G, 2 × RTX 4090.`"""

    @abstractmethod
    def around(self, columns: int, lines: int = 0) -> Around:
        """What the answer panel's words depend on, so many columns and lines large."""

    @property
    @abstractmethod
    def demand(self) -> Mapping[str, float]:
        """Cards of each model that queued jobs ask for."""

    @abstractmethod
    def shown_columns(self, width: int) -> Sequence[Laid]:
        """The columns of the Jobs view at this width of the screen."""

    @property
    @abstractmethod
    def pace(self) -> Pace | None:
        """Of a demo; None on a real cluster."""

    @property
    @abstractmethod
    def login(self) -> TypedLogin | None:
        """How a login to the cluster is typed again; None: it has none."""

    @property
    @abstractmethod
    def read_jobs(self) -> Callable[[str, str, str], list[JobSpec]]:
        """Source, text and folder to specs, with this person's defaults. Raises `SpecErrors`."""

    @abstractmethod
    def wake(self) -> None:
        """Ask the cluster again now: another row or view is looked at."""

    @abstractmethod
    def try_weights(self, weights: WeightChanges | None) -> None:
        """The queue's order by other weights, beside its own; None: its own alone."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Ask for all that is looked at, and show it. Raises `CockpitError`."""

    @abstractmethod
    def stand_still_or_go_on(self) -> None:
        """What is shown stays as it is until this is called again."""

    @abstractmethod
    def go_to_cluster(self, name: str) -> None:
        """Leave, to open that one."""

    @abstractmethod
    def perform(self, action_id: str, run: Callable[[Face], Awaitable[None] | None] | None = None) -> None:
        """Do it, or say why not."""

    @abstractmethod
    def run_command(self, text: str) -> None:
        """What was typed on the command line."""

    @abstractmethod
    def use_theme(self, name: str) -> None:
        """Draw everything anew in this theme's colours."""

    @abstractmethod
    def follow_to(self, job: JobId) -> None:
        """Put the cursor on this job, as soon as the list has it."""

    @abstractmethod
    def go_to(self, number: int) -> None:
        """Put the cursor on the job of this number."""

    @abstractmethod
    def turn_tab(self, step: int) -> None:
        """The next or previous tab of a job's page, or part of a view."""

    @abstractmethod
    def earlier_attempt(self) -> None:
        """Its log, on the job's page."""

    @abstractmethod
    def open_page(self, tab: str) -> None:
        """The page of the chosen job, at this tab; on a page already: turn to the tab."""
