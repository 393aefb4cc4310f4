"""The interfaces that are made for jobs' networks, as iproute2 sees them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.req("LA-10"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed"),
]
CHECKOUT = Path(__file__).parents[3]
WORDS = ("unshare", "--net", "--fork", sys.executable, "-m", "tests.runtime.containers.made_links")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    made = subprocess.run(WORDS, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert made.stderr == ""
    answer: dict[str, Any] = json.loads(made.stdout)
    return answer


def by_name(links: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["ifname"]: each for each in links}


def kind(link: dict[str, Any]) -> str:
    return str(link["linkinfo"]["info_kind"])


def addresses(link: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(each["local"], each["prefixlen"], each["scope"]) for each in link["addr_info"] if each["family"] == "inet"]


def test_a_veth_pair_is_down_until_it_is_brought_up(told: dict[str, Any]) -> None:
    made, links = by_name(told["made"]), by_name(told["links"])
    assert made.keys() == links.keys() == {"lo", "eth0"}
    assert (kind(made["eth0"]), "UP" in made["eth0"]["flags"], "UP" in links["eth0"]["flags"]) == ("veth", False, True)
    assert "UP" in links["lo"]["flags"]
    assert addresses(links["eth0"]) == [("198.18.0.7", 24, "global")]


def test_the_other_end_is_a_port_of_the_hubs_bridge(told: dict[str, Any]) -> None:
    hub = by_name(told["hub"])
    assert hub.keys() == {"lo", "br0", "rank7"}
    assert (kind(hub["br0"]), kind(hub["rank7"]), hub["rank7"]["master"]) == ("bridge", "veth", "br0")
    assert {name for name, link in hub.items() if "UP" in link["flags"]} == {"br0", "rank7"}
    assert addresses(hub["br0"]) == [("198.18.0.1", 24, "global")]
    assert addresses(hub["rank7"]) == []


def test_what_is_not_of_the_network_goes_to_the_gateway(told: dict[str, Any]) -> None:
    (outward,) = [each for each in told["routes"] if each["dst"] == "default"]
    found = [outward[name] for name in ("type", "gateway", "dev", "protocol", "scope")]
    assert found == ["unicast", "198.18.0.1", "eth0", "static", "global"]
    assert [each["dst"] for each in told["hub routes"]] == ["198.18.0.0/24"]


def test_a_refusal_names_what_could_not_be_made_and_why(told: dict[str, Any]) -> None:
    assert told["refused"] == [
        [errno.EEXIST, "make the interface eth0: File exists"],
        [errno.EEXIST, "give eth0 the address 198.18.0.7: File exists"],
        [errno.ENETUNREACH, "route by 203.0.113.1: Network is unreachable"],
        [errno.EEXIST, "make the bridge eth0: File exists"],
    ]
    assert told["left open"] == 0
