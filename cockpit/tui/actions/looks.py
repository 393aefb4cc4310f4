"""Actions that change only the screen: open a page, switch tabs, filter, sort."""

from __future__ import annotations

from typing import Final

from cockpit.tui.action import (
    ACCOUNTS,
    CARDS,
    CLUSTERS,
    JOB,
    JOBS,
    LOOK,
    NODE,
    NODES,
    ON_ACCOUNTS,
    ON_JOBS,
    ON_QUEUED,
    ON_SORTED,
    ON_TABLES,
    ORDER,
    OVER_A_JOB,
    PRIORITY,
    QOS,
    QUEUES,
    Action,
    can_fold,
    needs_filter,
    needs_job,
)
from cockpit.tui.controllers import clusters, lists, pages, queues

_JOBS, _JOB, _NODES, _NODE = (frozenset({view}) for view in (JOBS, JOB, NODES, NODE))
_ACCOUNTS, _QOS = frozenset({ACCOUNTS}), frozenset({QOS})
_TABBED = _JOB | ON_ACCOUNTS
_PRIORITY = frozenset({PRIORITY})


VIEWING: Final = (
    Action(
        "open",
        "open",
        ("enter",),
        "Open the job's page",
        pages.open_job,
        LOOK,
        frozenset({JOBS, CARDS, PRIORITY}),
        needs_job,
        in_row=True,
    ),
    Action(
        "queue_jobs",
        "its jobs",
        ("enter",),
        "List the jobs of this queue",
        queues.queue_jobs,
        LOOK,
        frozenset({QUEUES}),
        in_row=True,
    ),
    Action(
        "open_cluster",
        "open",
        ("enter",),
        "Switch to this cluster",
        clusters.open_cluster,
        LOOK,
        frozenset({CLUSTERS}),
        in_row=True,
    ),
    Action(
        "every_job",
        "all jobs",
        ("a",),
        "List the jobs of all clusters",
        clusters.every_job,
        LOOK,
        frozenset({CLUSTERS}),
        in_row=True,
    ),
    Action("open_node", "open", ("enter",), "Open the node's page", lists.open_node, LOOK, _NODES, in_row=True),
    Action("node_jobs", "its jobs", ("enter",), "List the node's jobs", lists.node_jobs, LOOK, _NODE, in_row=True),
    Action(
        "logs", "logs", ("l",), "Show what the job printed", pages.show_logs, LOOK, OVER_A_JOB, needs_job, in_row=True
    ),
    Action(
        "next_tab",
        "next tab",
        ("right_square_bracket", "tab"),
        "Switch to the next tab",
        pages.next_tab,
        LOOK,
        _TABBED,
    ),
    Action(
        "previous_tab",
        "previous tab",
        ("left_square_bracket", "shift+tab"),
        "Switch to the previous tab",
        pages.previous_tab,
        LOOK,
        _TABBED,
    ),
    Action("record", "record", ("y",), "Show the job's complete record", pages.show_record, LOOK, ON_QUEUED, needs_job),
    Action(
        "attempt",
        "earlier log",
        ("p",),
        "Show the log of the previous attempt",
        pages.earlier_attempt,
        LOOK,
        ON_JOBS,
        needs_job,
    ),
    Action("wrap", "wrap", ("w",), "Wrap long lines, or cut them", pages.wrap, LOOK, _JOB),
    Action("search", "search", ("slash",), "Search for text on this page", pages.search, LOOK, _JOB, in_row=True),
    Action(
        "next_match",
        "next match",
        ("greater_than_sign",),
        "Go to the next match",
        pages.next_match,
        LOOK,
        _JOB,
    ),
    Action(
        "previous_match",
        "prev match",
        ("less_than_sign",),
        "Go to the previous match",
        pages.previous_match,
        LOOK,
        _JOB,
    ),
    Action("times", "times", ("t",), "Show or hide the time of each line", pages.times, LOOK, _JOB),
    Action("replica", "next replica", ("i",), "Show the log of the next replica", pages.other_replica, LOOK, _JOB),
    Action("stream", "other stream", ("o",), "Switch the log: stdout, stderr", pages.other_stream, LOOK, _JOB),
    Action("filter", "filter", ("slash",), "Show only rows that match", lists.ask_filter, LOOK, ON_TABLES, in_row=True),
    Action("filters", "saved", ("F",), "Apply or delete a saved filter", lists.saved_filters, LOOK, ON_TABLES),
    Action(
        "save_filter",
        "save filter",
        ("W",),
        "Save this filter under a name",
        lists.save_filter,
        LOOK,
        ON_TABLES,
        needs_filter,
    ),
    Action("mine", "mine", ("m",), "Show only your jobs, or all jobs", lists.toggle_mine, LOOK, _JOBS, in_row=True),
    Action(
        "fold", "fold", ("z",), "Unfold or fold an array or an account", lists.fold, LOOK, _JOBS | _ACCOUNTS, can_fold
    ),
    Action(
        "colours",
        "colours",
        ("u",),
        "Colour the cards by user, or by job",
        lists.turn_colours,
        LOOK,
        frozenset({CARDS}),
        in_row=True,
    ),
    Action("copy", "copy", ("c",), "Copy the job's id", lists.copy, LOOK, ON_QUEUED, needs_job),
)

SORTING: Final = (
    Action(
        "sort_next", "sort right", ("greater_than_sign",), "Sort by the next column", lists.sort_next, ORDER, ON_SORTED
    ),
    Action(
        "sort_previous",
        "sort left",
        ("less_than_sign",),
        "Sort by the previous column",
        lists.sort_previous,
        ORDER,
        _JOBS,
    ),
    Action("sort", "sort", ("S",), "Choose the column to sort by", lists.choose_sort, ORDER, ON_SORTED),
    Action("sort_reverse", "reverse", ("equals_sign",), "Reverse the order", lists.sort_reverse, ORDER, ON_SORTED),
)
