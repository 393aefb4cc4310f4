"""What stands beside a form."""

from __future__ import annotations

import pytest

from cockpit.formats.foreign.bringing import JOB_FILE, Brought
from cockpit.model.spec import Mode, WorkerPool
from cockpit.present.form.aside import brought_lines, run_lines
from cockpit.present.spans import plain
from tests.builders import ANN, a_spec
from tests.doubles.samples import node_row


@pytest.mark.req("UI-08", "LA-60")
def test_of_many_replicas_the_first_are_shown_and_the_last_is_told() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=6, command="python w.py"))
    lines = run_lines(a_spec("p", mode=Mode.WORKER_POOLS, worker_pools=pools), ANN, [node_row()], 80)
    texts = [plain(each) for each in lines]
    assert texts[2:4] == ["rank 1  p-1 in /workspace", "python w.py"]
    assert texts[-1] == "and so on, up to rank 6"


@pytest.mark.req("LA-70", "UI-08")
def test_what_could_not_be_carried_over_is_listed_and_a_job_file_says_nothing() -> None:
    lines = brought_lines(Brought("a PyTorchJob", {}, ("spec.x: has no\x1b[31m counterpart",)), 60)
    assert [plain(each) for each in lines] == [
        "Taken over from a PyTorchJob",
        "1 thing of it could not be carried over:",
        "  spec.x: has no\\x1b[31m counterpart",
        "",
    ]
    assert list(brought_lines(Brought(JOB_FILE, {}), 60)) == []
