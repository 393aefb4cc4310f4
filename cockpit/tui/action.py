"""The type of an action of the TUI, and the checks that tell whether and why an action is refused now.

`ActionContext` is the state that the checks look at; each check returns a sentence for the user, or an empty text where
the action can be performed.
"""

from __future__ import annotations

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
LOOK, ACT, KEPT, ORDER, GO, DEMO = "view", "change jobs", "held containers", "sort", "go to", "demo time"
SHARE, WEIGH, SERVE, NAMES = "accounts", "priority weights", "nodes", "catalogue"
"""Titles of the help page's groups."""


def on(*views: View) -> frozenset[str]:
    """Return the ids of these views, for an action that exists only in them."""
    return frozenset(view.id for view in views)


ON_TABLES = frozenset(VIEWS)
ANYWHERE = ON_TABLES | {JOB, NODE}
ON_PLACES = on(ACCOUNTS, QOS)
"""The tabs in which accounts, users and QOS are edited."""
ON_ACCOUNTS = on(*TABS)
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
    group: str
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

    def refusal(self, situation: ActionContext) -> str:
        """Return why it cannot be performed in this situation; empty when it can."""
        # From what never changes to what may change at any moment; the first reason that applies is the one to show.
        if situation.view not in self.views:
            return f"{self.label}: not available in this view."
        if self.acts and situation.read_only:
            return situation.read_only
        if absent := situation.capabilities.why_not(self.needs):
            return absent
        return self.why_not(situation)


def needs_job(situation: ActionContext) -> str:
    """Refuse where no job is chosen."""
    return "" if situation.chosen else "There is no job under the cursor."


def _all_jobs(is_fit: Callable[[JobRow], bool], sentence: str) -> Callable[[ActionContext], str]:
    """Make a check that every chosen job may be changed by the user and is fit; `sentence` says what the fault is."""

    def why_not(situation: ActionContext) -> str:
        # All chosen jobs or none: an action that did only some of the marked jobs would be hard to follow.
        read_only = [row for row in situation.chosen if row.may is not Access.RW]
        if read_only:
            return _read_only_refusal(read_only[0])
        unfit = [row for row in situation.chosen if not is_fit(row)]
        # No job at all passes both checks above, so that this is asked last.
        return f"{_state_words(unfit[0])}: {sentence}." if unfit else needs_job(situation)

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
needs_unfinished = _all_jobs(lambda row: row.ended_at is None, "there is nothing to stop")
needs_time = _all_jobs(lambda row: row.ended_at is None, "its time limit no longer matters")
needs_held_container = _all_jobs(lambda row: row.held_until is not None, "it holds no container")
needs_ended = _all_jobs(lambda row: row.ended_at is not None, "cancel it first")
needs_container = _all_jobs(
    lambda row: row.held_until is not None or row.state is JobState.RUNNING,
    "a shell opens only in a running job or a held container",
)


def needs_session(situation: ActionContext) -> str:
    """Refuse jobs that are no sessions: their command has no terminal to attach to."""
    if any(row.kind is not JobKind.INTERACTIVE for row in situation.chosen):
        return "A job's command reads from no terminal; l follows what it prints, s opens a shell beside it."
    return needs_container(situation)


def needs_array(situation: ActionContext) -> str:
    """Refuse where no chosen job is a task of an array."""
    if any(row.array is not None for row in situation.chosen):
        return ""
    # What follows names the first chosen job, and so has to refuse an empty choice first.
    return needs_job(situation) or f"Job {situation.chosen[0].id} is not a task of an array."


def can_fold(situation: ActionContext) -> str:
    """Refuse where the cursor is on neither an account nor a task of an array."""
    return "" if situation.view == ACCOUNTS.id else needs_array(situation)


def may_add_below(situation: ActionContext) -> str:
    """Refuse where the user may not add to the account under the cursor, or to the account of the user there."""
    place = situation.place
    return _rights_refusal(situation, "" if place is None or isinstance(place, Qos) else place.association.account)


def may_change_place(situation: ActionContext) -> str:
    """Refuse where the user may not change the account, user or QOS under the cursor."""
    place = situation.place
    if place is None:
        return "There is nothing under the cursor."
    if isinstance(place, Qos):
        return _rights_refusal(situation, "")
    # A coordinator of an account changes its users and the accounts below it, but not the account itself.
    association = place.association
    return _rights_refusal(situation, association.account if association.user else association.parent)


def may_administer(situation: ActionContext) -> str:
    """Refuse users who are not administrators of the accounts."""
    return _rights_refusal(situation, "")


def _rights_refusal(situation: ActionContext, account: str) -> str:
    """Refuse users who are neither administrators nor coordinators of `account` (empty: administrators only)."""
    shown = situation.accounts
    if shown is None:
        return "The accounts are not loaded yet."
    if shown.admin or (account and account in shown.coordinated):
        return ""
    also = ", or a coordinator of the account above it" if account else ""
    return f"Only an administrator may change this{also}."


def may_change_entry(situation: ActionContext) -> str:
    """Refuse where the user may not change the catalogue's entry under the cursor."""
    row = situation.entry
    if row is None:
        return "There is nothing under the cursor."
    if row.entry.filed:
        file = "cluster.toml" if row.of_rules else "catalogue.toml"
        return f"It is defined in {file}; change it there."
    return "" if row.may is Access.RW else "You may use it but not change it (access: ro)."


def needs_admin(situation: ActionContext) -> str:
    """Refuse users who are not administrators of the cluster."""
    return "" if situation.admin else "Only an administrator of this cluster may do this."


def needs_trial(situation: ActionContext) -> str:
    """Refuse where no weights are tried, and users who may not apply them."""
    return needs_admin(situation) if situation.trying else "You are not trying other weights."


def needs_filter(situation: ActionContext) -> str:
    """Refuse where the list has no filter."""
    return "" if situation.filter else "Nothing is filtered; / filters while you type."


def of_one_cluster(situation: ActionContext) -> str:
    """Refuse where the jobs of all clusters are shown: the action needs one cluster."""
    return "Each cluster has its own: choose one (8) and open it with Enter." if situation.several else ""


def only_in_demo(situation: ActionContext) -> str:
    """Refuse on real clusters."""
    return "" if situation.demo else "Only a demo's time can be changed."


def has_output(situation: ActionContext) -> str:
    """Refuse in a demo: its jobs are simulated, and a file at a path that one names is the user's own."""
    return "The jobs of a demo write no files." if situation.demo else needs_job(situation)


def only_outside_demo(situation: ActionContext) -> str:
    """Refuse in a demo."""
    return "This is the demo." if situation.demo else ""
