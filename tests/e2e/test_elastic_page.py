"""The commands of docs/elastic.md for an elastic job on spot nodes, run one by one on cockpit's own engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.elastic_page import ON_THE_ENGINE, SUBMITTED
from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]
NAME = "fine-tuning-elastic"
SPOT_NODE = '{{ name = "n{}", cpus = 4, memory = "16G", taints = ["spot"], cards = [{{ model = "T4" }}] }}'
HEAD_NODE = '{ name = "head", cpus = 1, memory = "2G", labels = { instance_type = "spot-launcher" } }'
RULES = f"overcommit = true\nnodes = [{', '.join([*map(SPOT_NODE.format, range(1, 4)), HEAD_NODE])}]\n"


@pytest.mark.req("EL-01", "EL-02", "EL-08")
def test_every_command_of_the_page_does_what_it_says(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    # The guide's image and its program are not on this machine.
    text = re.sub(r"--image=\S+", "--image=host", SUBMITTED).replace("horovodrun ", "sleep 1000; : ")
    user.write("tune.sh", text)
    steps = iter(ON_THE_ENGINE)

    def step(*expected: str) -> str:
        """Run the next command of the page, which begins so."""
        words = next(steps)
        assert words[: len(expected)] == list(expected)
        return user.ok(*words)

    def job() -> dict[str, object]:
        return user.row("jobs", "--all", "--filter", f"name:{NAME}")

    step("doctor")
    assert f"submitted {NAME}" in step("submit", "tune.sh")
    # Of eight workers three fit, and one is enough.
    eventually(lambda: job()["state"] == "running")
    assert job()["workers"] == {"workers": 8, "min_workers": 1, "max_workers": 128}
    assert job()["nodes"] == 3
    step("reclaim", "n2", "--grace", "300")
    eventually(lambda: "leaving" in user.ok("job", NAME, "--replicas"))
    assert "reclaim" in step("events", NAME)
    assert not list(steps)
