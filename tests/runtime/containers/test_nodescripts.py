"""The cluster's prologs and epilogs around real containers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import KeepContainer, RemoveContainer, SignalKind, SignalReplica
from cockpit.launch.nodescripts import ScriptFacts
from cockpit.model.cluster import Cluster
from cockpit.model.ids import ReplicaId
from cockpit.model.spec import HoldCards
from tests.runtime.containers.house import House, until

pytestmark = [pytest.mark.real, pytest.mark.req("JT-24", "SC-15")]


def lines(house: House) -> list[str]:
    file = house.folder / "told"
    return file.read_text().split() if file.exists() else []


def says(house: House, words: str, then: str = "true") -> str:
    return f"#!/bin/bash\necho {words} >> {house.folder}/told\n{then}\n"


async def test_node_scripts_run_in_order_around_the_job_with_its_variables(house: House) -> None:
    house.rules = Cluster(
        prolog_scripts=(says(house, "first:$SLURM_JOB_ID:$SLURM_SCRIPT_CONTEXT"), says(house, "second")),
        epilog_scripts=(says(house, "last:${SLURM_JOB_ID}:$SLURM_SCRIPT_CONTEXT:${HOME-none}"),),
    )
    out = house.folder / "out"
    out.mkdir()
    out.chmod(0o777)
    effect = house.job(f"echo job >> {'/workspace/outputs'}/said", output=str(out))
    started = house.executor.start(effect)
    await started
    assert lines(house)[:2] == ["first:1:prolog_slurmd", "second"]
    assert (await house.ended(effect.replica)).ok
    assert lines(house)[2:] == ["last:1:epilog_slurmd:none"]
    await house.executor.remove(RemoveContainer(effect.replica))
    assert len(lines(house)) == 3
    assert house.seen.failed == []


async def test_after_a_failed_prolog_the_command_does_not_run_and_the_epilog_does(house: House) -> None:
    house.rules = Cluster(
        prolog_scripts=(says(house, "one"), says(house, "two", "echo no mount >&2; exit 3"), says(house, "three")),
        epilog_scripts=(says(house, "tidied"),),
    )
    effect = house.job("true")
    await house.executor.start(effect)
    assert house.seen.failed == ["prolog 2 ended with 3 on n1: no mount"]
    assert not (house.folder_of(effect.replica) / "shim.json").exists()
    await house.executor.remove(RemoveContainer(effect.replica))
    assert lines(house) == ["one", "two", "tidied"]
    assert house.seen.ended == []


async def test_a_failed_epilog_is_reported_for_the_node_and_the_next_one_runs(house: House) -> None:
    house.rules = Cluster(epilog_scripts=(says(house, "one", "exit 1"), says(house, "two")))
    status = await house.run(house.job("exit 5"))
    assert status.code == 5
    assert house.seen.failed == ["n1: epilog 1 ended with 1 on n1"]
    assert lines(house) == ["one", "two"]


async def test_a_script_that_cannot_be_run_has_failed_with_the_reason(house: House) -> None:
    house.rules = Cluster(prolog_scripts=(says(house, "one"),))
    effect = house.job("true")
    (house.folder_of(effect.replica) / "prolog").mkdir(parents=True)
    await house.executor.start(effect)
    assert house.seen.failed == ["prolog 1 could not be run on n1: Is a directory"]
    assert lines(house) == []


async def test_a_script_that_a_signal_ends_has_the_exit_code_of_a_shell(house: House) -> None:
    """And of its output the end of the last line is shown."""
    house.rules = Cluster(prolog_scripts=("yes ab | head -c 9000 | tr -d '\\n'; echo; echo; kill -TERM $$; sleep 60",))
    await house.executor.start(house.job("true"))
    assert house.seen.failed == [f"prolog 1 ended with 143 on n1: {'ab' * 100}"]


@pytest.mark.parametrize("force", [SignalKind.TERM, SignalKind.KILL])
async def test_the_epilog_runs_after_a_cancel_before_the_end_is_reported(house: House, force: SignalKind) -> None:
    house.rules = Cluster(epilog_scripts=(says(house, "tidied"),))
    effect = house.job("exec sleep 600")
    await house.executor.start(effect)
    await house.started(effect.replica)
    await house.executor.signal(SignalReplica(effect.replica, force))
    await house.ended(effect.replica)
    assert lines(house) == ["tidied"]


async def test_background_processes_of_a_node_script_end_with_it(house: House) -> None:
    house.rules = Cluster(prolog_scripts=(f"sleep 600 &\necho $! > {house.folder}/pid\n",))
    effect = house.job("true")
    await house.executor.start(effect)
    pid = (house.folder / "pid").read_text().strip()

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] in "ZX"
        except FileNotFoundError:
            return True

    await until(gone)
    await house.ended(effect.replica)


async def test_a_script_that_hangs_is_killed_and_has_failed(house: House) -> None:
    house.script_seconds = 0.2
    await house.remove_all()
    house.move_in()
    house.rules = Cluster(prolog_scripts=("sleep 600",))
    await house.executor.start(house.job("true"))
    assert house.seen.failed == ["prolog 1 needed too long and was killed on n1"]


async def test_a_restarted_engine_runs_pending_epilogs_and_no_prolog_twice(house: House) -> None:
    house.rules = Cluster(prolog_scripts=(says(house, "before"),), epilog_scripts=(says(house, "after"),))
    effect = house.job(f"while ! test -e {'/workspace/outputs'}/go; do sleep 0.02; done")
    await house.executor.start(effect)
    await house.started(effect.replica)
    house.executor.close()
    (Path(effect.spec.output) / "go").touch()
    await until((house.folder_of(effect.replica) / "exit.json").exists)
    house.move_in()
    await house.executor.adopt([effect], [])
    assert (await house.ended(effect.replica)).ok
    assert lines(house) == ["before", "after"]


async def test_a_container_removed_while_running_gets_its_epilog_after_its_end(house: House) -> None:
    """Another replica's prolog has failed."""
    house.rules = Cluster(epilog_scripts=(says(house, "$(grep -lsa 'sleep.5432[1]' /proc/[0-9]*/cmdline | wc -l)"),))
    effect = house.job("exec sleep 54321")
    await house.executor.start(effect)
    await house.started(effect.replica)
    await house.executor.remove(RemoveContainer(effect.replica))
    assert lines(house) == ["0"]


async def test_a_new_engine_does_not_wait_for_a_prolog(house: House) -> None:
    house.rules = Cluster(prolog_scripts=(f"while ! test -e {house.folder}/go; do sleep 0.02; done",))
    effect = house.job("true")
    await house.executor.adopt([effect], [])
    assert house.seen.started == []
    (house.folder / "go").touch()
    assert (await house.ended(effect.replica)).ok


async def test_the_epilog_of_a_gang_runs_after_its_last_replica_has_ended(house: House) -> None:
    house.rules = Cluster(epilog_scripts=(says(house, "$SLURMD_NODENAME"),))
    house.facts_for = lambda effect: ScriptFacts(  # type: ignore[method-assign]  # of a gang of two
        f"n{effect.replica.rank}", 2, {"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": f"n{effect.replica.rank}"}
    )
    house.executor.close()
    house.move_in()
    first, other = house.job("true"), house.job("exec sleep 600")
    second = replace(other, replica=ReplicaId(first.replica.job, 1, 1), allocation=replace(other.allocation, rank=1))
    await asyncio.gather(house.executor.start(first), house.executor.start(second))
    assert (await house.ended(first.replica)).ok
    assert lines(house) == []
    await house.executor.signal(SignalReplica(second.replica, SignalKind.KILL))
    await house.ended(second.replica)
    assert lines(house) == ["n0", "n1"]
    for each in (first, second):
        await house.executor.keep(KeepContainer(each.replica, HoldCards.FREE))
    assert lines(house) == ["n0", "n1"]


async def test_the_output_of_a_node_script_is_bounded(house: House) -> None:
    house.rules = Cluster(prolog_scripts=("seq 1 5000000; exit 1",))
    effect = house.job("true")
    await house.executor.start(effect)
    assert house.seen.failed == ["prolog 1 ended with 1 on n1: 5000000"]
    log = house.state / "logs" / str(effect.replica.job) / "1.0.scripts"
    assert log.stat().st_size > 30 << 20
    assert log.stat().st_blocks * 512 < (1 << 20) + (1 << 18)
