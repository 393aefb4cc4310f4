"""What `srun` makes of its options."""

from __future__ import annotations

import pytest

from cockpit.runtime.containers.srunscript import Unusable, commands, parsed, shares

ENV = {"SLURM_JOB_NODELIST": "a,b,c", "COCKPIT_REPLICA": "0", "LR": "0.1"}


@pytest.mark.req("JT-08", "LA-70")
@pytest.mark.parametrize(
    ("line", "env", "expected"),
    [
        ("hostname", {}, [1, 1, 1]),
        ("-n 4 hostname", {}, [2, 1, 1]),
        ("-n2 hostname", {}, [1, 1]),
        ("-N 2 --ntasks-per-node=4 -l hostname", {}, [4, 4]),
        ("--ntasks 5 --nodes=2 --mpi=none hostname", {}, [3, 2]),
        ("hostname", {"SLURM_NTASKS": "6"}, [2, 2, 2]),
        ("hostname", {"SLURM_NTASKS_PER_NODE": "2"}, [2, 2, 2]),
        ("-n 1 hostname", {"SLURM_NTASKS_PER_NODE": "2"}, [1]),
    ],
)
def test_tasks_are_spread_over_the_nodes(line: str, env: dict[str, str], expected: list[int]) -> None:
    options, command = parsed(line.split())
    assert command == ["hostname"]
    assert shares(options, ENV | env) == expected


@pytest.mark.req("JT-08")
def test_a_task_has_the_variables_of_the_script_and_a_place_of_its_own() -> None:
    hosts, texts = zip(*commands(["echo", "a b"], [2, 1], ENV), strict=True)
    assert hosts == ("a", "a", "b")
    assert texts[1].endswith("SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_NTASKS=3 echo 'a b'")
    assert "LR=0.1" in texts[2]
    assert "COCKPIT_REPLICA" not in texts[2]


@pytest.mark.parametrize("line", ["--pty bash", "-n 0 x", "-n", "-N two x"])
def test_what_it_cannot_do_it_says(line: str) -> None:
    with pytest.raises(Unusable):
        shares(parsed(line.split())[0], ENV)
