"""The job's own scripts before its command and after it, in real containers."""

from __future__ import annotations

import pytest

from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.model.attempt import ExitStatus
from cockpit.model.spec import Hooks
from tests.runtime.containers.house import House, until

pytestmark = [pytest.mark.real, pytest.mark.req("JT-24")]


def hooks(before: str = "", after: str = "") -> Hooks:
    return Hooks(before_start=before, after_end=after)


async def test_hooks_run_around_the_command_in_the_same_environment(house: House) -> None:
    before = "echo before: $(id -u) $PWD; echo made > /tmp/made; sleep 60 & exit 0"
    around = hooks(before, 'echo "after: $(id -u) $PWD $COCKPIT_EXIT_CODE $(cat /tmp/made) ${LATE-unset}"')
    effect = house.job("export LATE=1; echo command: $(cat /tmp/made); exit 3", hooks=around)
    status = await house.run(effect)
    assert (status.code, status.hook) == (3, "")
    uid = effect.submitter.uid
    assert house.out(effect) == (f"before: {uid} /workspace\ncommand: made\nafter: {uid} /workspace 3 made unset\n")
    assert house.err(effect) == ""


async def test_after_a_failed_first_hook_the_command_does_not_run_and_the_last_hook_does(house: House) -> None:
    effect = house.job("echo command", hooks=hooks("echo no data >&2; exit 7", "echo tidied $COCKPIT_EXIT_CODE"))
    assert await house.run(effect) == ExitStatus(code=7, hook="before_start")
    assert house.out(effect) == "tidied 7\n"
    assert house.err(effect) == "no data\ncockpit: before_start ended with 7; the command is not run\n"


async def test_the_exit_code_of_the_last_hook_does_not_change_the_job(house: House) -> None:
    effect = house.job("true", hooks=hooks(after="exit 5"))
    assert (await house.run(effect)).ok
    assert house.err(effect) == "cockpit: after_end ended with 5\n"


async def test_the_last_hook_runs_also_when_the_job_is_terminated(house: House) -> None:
    effect = house.job("echo runs; sleep 600", hooks=hooks(after="echo after $COCKPIT_EXIT_CODE"))
    await house.executor.start(effect)
    await until(lambda: house.out(effect) == "runs\n")
    await house.executor.signal(SignalReplica(effect.replica, SignalKind.TERM))
    assert (await house.ended(effect.replica)).signal == 15
    assert house.out(effect) == "runs\nafter 143\n"


async def test_no_hook_runs_after_the_job_was_killed(house: House) -> None:
    effect = house.job("trap '' TERM; echo runs; sleep 600 & wait", hooks=hooks(after="echo after"))
    await house.executor.start(effect)
    await until(lambda: house.out(effect) == "runs\n")
    await house.executor.signal(SignalReplica(effect.replica, SignalKind.TERM))
    await house.executor.signal(SignalReplica(effect.replica, SignalKind.KILL))
    assert (await house.ended(effect.replica)).signal == 9
    assert house.out(effect) == "runs\n"


async def test_a_job_terminated_before_its_command_never_runs_it(house: House) -> None:
    effect = house.job("echo command", hooks=hooks("trap 'exit 0' TERM; echo before; sleep 600 & wait"))
    await house.executor.start(effect)
    await until(lambda: house.out(effect) == "before\n")
    await house.executor.signal(SignalReplica(effect.replica, SignalKind.TERM))
    assert await house.ended(effect.replica) == ExitStatus(signal=15, hook="before_start")
    assert house.out(effect) == "before\n"


async def test_the_last_hook_is_killed_after_the_grace_period(house: House) -> None:
    effect = house.job("true", hooks=hooks(after="echo after; sleep 600"), grace_seconds=1)
    assert (await house.run(effect)).ok
    assert house.out(effect) == "after\n"
    assert house.err(effect) == "cockpit: after_end was ended by SIGKILL\n"


async def test_a_missing_command_is_reported_as_without_hooks(house: House) -> None:
    effect = house.job("true", hooks=hooks("echo before"))
    missing = type(effect)(
        effect.replica,
        type(effect.spec)(name="job", command="/no/such", output=effect.spec.output, hooks=effect.spec.hooks),
        effect.submitter,
        effect.allocation,
    )
    assert (await house.run(missing)).code == 127
    assert house.out(missing) == "before\n"


async def test_an_engine_restarted_during_a_hook_receives_the_end_once(house: House) -> None:
    gate = house.folder / "out-own"
    effect = house.job(
        "exit 4", hooks=hooks(after="echo after; while [ ! -e /workspace/outputs/gate ]; do sleep 0.02; done")
    )
    await house.executor.start(effect)
    await until(lambda: house.out(effect) == "after\n")
    house.executor.close()
    house.move_in()
    await house.executor.adopt([effect], [])
    assert house.seen.ended == []
    (gate / "gate").touch()
    assert (await house.ended(effect.replica)).code == 4
