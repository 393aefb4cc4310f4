"""What an act of the cockpit is, and the reasons for which one cannot be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.accounts import Qos
from cockpit.model.ids import job_words
from cockpit.model.job import JobState
from cockpit.model.spec import Access, JobKind
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cockpit.model.catalogue import EntryRow
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import AccountRow, AccountsShown
    from cockpit.tui.cockpit_base import CockpitBase

JOBS, NODES, CARDS, PRIORITY, JOB, NODE = "jobs", "nodes", "cards", "priority", "job", "node"
ACCOUNTS, QOS, SPENDING = "accounts", "accounts-qos", "accounting-hours"
"""Three parts of one view."""
QUEUES = "queues"
CATALOGUE = "catalogue"
CLUSTERS = "clusters"
WEIGH = "weigh priorities"
LOOK, ACT, KEPT, ORDER, GO, DEMO = "look", "act on jobs", "kept containers", "order", "go to", "the demo's time"
SHARE = "accounts"
SERVE = "nodes in service"
NAMES = "the catalogue"
"""Groups of the help."""
ON_PLACES = frozenset({ACCOUNTS, QOS})
"""Parts that say who may use how much, and where that is changed."""
PARTS = (ACCOUNTS, QOS, SPENDING)
ON_ACCOUNTS = frozenset(PARTS)
ANYWHERE = frozenset({JOBS, NODES, CARDS, PRIORITY, QUEUES, CATALOGUE, CLUSTERS, JOB, NODE}) | ON_ACCOUNTS
ON_JOBS = frozenset({JOBS, JOB})
OVER_A_JOB = frozenset({JOBS, CARDS, PRIORITY, JOB})
"""Views with a job under the cursor: on a card, whose it is."""
ON_QUEUED = frozenset({JOBS, PRIORITY, JOB})
"""Views with a job that may be queued."""
ON_TABLES = frozenset({JOBS, NODES, CARDS, PRIORITY, QUEUES, CATALOGUE, CLUSTERS}) | ON_ACCOUNTS
ON_SORTED = frozenset({JOBS, PRIORITY})


class Situation(NamedTuple):
    """What an action's fitness depends on."""

    view: str
    chosen: Sequence[JobRow]
    """The marked jobs, else the one under the cursor."""
    read_only: str
    """Why nothing may be changed; empty when it may."""
    demo: bool = False
    filter: str = ""
    """What the list is filtered by."""
    place: AccountRow | Qos | None = None
    """The account, user or QOS under the cursor."""
    entry: EntryRow | None = None
    """The entry of the catalogue under the cursor."""
    accounts: AccountsShown | None = None
    """As last seen: also what this person may change."""
    admin: bool = True
    """This person may change what is everybody's."""
    trying: bool = False
    """Other weights are tried out."""
    several: bool = False
    """All clusters are looked at as one."""


class Action(NamedTuple):
    """One act. `why_not` gives a sentence when it cannot be done now; acting ones are refused in read-only mode."""

    id: str
    label: str
    keys: tuple[str, ...]
    help: str
    run: Callable[[CockpitBase], Awaitable[None] | None]
    group: str
    views: frozenset[str] = ANYWHERE
    why_not: Callable[[Situation], str] = lambda _: ""
    acts: bool = False
    """Changes something."""
    danger: bool = False
    """Asks first, with No as the default."""
    in_row: bool = False
    """Shown in the bottom row."""

    def refusal(self, situation: Situation) -> str:
        """Why it cannot be done here and now; empty when it can."""
        if situation.view not in self.views:
            return f"{self.label} is not for this view."
        if self.acts and situation.read_only:
            return situation.read_only
        return self.why_not(situation)


def needs_job(situation: Situation) -> str:
    return "" if situation.chosen else "There is no job under the cursor."


def _each(wanted: Callable[[JobRow], bool], sentence: str) -> Callable[[Situation], str]:
    def why_not(situation: Situation) -> str:
        others = [row for row in situation.chosen if row.may is not Access.RW]
        if others:
            return _only_looking(others[0])
        unfit = [row for row in situation.chosen if not wanted(row)]
        return f"{_stands(unfit[0])}: {sentence}." if unfit else needs_job(situation)

    return why_not


def _only_looking(row: JobRow) -> str:
    return f"Job {job_words(row.id)} is {safe(row.user)}'s, and its project may only look at it (access: ro)."


def _stands(row: JobRow) -> str:
    return (
        f"Job {job_words(row.id)} is {row.state}"
        if row.ended_at is None
        else f"Job {job_words(row.id)} has ended ({row.state})"
    )


needs_queued = _each(lambda row: row.queued, "this is for queued jobs")
needs_running = _each(
    lambda row: row.state in {JobState.RUNNING, JobState.SUSPENDED}, "this is for running and suspended jobs"
)
needs_begun = _each(lambda row: not row.queued, "it has not begun yet")
needs_live = _each(lambda row: row.ended_at is None, "there is nothing to stop")
needs_time = _each(lambda row: row.ended_at is None, "its time is over")
needs_kept = _each(lambda row: row.held_until is not None, "no container of it is kept")
needs_over = _each(lambda row: row.ended_at is not None, "cancel it first")
needs_container = _each(
    lambda row: row.held_until is not None or row.state is JobState.RUNNING,
    "only what runs or is kept can be entered",
)


def needs_session(situation: Situation) -> str:
    """Anything else has no terminal that one could be at."""
    others = [row for row in situation.chosen if row.kind is not JobKind.INTERACTIVE]
    if others:
        return "A job's command reads from no terminal; l follows what it prints, s opens a shell beside it."
    return needs_container(situation)


def needs_array(situation: Situation) -> str:
    some = [row for row in situation.chosen if row.array is not None]
    return "" if some else needs_job(situation) or f"Job {situation.chosen[0].id} is no task of an array."


def can_fold(situation: Situation) -> str:
    return "" if situation.view == ACCOUNTS else needs_array(situation)


def may_add_below(situation: Situation) -> str:
    """To the account under the cursor, or to that of the user there."""
    place = situation.place
    return _locked(situation, "" if place is None or isinstance(place, Qos) else place.association.account)


def may_change_place(situation: Situation) -> str:
    """What is under the cursor."""
    place = situation.place
    if place is None:
        return "There is nothing under the cursor."
    if isinstance(place, Qos):
        return _locked(situation, "")
    each = place.association
    return _locked(situation, each.account if each.user else each.parent)


def may_administer(situation: Situation) -> str:
    return _locked(situation, "")


def _locked(situation: Situation, account: str) -> str:
    """`account`: who coordinates it may too; empty: only administrators."""
    shown = situation.accounts
    if shown is None:
        return "The accounts are not known yet."
    if shown.admin or (account and account in shown.coordinated):
        return ""
    also = ", or a coordinator of the account above it" if account else ""
    return f"Only an administrator may change this{also}."


def may_change_entry(situation: Situation) -> str:
    """What is under the cursor."""
    row = situation.entry
    if row is None:
        return "There is nothing under the cursor."
    if row.entry.filed:
        file = "cluster.toml" if row.of_rules else "catalogue.toml"
        return f"It stands in {file}, which alone changes it."
    return "" if row.may is Access.RW else "You may use it and not change it (access: ro)."


def needs_admin(situation: Situation) -> str:
    return "" if situation.admin else "Only an administrator of this cluster may do this."


def needs_trial(situation: Situation) -> str:
    return needs_admin(situation) if situation.trying else "No other weights are tried out."


def needs_filter(situation: Situation) -> str:
    return "" if situation.filter else "Nothing is filtered; / filters while you type."


def of_one_cluster(situation: Situation) -> str:
    return "This is each cluster's own: choose one (8) and open it with Enter." if situation.several else ""


def only_in_demo(situation: Situation) -> str:
    return "" if situation.demo else "Only a demo's time can be changed."


def has_output(situation: Situation) -> str:
    """A demo's jobs are simulated, and what stands at the paths that they name is the user's own."""
    return "The jobs of a demo write no files." if situation.demo else needs_job(situation)


def only_outside_demo(situation: Situation) -> str:
    return "This is the demo." if situation.demo else ""
