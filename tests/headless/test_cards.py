"""`cockpit cards`: a row for each card, slice, and rest of a card."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta
from cockpit.model.ids import JobId
from cockpit.model.node import Card, NodeState
from cockpit.model.view import SliceUse
from tests.doubles.samples import job_row, node_row, overview


def two_nodes():
    cards = (Card(index=0, model="A100"), Card(index=1, model="A100"))
    uses = (SliceUse(0, None, 1000, JobId(1), "train", "ann"), SliceUse(1, 0, 500, JobId(2), "note", "bob"))
    drained = replace(node_row("n09", cards=cards[:1], state=NodeState.DRAINED), slices=())
    return [replace(node_row("n08", cards=cards), slices=uses, used_cpus=0), drained]


@pytest.fixture
def cluster(desk):
    desk.backend.node_rows = two_nodes()
    desk.backend.job_rows = [job_row(2, name="note", user="bob", card_milli=600)]
    return desk


@pytest.mark.req("UI-05", "UI-40")
def test_the_table_shows_the_job_of_each_slice_and_stranded_cards(cluster) -> None:
    done = cluster("cards")
    assert [" ".join(line.split()) for line in done.lines] == [
        "NODE CARD MODEL STATE SHARE IN USE JOB USER",
        "n08 1:train A100 allocated 1.0 n/a 1 ann",
        "n08 2(1):note A100 allocated 0.5 n/a 2 bob",
        "n08 2 A100 stranded 0.5 n/a – –",
    ]


@pytest.mark.req("UI-05", "UI-40")
def test_programs_get_values_and_null_for_unknown_ones(cluster) -> None:
    rows = json.loads(cluster("cards", "--all", "--filter", "user:bob", "-o", "json").out)["rows"]
    assert [(row["node"], row["card"], row["slice"], row["job"], row["in_use"]) for row in rows] == [
        ("n08", 2, 1, 2, None)
    ]
    states = cluster("cards", "--all", "--columns", "node,state", "-o", "csv").lines[1:]
    assert states[-1] == "n09,out of service"


@pytest.mark.req("JT-46", "UI-40")
def test_each_model_is_listed_with_the_queued_demand(cluster) -> None:
    cluster.backend.glance = replace(overview(), demand={"": 3000, "A100": 4500, "H100": 8000})
    assert [" ".join(line.split()) for line in cluster("cards", "--models").lines] == [
        "MODEL NODES CARDS FREE QUEUED",
        "(any) 0 0 0 3.0",
        "A100 1 2 0 4.5",
        "H100 0 0 0 8.0",
    ]
    assert json.loads(cluster("cards", "--models", "--filter", "queued>5", "-o", "json").out)["rows"] == [
        {"model": "H100", "nodes": 0, "cards": 0, "free": 0, "queued": 8.0}
    ]


@pytest.mark.req("UI-05")
def test_rows_are_filtered_and_sorted_as_in_every_list(cluster) -> None:
    lines = cluster("cards", "--filter", "share<1 !state:stranded", "--columns", "usage", "--no-header").lines
    assert lines == ["2(1):note"]
    assert cluster("cards", "--sort", "-card", "--columns", "card", "--no-header").lines[0].strip() == "2"


@pytest.mark.req("UI-05")
def test_without_cards_the_list_explains_how_cards_are_found(cluster) -> None:
    cluster.backend.node_rows = []
    assert "cockpit doctor" in cluster("cards", terminal=True).err


@pytest.mark.req("UI-05", "UI-40")
def test_watch_prints_added_and_removed_rows(cluster) -> None:
    rest = two_nodes()
    rest[0] = replace(rest[0], slices=rest[0].slices[:1])
    states = [two_nodes(), rest]

    async def nodes():
        return states.pop(0)

    cluster.backend.nodes = nodes
    delta = JobsDelta((), (), 1)
    cluster.backend.deltas = [delta, delta]
    done = cluster("cards", "--watch", "--filter", "node:n08", "--columns", "usage,state")
    told = [json.loads(line) for line in done.lines]
    assert [each["row"]["usage"] for each in told[:3]] == ["1:train", "2(1):note", "2"]
    assert [(each["change"], each.get("row"), each.get("slice")) for each in told[3:]] == [
        ("row", {"usage": "2", "state": "free"}, None),
        ("gone", None, 1),
    ]
