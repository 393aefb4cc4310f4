"""Actions that change only the screen: open a page, switch tabs, filter, sort."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from cockpit.model.capabilities import Ability
from cockpit.tui.action import (
    JOB,
    NODE,
    ON_ACCOUNTS,
    ON_CLUSTERS,
    ON_JOBS,
    ON_QUEUED,
    ON_SORTED,
    ON_TABLES,
    OVER_A_JOB,
    Action,
    Group,
    can_fold,
    needs_filter,
    needs_job,
    on,
)
from cockpit.tui.controllers import anywhere, fleet, lab, looks
from cockpit.tui.views.accounts import ACCOUNTS
from cockpit.tui.views.all import NODES, QUEUES
from cockpit.tui.views.cards import CARDS
from cockpit.tui.views.clusters import CLUSTERS, FLEET
from cockpit.tui.views.jobs import JOBS
from cockpit.tui.views.priority import PRIORITY

if TYPE_CHECKING:
    from cockpit.tui.cockpit import Cockpit

_look = partial(Action, group=Group.VIEW)
_page = partial(_look, views=frozenset({JOB}))
_sort = partial(Action, group=Group.SORT, views=ON_SORTED)


def _only(name: str, key: str, states: str) -> Action:
    """Return the action that shows only the jobs in these states; `name` is what the user calls them."""

    def toggle(app: Cockpit) -> None:
        app.main_screen.entry_line.toggle_state(states)

    return _look(
        f"only_{name}", (key,), f"Show only {name} jobs, or all", toggle, views=on(JOBS), in_row=True, title=name
    )


# Each view has an action of its own for Enter (`View.opens`). A key has one meaning in a view: `keymap.py` refuses two.
VIEWING: Final = (
    _look(
        "open",
        ("enter",),
        "Open the job's page",
        looks.open_job,
        views=on(JOBS, CARDS, PRIORITY),
        why_not=needs_job,
        in_row=True,
    ),
    _look(
        "queue_jobs",
        ("enter",),
        "List the jobs of this queue",
        looks.queue_jobs,
        views=on(QUEUES),
        in_row=True,
        title="its jobs",
    ),
    _look(
        "open_cluster",
        ("enter",),
        "Switch to this cluster",
        anywhere.open_cluster,
        views=on(CLUSTERS),
        in_row=True,
        title="open",
    ),
    _look(
        "every_job",
        ("a",),
        "List the jobs of all clusters",
        anywhere.every_job,
        views=on(CLUSTERS),
        in_row=True,
        title="all jobs",
    ),
    _look(
        "unfold_fleet",
        ("enter",),
        "Show parts and pods, or fold",
        fleet.unfold,
        views=on(FLEET),
        in_row=True,
        title="unfold",
    ),
    _look(
        "own_object",
        ("y",),
        "Show the object that the cluster has",
        fleet.show_own_object,
        views=on(FLEET),
        in_row=True,
        title="own object",
    ),
    _look("lab", (), "Policy lab: other rules", lab.show_lab, title="policy lab"),
    _look("open_node", ("enter",), "Open the node's page", looks.open_node, views=on(NODES), in_row=True, title="open"),
    _look(
        "node_jobs",
        ("enter",),
        "List the node's jobs",
        looks.node_jobs,
        views=frozenset({NODE}),
        in_row=True,
        title="its jobs",
    ),
    _look(
        "logs",
        ("l",),
        "Show what the job printed",
        lambda app: looks.open_page(app, "logs"),
        views=OVER_A_JOB,
        why_not=needs_job,
        in_row=True,
    ),
    _look(
        "next_tab",
        ("right_square_bracket", "tab"),
        "Switch to the next tab",
        lambda app: looks.switch_tab(app, 1),
        views=ON_ACCOUNTS | ON_CLUSTERS | {JOB},
    ),
    _look(
        "previous_tab",
        ("left_square_bracket", "shift+tab"),
        "Switch to the previous tab",
        lambda app: looks.switch_tab(app, -1),
        views=ON_ACCOUNTS | ON_CLUSTERS | {JOB},
    ),
    _look(
        "record",
        ("y",),
        "Show the job's complete record",
        lambda app: looks.open_page(app, "record"),
        views=ON_QUEUED,
        why_not=needs_job,
    ),
    _look(
        "attempt",
        ("p",),
        "Show the log of the previous attempt",
        looks.earlier_attempt,
        views=ON_JOBS,
        why_not=needs_job,
        title="earlier log",
    ),
    # On a job's page `<` and `>` go from match to match; in lists they change the column that sorts.
    _page("wrap", ("w",), "Wrap long lines, or cut them", looks.on_page(lambda page: page.wrap())),
    _page(
        "search", ("slash",), "Search for text on this page", looks.on_page(lambda page: page.ask_search()), in_row=True
    ),
    _page("next_match", ("greater_than_sign",), "Go to the next match", looks.on_page(lambda page: page.find(1))),
    _page(
        "previous_match",
        ("less_than_sign",),
        "Go to the previous match",
        looks.on_page(lambda page: page.find(-1)),
        title="prev match",
    ),
    _page(
        "place",
        ("percent_sign",),
        "Go to a line or percentage of the log",
        looks.on_page(lambda page: page.ask_place()),
        title="go to line",
    ),
    _page("pager", ("v",), "Open the whole log in $PAGER", looks.on_page(lambda page: page.open_pager())),
    _page("times", ("t",), "Show or hide the time of each line", looks.on_page(lambda page: page.toggle_times())),
    _page(
        "replica",
        ("i",),
        "Show the log of the next replica",
        looks.on_page(lambda page: page.other_replica()),
        title="next replica",
    ),
    _page(
        "stream",
        ("o",),
        "Switch the log: stdout, stderr",
        looks.on_page(lambda page: page.other_stream()),
        title="other stream",
    ),
    _page(
        "merged",
        ("O",),
        "Merge stdout and stderr, or not",
        looks.on_page(lambda page: page.toggle_merged()),
        needs=Ability.MERGED_LOGS,
        title="merge streams",
    ),
    _look(
        "filter",
        ("slash",),
        "Show only rows that match",
        lambda app: app.main_screen.entry_line.ask_filter(),
        views=ON_TABLES,
        in_row=True,
    ),
    _look("filters", ("F",), "Apply or delete a saved filter", looks.saved_filters, views=ON_TABLES, title="saved"),
    _look(
        "save_filter",
        ("W",),
        "Save this filter under a name",
        lambda app: app.main_screen.entry_line.ask_filter_name(),
        views=ON_TABLES,
        why_not=needs_filter,
    ),
    _look(
        "mine",
        ("m",),
        "Show only your jobs, or all jobs",
        lambda app: app.main_screen.arrangement.toggle_mine(),
        views=on(JOBS),
        in_row=True,
    ),
    _only("queued", "Q", "queued"),
    _only("running", "r", "running"),
    _only("held", "o", "held"),
    _only("failed", "f", "failed,expired"),
    _look(
        "fold",
        ("z",),
        "Unfold or fold an array or an account",
        lambda app: app.main_screen.arrangement.toggle_fold(),
        views=on(JOBS, ACCOUNTS),
        why_not=can_fold,
    ),
    _look(
        "colours",
        ("o",),
        "Colour the cards by user, or by job",
        lambda app: app.main_screen.arrangement.toggle_colours(),
        views=on(CARDS),
        in_row=True,
    ),
    _look("copy", ("c",), "Copy the job's id", looks.copy, views=ON_QUEUED, why_not=needs_job),
)

SORTING: Final = (
    _sort(
        "sort_next",
        ("greater_than_sign",),
        "Sort by the next column",
        lambda app: app.main_screen.arrangement.sort_by_neighbour(1),
        title="sort right",
    ),
    _sort(
        "sort_previous",
        ("less_than_sign",),
        "Sort by the previous column",
        lambda app: app.main_screen.arrangement.sort_by_neighbour(-1),
        views=on(JOBS),
        title="sort left",
    ),
    _sort("sort", ("S",), "Choose the column to sort by", looks.choose_sort),
    _sort(
        "sort_reverse",
        ("equals_sign",),
        "Reverse the order",
        lambda app: app.main_screen.arrangement.reverse_sort(),
        title="reverse",
    ),
)
