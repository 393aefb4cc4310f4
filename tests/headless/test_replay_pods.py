from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats.traces.test_gpu import NODES, PODS


@pytest.fixture
def trace(tmp_path: Path) -> tuple[str, str]:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(PODS.replace("V100M32|V100M16", ""))
    nodes.write_text(NODES)
    return str(pods), str(nodes)


@pytest.mark.req("SC-23")
def test_json_is_one_object_with_the_curve(desk, trace) -> None:
    pods, nodes = trace
    done = desk("replay", pods, "--nodes", nodes, "--fit", "fgd", "--scale", "1", "--seed", "6", "-o", "json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told.pop("pods_per_second") == 3000, "the clock stands still here, which counts as a millisecond"
    assert isinstance(told.pop("peak_rss_mib"), int)
    curve = told.pop("allocation")
    assert curve[0] == 0.0
    assert len(curve) == 74  # 1.46 of 2 cards are asked for: the pod of eight cards is dropped
    assert curve[-1] == 73.0
    assert told.pop("version") == 1
    assert told == {"fit": "fgd", "scale": 1.0, "seed": 6, "nodes": 2, "cards": 2, "pods": 3, "placed": 3}


@pytest.mark.req("SC-23")
def test_the_table_has_the_allocation_at_each_percent(desk, trace) -> None:
    pods, nodes = trace
    lines = desk("replay", pods, "--nodes", nodes, "--scale", "1", "--seed", "6").lines
    assert lines[:3] == [
        "fit       best, 1 times the cards, seed 6",
        "cluster   2 nodes, 2 cards",
        "pods      3, 3 with room",
    ]
    assert lines[5:7] == ["  arrived   allocated", "      0 %      0.00 %"]
    assert lines[-1] == "     73 %     73.00 %"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("PODS", "--nodes", "NODES", "--procs", "4"), 64, "not allowed with"),
        (("PODS", "--nodes", "nowhere.csv"), 66, "There is no file nowhere.csv"),
        (("PODS", "--nodes", "PODS"), 65, "no column sn, gpu, model"),
        (("PODS", "--nodes", "NODES", "--scale", "0"), 64, "a number above 0"),
        (("PODS", "--nodes", "NODES", "--scale", "nan"), 64, "a number above 0"),
        (("PODS", "--nodes", "NODES", "--scale", "much"), 64, "a number above 0"),
        (("PODS", "--nodes", "NODES", "--fit", "worst"), 64, "worst"),
        (("PODS", "--nodes", "BARE"), 65, "no node has a card"),
        (("IDLE", "--nodes", "NODES"), 65, "no pod asks for a card"),
    ],
)
def test_an_invalid_replay_of_pods_is_reported(desk, trace, tmp_path, words, code, says) -> None:
    bare, idle = tmp_path / "bare.csv", tmp_path / "idle.csv"
    bare.write_text(NODES.replace(",2,P100", ",0,"))
    idle.write_text("".join(line + "\n" for line in PODS.splitlines() if line.startswith(("name", "p2"))))
    named = {"PODS": trace[0], "NODES": trace[1], "BARE": str(bare), "IDLE": str(idle)}
    done = desk("replay", *(named.get(word, word) for word in words))
    assert done.code == code
    assert says in done.err


@pytest.mark.req("SC-23")
def test_pods_ask_for_1_3_times_the_cards_with_seed_42_unless_told_otherwise(desk, trace) -> None:
    pods, nodes = trace
    assert desk("replay", pods, "--nodes", nodes).lines[0] == "fit       best, 1.3 times the cards, seed 42"
    assert desk("replay", pods, "--nodes", nodes, "--scale", "0.5").code == 0
