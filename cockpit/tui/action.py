"""The type of an action of the TUI, and the checks that tell whether and why an action is refused now.

`ActionContext` is the state that the checks look at; each check returns a sentence for the user, or an empty text where
the action can be performed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.accounts import Qos
from cockpit.model.capabilities import Capabilities
from cockpit.model.job import JobState
from cockpit.model.spec import Access, JobKind
from cockpit.present.folding import id_text
from cockpit.present.safe import safe
from cockpit.tui.views.accounts import ACCOUNTS, QOS, TABS
from cockpit.tui.views.all import VIEWS
from cockpit.tui.views.cards import CARDS
from cockpit.tui.views.clusters import TABS as CLUSTER_TABS
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.model.catalogue import EntryRow
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import AccountRow, AccountsShown
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.views.view import View

JOB, NODE = "job", "node"
"""The pages of a job and of a node, which actions name like views."""


class Group(StrEnum):
    """The groups of the help page, by their titles."""

    VIEW = "view"
    JOBS = "change jobs"
    HOLDS = "held containers"
    SORT = "sort"
    GO_TO = "go to"
    DEMO = "demo time"
    ACCOUNTS = "accounts"
    WEIGHTS = "priority weights"
    NODES = "nodes"
    CATALOGUE = "catalogue"


def on(*views: View) -> frozenset[str]:
    """Return the ids of these views, for an action that exists only in them."""
    return frozenset(view.id for view in views)


ON_TABLES = frozenset(VIEWS)
ANYWHERE = ON_TABLES | {JOB, NODE}
ON_PLACES = on(ACCOUNTS, QOS)
"""The tabs in which accounts, users and QOS are edited."""
ON_ACCOUNTS = on(*TABS)
ON_CLUSTERS = on(*CLUSTER_TABS)
ON_JOBS = on(JOBS) | {JOB}
OVER_A_JOB = on(JOBS, CARDS, PRIORITY) | {JOB}
"""Views with a job under the cursor; in the Cards view it is the job on the card."""
ON_QUEUED = on(JOBS, PRIORITY) | {JOB}
"""Views whose job under the cursor may be queued."""
ON_SORTED = frozenset(view.id for view in VIEWS.values() if view.is_sorted)


class ActionContext(NamedTuple):
    """The state that decides whether an action can be performed now."""

    view: str
    chosen: Sequence[JobRow]
    """The marked jobs, else the one under the cursor."""
    read_only: str
    """The reason why this TUI changes nothing (read-only mode); empty when it may change things."""
    demo: bool = False
    filter: str = ""
    """The filter of the list; empty: none."""
    place: AccountRow | Qos | None = None
    """The account, user or QOS under the cursor."""
    entry: EntryRow | None = None
    """The entry of the catalogue under the cursor."""
    accounts: AccountsShown | None = None
    """The accounts as last fetched, with what the user may change; None: not fetched yet."""
    admin: bool = True
    """Whether the user is an administrator of the cluster."""
    trying: bool = False
    """Whether the Priority view shows the order under other weights."""
    no_undo: str = ""
    """Why the last act cannot be undone; empty: it can."""
    has_terminal: bool = False
    """Whether a shell is open in the terminal pane."""
    several: bool = False
    """Whether the jobs of all clusters are shown in one table."""
    capabilities: Capabilities = Capabilities()
    """What the cluster can do."""


class Action(NamedTuple):
    """An operation that a key, the palette or the command line starts.

    `why_not` returns a sentence when it cannot be performed now. In read-only mode those that change something are
    refused.
    """

    id: str
    keys: tuple[str, ...]
    help: str
    run: Callable[[Cockpit], Awaitable[None] | None]
    group: Group
    views: frozenset[str] = ANYWHERE
    why_not: Callable[[ActionContext], str] = lambda _: ""
    acts: bool = False
    """Whether it changes something on the cluster."""
    danger: bool = False
    """Whether it asks first, with No as the default."""
    in_row: bool = False
    """Whether the bottom row shows it."""
    needs: str = ""
    """The operation or ability of the cluster without which it is refused; empty: none."""
    title: str = ""
    """Its label where that is not the id."""

    @property
    def label(self) -> str:
        """What the bottom row and the help page call it."""
        return self.title or self.id.replace("_", " ")

    def refusal(self, context: ActionContext) -> str:
        """Return why it cannot be performed in this context; empty when it can."""
        # From what never changes to what may change at any moment; the first reason that applies is the one to show.
        if context.view not in self.views:
            return f"{self.label}: not available in this view."
        if self.acts and context.read_only:
            return context.read_only
        if absent := context.capabilities.why_not(self.needs):
            return absent
        return self.why_not(context)


NO_JOB = "There is no job under the cursor."


def needs_job(context: ActionContext) -> str:
    """Refuse where no job is chosen."""
    return "" if context.chosen else NO_JOB


def _all_jobs(is_fit: Callable[[JobRow], bool], sentence: str) -> Callable[[ActionContext], str]:
    """Make a check that every chosen job may be changed by the user and is fit; `sentence` says what the fault is."""

    def why_not(context: ActionContext) -> str:
        # All chosen jobs or none: an action that did only some of the marked jobs would be hard to follow.
        read_only = [row for row in context.chosen if row.may is not Access.RW]
        if read_only:
            return _read_only_refusal(read_only[0])
        unfit = [row for row in context.chosen if not is_fit(row)]
        # No job at all passes both checks above, so that this is asked last.
        return f"{_state_words(unfit[0])}: {sentence}." if unfit else needs_job(context)

    return why_not


def _read_only_refusal(row: JobRow) -> str:
    return f"Job {id_text(row)} is {safe(row.user)}'s, and its project may only look at it (access: ro)."


def _state_words(row: JobRow) -> str:
    return (
        f"Job {id_text(row)} is {row.state}" if row.ended_at is None else f"Job {id_text(row)} has ended ({row.state})"
    )


needs_queued = _all_jobs(lambda row: row.queued, "this is for queued jobs")
needs_running = _all_jobs(
    lambda row: row.state in {JobState.RUNNING, JobState.SUSPENDED}, "this is for running and suspended jobs"
)
needs_started = _all_jobs(lambda row: not row.queued, "it has not started yet")
needs_changeable = _all_jobs(lambda row: row.ended_at is None, "nothing of it can be changed")
needs_unfinished = _all_jobs(lambda row: row.ended_at is None, "there is nothing to stop")
needs_time = _all_jobs(lambda row: row.ended_at is None, "its time limit no longer matters")
_needs_elastic = _all_jobs(
    lambda row: row.workers is not None and row.ended_at is None, "this is for elastic jobs that have not ended"
)
needs_held_container = _all_jobs(lambda row: row.held_until is not None, "it holds no container")
needs_ended = _all_jobs(lambda row: row.ended_at is not None, "cancel it first")
needs_container = _all_jobs(
    lambda row: row.held_until is not None or row.state is JobState.RUNNING,
    "a shell opens only in a running job or a held container",
)


def needs_container_or_terminal(context: ActionContext) -> str:
    """Refuse where no terminal is open and none can be opened."""
    return "" if context.has_terminal else needs_container(context)


def needs_terminal(context: ActionContext) -> str:
    """Refuse where no terminal is open."""
    return "" if context.has_terminal else "No terminal is open."


def needs_session(context: ActionContext) -> str:
    """Refuse jobs that are no sessions: their command has no terminal to attach to."""
    # A batch job reads from no terminal: what users mean there is its log, or a shell beside it.
    if any(row.kind is not JobKind.INTERACTIVE for row in context.chosen):
        return "A job's command reads from no terminal; l follows what it prints, s opens a shell beside it."
    return needs_container(context)


def needs_one_elastic(context: ActionContext) -> str:
    """Refuse where not one elastic job alone is chosen."""
    return "This is for one job at a time." if len(context.chosen) > 1 else _needs_elastic(context)


def needs_array(context: ActionContext) -> str:
    """Refuse where no chosen job is a task of an array."""
    if any(row.array is not None for row in context.chosen):
        return ""
    # What follows names the first chosen job, and so has to refuse an empty choice first.
    return needs_job(context) or f"Job {context.chosen[0].id} is not a task of an array."


def can_fold(context: ActionContext) -> str:
    """Refuse where the cursor is on neither an account nor a task of an array."""
    return "" if context.view == ACCOUNTS.id else needs_array(context)


def may_add_below(context: ActionContext) -> str:
    """Refuse where the user may not add to the account under the cursor, or to the account of the user there."""
    place = context.place
    return _rights_refusal(context, "" if place is None or isinstance(place, Qos) else place.association.account)


def may_change_place(context: ActionContext) -> str:
    """Refuse where the user may not change the account, user or QOS under the cursor."""
    place = context.place
    if place is None:
        return "There is nothing under the cursor."
    if isinstance(place, Qos):
        return _rights_refusal(context, "")
    # A coordinator of an account changes its users and the accounts below it, but not the account itself.
    association = place.association
    return _rights_refusal(context, association.account if association.user else association.parent)


def may_administer(context: ActionContext) -> str:
    """Refuse users who are not administrators of the accounts."""
    return _rights_refusal(context, "")


def _rights_refusal(context: ActionContext, account: str) -> str:
    """Refuse users who are neither administrators nor coordinators of `account` (empty: administrators only)."""
    # The cluster decides again; this is to say at once, and before a dialog, what it would refuse.
    shown = context.accounts
    if shown is None:
        return "The accounts are not loaded yet."
    if shown.admin or (account and account in shown.coordinated):
        return ""
    also = ", or a coordinator of the account above it" if account else ""
    return f"Only an administrator may change this{also}."


def may_change_entry(context: ActionContext) -> str:
    """Refuse where the user may not change the catalogue's entry under the cursor."""
    row = context.entry
    if row is None:
        return "There is nothing under the cursor."
    if row.entry.filed:
        file = "cluster.toml" if row.of_rules else "catalogue.toml"
        return f"It is defined in {file}; change it there."
    return "" if row.may is Access.RW else "You may use it but not change it (access: ro)."


def needs_admin(context: ActionContext) -> str:
    """Refuse users who are not administrators of the cluster."""
    return "" if context.admin else "Only an administrator of this cluster may do this."


def needs_trial(context: ActionContext) -> str:
    """Refuse where no weights are tried, and users who may not apply them."""
    return needs_admin(context) if context.trying else "You are not trying other weights."


def needs_undoable(context: ActionContext) -> str:
    """Refuse where the last act cannot be undone."""
    return context.no_undo


def needs_filter(context: ActionContext) -> str:
    """Refuse where the list has no filter."""
    return "" if context.filter else "Nothing is filtered; / filters while you type."


def of_one_cluster(context: ActionContext) -> str:
    """Refuse where the jobs of all clusters are shown: the action needs one cluster."""
    return "Each cluster has its own: choose one (8) and open it with Enter." if context.several else ""


def only_in_demo(context: ActionContext) -> str:
    """Refuse on real clusters."""
    return "" if context.demo else "Only a demo's time can be changed."


def has_output(context: ActionContext) -> str:
    """Refuse in a demo: its jobs are simulated, and a file at a path that one names is the user's own."""
    return "The jobs of a demo write no files." if context.demo else needs_job(context)


def only_outside_demo(context: ActionContext) -> str:
    """Refuse in a demo."""
    return "This is the demo." if context.demo else ""
