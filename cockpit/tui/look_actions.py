"""Every act that only looks: pages, tabs, filters, orders."""

from __future__ import annotations

from typing import Final

from cockpit.tui import cluster_deeds, list_deeds, page_deeds, queue_deeds
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

_JOBS, _JOB, _NODES, _NODE = (frozenset({view}) for view in (JOBS, JOB, NODES, NODE))
_ACCOUNTS, _QOS = frozenset({ACCOUNTS}), frozenset({QOS})
_TABBED = _JOB | ON_ACCOUNTS
_PRIORITY = frozenset({PRIORITY})


LOOKING: Final = (
    Action(
        "open",
        "open",
        ("enter",),
        "The job's page",
        page_deeds.open_job,
        LOOK,
        frozenset({JOBS, CARDS, PRIORITY}),
        needs_job,
        in_row=True,
    ),
    Action(
        "queue_jobs",
        "its jobs",
        ("enter",),
        "The jobs of this queue",
        queue_deeds.queue_jobs,
        LOOK,
        frozenset({QUEUES}),
        in_row=True,
    ),
    Action(
        "open_cluster",
        "open",
        ("enter",),
        "This cluster in place of the open one",
        cluster_deeds.open_cluster,
        LOOK,
        frozenset({CLUSTERS}),
        in_row=True,
    ),
    Action(
        "every_job",
        "all jobs",
        ("a",),
        "The jobs of all clusters in one list",
        cluster_deeds.every_job,
        LOOK,
        frozenset({CLUSTERS}),
        in_row=True,
    ),
    Action(
        "open_node", "open", ("enter",), "The node's cards and jobs", list_deeds.open_node, LOOK, _NODES, in_row=True
    ),
    Action("node_jobs", "its jobs", ("enter",), "List its jobs", list_deeds.node_jobs, LOOK, _NODE, in_row=True),
    Action(
        "logs", "logs", ("l",), "What the job printed", page_deeds.show_logs, LOOK, OVER_A_JOB, needs_job, in_row=True
    ),
    Action(
        "next_tab",
        "next tab",
        ("right_square_bracket", "tab"),
        "The tab to the right",
        page_deeds.next_tab,
        LOOK,
        _TABBED,
    ),
    Action(
        "previous_tab",
        "previous tab",
        ("left_square_bracket", "shift+tab"),
        "The tab to the left",
        page_deeds.previous_tab,
        LOOK,
        _TABBED,
    ),
    Action(
        "record", "record", ("y",), "All the engine knows of it", page_deeds.show_record, LOOK, ON_QUEUED, needs_job
    ),
    Action(
        "attempt", "earlier", ("p",), "The log of the try before", page_deeds.earlier_attempt, LOOK, ON_JOBS, needs_job
    ),
    Action("wrap", "wrap", ("w",), "Fold long lines, or cut them", page_deeds.wrap, LOOK, _JOB),
    Action("search", "search", ("slash",), "Go to a text on this page", page_deeds.search, LOOK, _JOB, in_row=True),
    Action(
        "next_match",
        "next match",
        ("greater_than_sign",),
        "Where the text stands next",
        page_deeds.next_match,
        LOOK,
        _JOB,
    ),
    Action(
        "previous_match",
        "match before",
        ("less_than_sign",),
        "Where it stood before",
        page_deeds.previous_match,
        LOOK,
        _JOB,
    ),
    Action("times", "times", ("t",), "When each line of the log came", page_deeds.times, LOOK, _JOB),
    Action("stream", "other stream", ("o",), "stdout or stderr in the logs", page_deeds.other_stream, LOOK, _JOB),
    Action(
        "filter", "filter", ("slash",), "Show only what matches", list_deeds.ask_filter, LOOK, ON_TABLES, in_row=True
    ),
    Action("filters", "saved", ("F",), "Filters that you saved", list_deeds.saved_filters, LOOK, ON_TABLES),
    Action(
        "save_filter",
        "keep filter",
        ("W",),
        "Save it under a name",
        list_deeds.save_filter,
        LOOK,
        ON_TABLES,
        needs_filter,
    ),
    Action("mine", "mine", ("m",), "Your own jobs, or everybody's", list_deeds.toggle_mine, LOOK, _JOBS, in_row=True),
    Action("fold", "fold", ("z",), "What is below, or one row", list_deeds.fold, LOOK, _JOBS | _ACCOUNTS, can_fold),
    Action(
        "colours",
        "colours",
        ("u",),
        "Colour the cards by user, or by job",
        list_deeds.turn_colours,
        LOOK,
        frozenset({CARDS}),
        in_row=True,
    ),
    Action("copy", "copy", ("c",), "Copy the job's id", list_deeds.copy, LOOK, ON_QUEUED, needs_job),
)

ORDERING: Final = (
    Action(
        "sort_next", "sort right", ("greater_than_sign",), "By the next column", list_deeds.sort_next, ORDER, ON_SORTED
    ),
    Action(
        "sort_previous",
        "sort left",
        ("less_than_sign",),
        "By the previous column",
        list_deeds.sort_previous,
        ORDER,
        _JOBS,
    ),
    Action("sort", "sort", ("S",), "By a column of your choice", list_deeds.choose_sort, ORDER, ON_SORTED),
    Action(
        "sort_reverse", "reverse", ("equals_sign",), "The other way round", list_deeds.sort_reverse, ORDER, ON_SORTED
    ),
)
