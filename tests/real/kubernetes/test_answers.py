"""What cockpit says of waiting jobs comes true on the real scheduler: some of docs/kubernetes-answers.md."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.real.kubernetes.answers.situations import situation
from tests.real.kubernetes.answers.stage import BACKOFF_SECONDS, Stage
from tests.real.kubernetes.answers.trial import Question, Verdict, try_situation
from tests.real.kubernetes.cluster import ADMIN
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.test_backend import cockpit_of
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
SEED = 2026
SITUATIONS = (
    ("cards short", 0),
    ("taints", 0),
    ("node selector", 0),
    ("pod anti-affinity", 0),
    ("priorities", 0),
    ("several pods", 0),
    ("volumes", 0),
)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=0, backoff_seconds=BACKOFF_SECONDS) as cluster:
        yield Stage(cluster)


@pytest.mark.req("KU-05", "SC-12", "SC-13")
async def test_reasons_what_ifs_and_starts_come_true_on_the_real_scheduler(stage: Stage) -> None:
    asked = set()
    async with cockpit_of(stage.cluster, ADMIN, "default") as backend:
        for kind, number in SITUATIONS:
            made = situation(kind, SEED, number)
            found = await try_situation(stage, backend, made, Random(f"{SEED}/{kind}/{number}/trial"))
            assert found, f"no job waits in {kind} {number}"
            # How many equal pods are evicted may differ, see the page.
            wrong = [each for each in found if each.verdict is Verdict.WRONG and each.question is not Question.EVICTS]
            assert not wrong
            asked |= {each.question for each in found}
    assert asked >= {Question.REASON, Question.HELPS, Question.HELPS_NOT, Question.START}
