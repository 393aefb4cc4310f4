"""Cards that a configuration declares: who waits for them, who is given which, and when they are free again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

EIGHT_CARDS = """
[machine]
cards = [{ model = "A100", count = 8, slices = 4, memory = "80G" }]
"""
TWO_NODES = """
overcommit = true
[[nodes]]
name = "n01"
cpus = 64
memory = "4T"
cards = [{ model = "A100", count = 4, slices = 4, memory = "80G" }]
[[nodes]]
name = "n02"
cpus = 64
memory = "4T"
cards = [{ model = "H100", count = 4, memory = "80G" }]
"""
SHOW = "env | sort | grep -E 'VISIBLE|COCKPIT_CARDS|MPS_ACTIVE'; ls /dev | grep -cE 'nvidia|kfd|davinci|cambricon' || :"
LAST = f"{SHOW}; exec sleep 300"


def asking(cards: float, **more: Any) -> dict[str, Any]:
    return {"specs": [{"cpus": 1, "memory": "64M", "cards": cards, **more}]}


def shown(user: CockpitUser, job: str) -> dict[str, str]:
    """The variables that a job that ran `SHOW` found, and the number of its card devices as `devices`."""
    *variables, devices = user.ok("logs", job).splitlines()
    return dict(each.split("=", 1) for each in variables) | {"devices": devices}


def why(user: CockpitUser, job: str) -> str:
    return str(user.looked_at(job)["why"])


@pytest.fixture
def eight(user: CockpitUser) -> CockpitUser:
    user.configure("cluster.toml", EIGHT_CARDS)
    return user


@pytest.fixture
def two_nodes(user: CockpitUser) -> CockpitUser:
    user.configure("cluster.toml", TWO_NODES)
    return user


@pytest.mark.req("JT-43", "JT-44")
def test_declared_cards_are_listed_as_such_and_nodes_judged_against_a_spec(eight: CockpitUser) -> None:
    node = eight.row("nodes")
    assert node["cards"] == {"used": 0, "total": 8}
    assert node["cpus"] == {"used": 0, "total": len(os.sched_getaffinity(0))}
    assert (node["status"], node["badges"]) == ("up", ["declared cards"])
    job = eight.submit("exec sleep 300", **asking(6))
    eight.until(job, "running")
    assert (eight.row("nodes", "--cards", "2")["status"], eight.row("nodes", "--cards", "3")["status"]) == (
        "idle",
        "tight",
    )
    assert eight.row("nodes", "--cards", "0.25")["specs_fit"] == 8
    assert "  6/8  " in eight.ok("nodes")
    assert "  1:job, 2:job, 3:job, 4:job, 5:job, 6:job  " in eight.ok("nodes")


@pytest.mark.req("SC-04")
def test_more_cards_than_any_node_has_are_refused_with_path_and_sentence(eight: CockpitUser) -> None:
    refused = eight.run("submit", str(eight.job("true", **asking(9))))
    assert refused.returncode == 65
    assert refused.stderr.decode().strip().endswith("specs[0].cards: asks for 9 cards on one node; the largest has 8")
    assert eight.rows("jobs") == []


@pytest.mark.req("JT-47", "JT-45", "SC-05")
def test_slices_of_one_card_are_shared_and_each_job_sees_only_its_card(two_nodes: CockpitUser) -> None:
    first = two_nodes.submit(LAST, name="app", **asking(0.25))
    second = two_nodes.submit(LAST, name="other", **asking(0.5))
    two_nodes.until(first, "running")
    two_nodes.until(second, "running")
    assert two_nodes.row("nodes", "--filter", "name:n01")["usage"] == ["1(1):app", "1(2):other", "1(3):other"]
    assert two_nodes.row("nodes", "--filter", "name:n01")["cards"] == {"used": 0.75, "total": 4}
    assert shown(two_nodes, first) == given_nvidia("0", share="25")
    assert shown(two_nodes, second) == given_nvidia("0", share="50")
    assert "; card share: not enforced" in two_nodes.ok("job", first)


@pytest.mark.req("JT-47")
def test_whole_cards_are_allocated_and_a_job_without_cards_sees_none(two_nodes: CockpitUser) -> None:
    pair = two_nodes.submit(SHOW, name="pair", **asking(2, card_model="A100"))
    none = two_nodes.submit(SHOW, name="none", **asking(0))
    assert (two_nodes.wait(pair), two_nodes.wait(none)) == (0, 0)
    assert shown(two_nodes, pair) == given_nvidia("0,1")
    assert shown(two_nodes, none) == given_nvidia("")


@pytest.mark.req("SC-13")
def test_a_job_that_does_not_fit_waits_and_names_the_missing_resource(two_nodes: CockpitUser) -> None:
    holder = two_nodes.submit("exec sleep 300", name="holder", **asking(3, card_model="A100"))
    waits = two_nodes.submit("true", name="waits", **asking(2, card_model="A100"))
    two_nodes.until(holder, "running")
    sentence = why(two_nodes, waits)
    assert sentence == "waits for 2 A100 on one node; n01 has 1 free; 4 cards of other models are free"
    page = two_nodes.ok("job", waits)
    assert sentence[1:] in page
    assert "Place 1 in the queue." in page
    two_nodes.ok("cancel", holder, "--now", "--yes")
    assert two_nodes.wait(waits) == 0


@pytest.mark.req("SC-04", "JT-14", "SC-13")
def test_a_gang_over_two_nodes_starts_completely_or_not_at_all(two_nodes: CockpitUser) -> None:
    holder = two_nodes.submit("exec sleep 300", name="holder", **asking(1, card_model="H100"))
    two_nodes.until(holder, "running")
    script = "echo $COCKPIT_REPLICA of $COCKPIT_REPLICAS on $COCKPIT_NODE with $COCKPIT_CARDS"
    gang = two_nodes.submit(script, name="gang", nodes=2, mode="pytorch", **asking(4))
    assert why(two_nodes, gang) == "waits for 4 cards on each of 2 nodes; 1 node has room; n02 has 3 free"
    assert two_nodes.row("nodes", "--filter", "name:n01")["usage"] == []
    two_nodes.ok("cancel", holder, "--now", "--yes")
    assert two_nodes.wait(gang) == 0
    assert two_nodes.ok("logs", gang) == "0 of 2 on n01 with 0,1,2,3\n"
    assert two_nodes.ok("logs", f"{gang}/1") == "1 of 2 on n02 with 0,1,2,3\n"
    assert all({"virtual", "overcommit", "declared cards"} == set(node["badges"]) for node in two_nodes.rows("nodes"))


@pytest.mark.req("JT-20", "JT-40", "JT-47")
def test_after_a_failure_the_cards_are_free_while_the_container_is_held(eight: CockpitUser) -> None:
    failed = eight.submit(f"{SHOW}; exit 3", name="failed", terminal=True, **asking(8))
    assert eight.wait(failed) == 3
    assert shown(eight, failed) == given_nvidia("0,1,2,3,4,5,6,7")
    assert eight.row("nodes")["cards"] == {"used": 0, "total": 8}
    after = eight.submit("true", name="after", **asking(8))
    assert eight.wait(after) == 0
    entered = eight.run("shell", failed, "--", "sh", "-c", SHOW)
    assert entered.stdout.decode().splitlines() == [
        *(f"{name}=" for name in sorted(given_nvidia("")) if name != "devices"),
        "0",
    ]
    assert "cards" in entered.stderr.decode()


@pytest.mark.req("JT-20", "JT-40")
def test_retained_cards_stay_allocated_to_the_container_until_its_hold_ends(eight: CockpitUser) -> None:
    failed = eight.submit("exit 3", name="failed", terminal=True, debug_hold={"cards": "keep"}, **asking(6))
    assert eight.wait(failed) == 3
    assert eight.row("nodes")["cards"] == {"used": 6, "total": 8}
    after = eight.submit("true", name="after", **asking(8))
    assert why(eight, after).startswith("waits for 8 cards on one node")
    entered = eight.run("shell", failed, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert entered.stdout.decode() == "0,1,2,3,4,5\n"
    eight.ok("holds", "end", failed)
    assert eight.wait(after) == 0


def given_nvidia(cards: str, *, share: str = "") -> dict[str, str]:
    """What a job sees that was given these cards of NVIDIA's, or none."""
    every = (
        *("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
        *("MLU_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "COCKPIT_CARDS"),
    )
    seen = dict.fromkeys(every, "") | dict.fromkeys(
        ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "COCKPIT_CARDS"), cards
    )
    return seen | ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": share} if share else {}) | {"devices": "0"}
