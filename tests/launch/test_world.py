"""What workers are told of each other, and what `cockpit.elastic` makes of it for a training script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit import elastic
from cockpit.launch.example_placement import example_placement
from cockpit.launch.world import FILE, HOSTS, address, host_of, hosts, world_files
from cockpit.model.attempt import Attempt, EndCause, Ending, Grounds, Leaving, Replica
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job, JobState
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.resilience import Elastic
from cockpit.model.spec import JobSpec, Mode
from tests.builders import ANN, NOON, a_spec

SIZE = Elastic(workers=2, min_workers=1, max_workers=4)


def a_job(**fields) -> Job:
    """Worker 1 has left, 3 came later."""
    held = (0, "n1"), (2, "n3"), (3, "n2")
    cards = (CardSlice(0, None), CardSlice(1, None))
    placement = tuple(Allocation(rank, NodeName(node), 4, 1024, cards) for rank, node in held)
    attempt = Attempt(number=1, spec_index=0, placement=placement, placed_at=NOON, replicas=(Replica(rank=0),))
    known = Job(
        id=JobId(7),
        spec=a_spec("train", nodes=2, elastic=SIZE),
        submitter=ANN,
        project="ann",
        submitted_at=NOON,
        state=JobState.RUNNING,
        state_since=NOON,
        attempt=attempt,
        version=12,
    )
    return replace(known, **fields)


def leaving(rank: int) -> Leaving:
    return Leaving(rank=rank, at=NOON, kill_at=Millis(NOON + 1000), for_job=JobId(9), grounds=Grounds.QOS)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A training script's view as one of the replicas of a job."""

    def of(replica: int, job: Job) -> None:
        path = tmp_path / "workers.json"
        path.write_bytes(world_files(job)[FILE])
        monkeypatch.setenv("COCKPIT_WORKERS_FILE", str(path))
        monkeypatch.setenv("COCKPIT_REPLICA", str(replica))
        elastic.init()

    return of


@pytest.mark.req("EL-01", "EL-03")
def test_remaining_workers_have_ranks_without_gaps(script) -> None:
    told = json.loads(world_files(a_job(leaving=(leaving(2),)))[FILE])
    assert told == {
        "version": 12,
        "min_workers": 1,
        "max_workers": 4,
        "workers": [
            {"rank": 0, "replica": 0, "host": "train-worker-0", "node": "n1", "slots": 2},
            {"rank": 1, "replica": 3, "host": "train-worker-3", "node": "n2", "slots": 2},
        ],
        "leaving": [{"replica": 2, "kill_at": NOON + 1000}],
    }
    script(3, a_job(leaving=(leaving(2),)))
    assert elastic.world() == {"version": 12, "size": 2, "rank": 1, "hosts": ["train-worker-0", "train-worker-3"]}


@pytest.mark.req("EL-03")
@pytest.mark.parametrize(("replica", "alive", "saves"), [(0, True, True), (2, False, True), (3, True, False)])
def test_a_worker_is_notified_of_its_end_and_the_first_one_saves(
    script, replica: int, alive: bool, saves: bool
) -> None:
    script(replica, a_job())
    assert (elastic.check_alive(), elastic.checkpoint_requested()) == (True, False)
    script(replica, a_job(leaving=(leaving(2),)))
    assert (elastic.check_alive(), elastic.checkpoint_requested()) == (alive, saves)


@pytest.mark.req("EL-03")
def test_no_worker_of_an_ending_job_remains(script) -> None:
    ending = Ending(cause=EndCause.PREEMPTED, at=NOON, kill_at=Millis(NOON + 5))
    script(3, a_job(ending=ending))
    assert (elastic.check_alive(), elastic.checkpoint_requested()) == (False, False)
    assert elastic.world()["rank"] is None


@pytest.mark.req("EL-04", "EL-03")
def test_where_all_must_end_only_the_first_one_saves(script) -> None:
    ending = Ending(cause=EndCause.PREEMPTED, at=NOON, kill_at=Millis(NOON + 5))
    script(0, a_job(ending=ending))
    assert (elastic.check_alive(), elastic.checkpoint_requested()) == (False, True)


@pytest.mark.req("EL-03")
def test_outside_of_an_elastic_job_the_world_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COCKPIT_REPLICA", raising=False)
    elastic.init("/nowhere/workers.json")
    assert elastic.check_alive()
    assert (elastic.world()["rank"], elastic.world()["size"]) == (0, 1)


@pytest.mark.req("EL-03")
def test_the_helper_imports_no_module_of_cockpit(tmp_path: Path) -> None:
    copied = tmp_path / "kubeai.py"
    copied.write_text(Path(elastic.__file__).read_text())
    code = "import kubeai; kubeai.init('/nowhere'); print(kubeai.check_alive(), 'msgspec' in __import__('sys').modules)"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "True False\n"


@pytest.mark.req("EL-06")
def test_the_file_for_launchers_has_a_line_for_each_worker_that_remains() -> None:
    assert world_files(a_job(leaving=(leaving(2),)))[HOSTS] == b"train-worker-0:2\ntrain-worker-3:2\n"


@pytest.mark.req("LA-30")
@pytest.mark.parametrize(
    ("rank", "expected"), [(0, "198.18.0.2"), (253, "198.18.0.255"), (254, "198.18.1.0"), (9999, "198.18.39.17")]
)
def test_addresses_follow_the_ranks_behind_the_gateway(rank: int, expected: str) -> None:
    assert address(rank) == expected


def host_names(spec: JobSpec) -> list[str]:
    return list(hosts(spec, example_placement(spec)))


@pytest.mark.req("LA-30", "EL-01")
def test_replicas_are_named_by_rank_and_elastic_workers_by_their_number_without_the_launcher() -> None:
    spec = a_spec("train", nodes=2)
    assert hosts(spec, example_placement(spec)) == {"train-0": "198.18.0.2", "train-1": "198.18.0.3"}
    assert host_names(a_spec("train")) == []
    launched = a_spec("train", nodes=2, mode=Mode.HOROVOD, elastic=SIZE)
    assert [host_of(launched, rank) for rank in range(3)] == ["train-launcher", "train-worker-0", "train-worker-1"]


@pytest.mark.req("EL-01", "EL-05")
def test_a_thousand_later_workers_have_names_in_advance_whenever_a_container_starts() -> None:
    spec = a_spec("train", nodes=2, elastic=SIZE)
    assert host_names(spec) == [f"train-worker-{number}" for number in range(1 + SIZE.max_workers + 1000)]
    launched = a_spec("train", nodes=2, mode=Mode.HOROVOD, elastic=SIZE)
    assert host_names(launched)[:3] == ["train-launcher", "train-worker-0", "train-worker-1"]
    late = (Allocation(11, NodeName("n1"), 1, 1024),)
    assert list(hosts(spec, late)) == [f"train-worker-{number}" for number in range(11 + SIZE.max_workers + 1000)]
    last = (Allocation(65_000, NodeName("n1"), 1, 1024),)
    assert list(hosts(spec, last).values())[-1] == "198.18.255.254"
