"""The commands that act: what a person typed stands in one word each, and in a script it is quoted."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping import accounting, acts
from cockpit.backends.slurm.mapping.acts import NotPossible
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.script import submission
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Failed, Printed, check_success
from cockpit.backends.slurm.wire.ssh import remote_line
from cockpit.errors import NotRun
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import read_changes, spec_as_yaml
from cockpit.model import accountchange as change
from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.ids import JobId, Millis, task_id
from cockpit.model.spec import Array, DebugHold, Dependency, DependencyKind, NodeSpec, PriorityWord, Volume
from cockpit.protocol import messages
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.conftest import VERSIONS
from tests.backends.slurm.paper_cluster import Changeable
from tests.backends.slurm.test_values import a_record
from tests.builders import a_spec
from tests.hostile import HOSTILE

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)


@pytest.mark.req("SL-20", "SL-21")
@pytest.mark.parametrize(
    ("command", "line"),
    [
        (acts.of_job("hold", messages.JobArgs(7)), "scontrol hold 7"),
        (acts.of_job("suspend", messages.JobArgs(task_id(46, 3), 3)), "scontrol suspend 46_3"),
        (acts.of_job("release", messages.JobArgs(46, 3)), "scontrol release 46_3"),
        (acts.cancel(messages.CancelArgs(7)), "scancel 7"),
        (acts.cancel(messages.CancelArgs(7, 0)), "scancel --full --signal=KILL 7"),
        (acts.end_reservation(messages.NameArgs("maint_7")), "scontrol delete ReservationName=maint_7"),
        (acts.end_hold(7), "scancel --batch --signal=USR1 7"),
        (acts.set_priority(messages.SetPriorityArgs(7, 90)), "scontrol update JobId=7 Priority=90"),
        (acts.set_priority(messages.SetPriorityArgs(7, SiteFactor(-5))), "scontrol update JobId=7 SiteFactor=-5"),
        (acts.set_priority(messages.SetPriorityArgs(7, PriorityWord.URGENT)), "scontrol update JobId=7 QOS=urgent"),
        (acts.set_time_limit(JobId(7), None, WantedLimit(5400)), "scontrol update JobId=7 TimeLimit=01:30:00"),
        (acts.set_time_limit(JobId(7), 2, WantedLimit(-90, beside=True)), "scontrol update JobId=7_2 TimeLimit=-2"),
        (
            acts.drain_node(messages.DrainArgs("n1", "bad disk; reboot")),
            "scontrol update NodeName=n1 State=DRAIN 'Reason=bad disk; reboot'",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_every_action_is_one_command(command: acts.Command, line: str) -> None:
    assert shlex.join(command.argv) == line


@pytest.mark.req("SL-20")
@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (
            change.AddUser("ann", "nlp", change=change.AssociationChange(shares=3, qos=("+high", "-scav"))),
            "add user ann Accounts=nlp Fairshare=3 QOS+=high QOS-=scav",
        ),
        (
            change.ModifyQos("high", change.QosChange(priority=5, max_tres_per_user={"gres/gpu": 8.0})),
            "modify qos where name=high set MaxTRESPerUser=gres/gpu=8 Priority=5",
        ),
        (
            change.ModifyUser("ann", change.AssociationChange(limits=change.LimitsChange(max_jobs=-1)), "nlp", "gpu"),
            "modify user where name=ann account=nlp Partition=gpu set MaxJobs=-1",
        ),
        (change.RemoveAccount("old"), "delete account where name=old"),
        (change.AddCoordinators("nlp", ("ann", "bob")), "add coordinator Accounts=nlp Names=ann,bob"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_accounts_are_changed_by_sacctmgr(wanted: change.AccountChange, line: str) -> None:
    assert " ".join(acts.command(wanted)) == f"sacctmgr --immediate --quiet {line}"


@pytest.mark.req("SL-20")
def test_a_job_file_becomes_a_script() -> None:
    spec = a_spec(
        "train",
        nodes=2,
        specs=(NodeSpec(cpus=8, memory_mib=4096, card_milli=4000, card_models=("a100",)),),
        partitions=("gpu", "batch"),
        dependencies=(Dependency(DependencyKind.AFTER_OK, JobId(46), 3), Dependency(DependencyKind.SINGLETON)),
        array=Array((0, 1, 2, 7), 2),
        nice=5,
        begin_at=Millis(1_795_248_117_000),
        time_limit_seconds=5400,
        terminal=True,
        debug_hold=DebugHold(window_seconds=1800),
    )
    made = submission(spec)
    script, options = made.script.splitlines(), set(made.argv[2:])
    assert {
        "--nodes=2",
        "--gres=gpu:a100:4",
        "--mem=4096M",
        "--time=02:00:00",
        "--partition=gpu,batch",
        "--dependency=afterok:46_3,singleton",
        "--array=0-2,7%2",
        "--nice=5",
        "--begin=uts1795248117",
    } <= options
    assert any(line.strip().startswith("srun ") for line in script)
    assert script[-1] == 'exit "$rc"'


ARGUABLE = {what: text for what, text in HOSTILE.items() if what != "nul" and "surrogate" not in what}
"""What a program can be given, and UTF-8 can say."""


def test_fields_without_a_slurm_option_are_refused_by_name() -> None:
    with pytest.raises(NotPossible, match=r"volumes: .*\nspecs"):
        acts.submit(a_spec(volumes=(Volume(name="v", path="/v"),), specs=(NodeSpec(card_milli=500),)))


@pytest.mark.parametrize("hostile", ARGUABLE.values(), ids=ARGUABLE)
@pytest.mark.req("TR-05", "TR-06")
def test_no_text_breaks_out_of_the_script(hostile: str) -> None:
    spec = replace(a_spec("job"), command="true", env={"WORD": hostile})
    lines = submission(spec).script.split("export COCKPIT", 1)[0]
    told = subprocess.run(["bash", "-c", f'{lines}\nprintf %s "$WORD"'], capture_output=True, check=True).stdout
    assert told == hostile.encode()


STUBS = {
    "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"',
    "scontrol": "echo n1",
    "getent": "true",
    "record": 'printf \'%s\\0\' "$@" "$WORD" >"$RECORDED"',
}


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("hostile", ARGUABLE.values(), ids=ARGUABLE)
@pytest.mark.req("TR-05", "TR-06")
def test_every_text_of_a_job_arrives_unchanged(hostile: str, hold: bool, nodes: int, tmp_path: Path) -> None:
    """The whole script, with and without what keeps a failed job, run by the shell that it names."""
    for name, body in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    spec = replace(a_spec("job", nodes=nodes, terminal=hold), output=f"/nowhere/{hostile}")
    attack = f"{hostile}'; touch INJECTED; $(touch INJECTED)\ntouch INJECTED"
    spec = replace(spec, command=f"record {shlex.quote(hostile)}", env={"WORD": attack})
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RECORDED": str(tmp_path / "recorded"), "SLURM_JOB_ID": "7"}
    env |= {"SLURM_JOB_NUM_NODES": str(nodes), "SLURM_JOB_NODELIST": "n1", "SLURM_CPUS_PER_TASK": "1"}
    env |= {"SLURM_NODEID": "0", "SLURMD_NODENAME": "n1"}
    script = submission(spec).script
    done = subprocess.run(["sh", "-s"], input=script.encode(), cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (tmp_path / "recorded").exists(), done.stderr
    assert (tmp_path / "recorded").read_bytes().decode().split("\0") == [hostile, attack, ""]
    assert not (tmp_path / "INJECTED").exists()


@pytest.mark.req("TR-06")
def test_a_folder_name_is_not_expanded_as_a_pattern() -> None:
    spec = replace(a_spec("job"), output="/data/50%j")
    assert "--output=/data/50%%j/slurm-%j.out" in submission(spec).argv
    with pytest.raises(NotPossible, match=r"output: .*backslash"):
        acts.submit(replace(spec, output="/data/a\\b"))


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
@pytest.mark.req("TR-06")
def test_a_remote_shell_receives_the_arguments_unchanged(words: list[str]) -> None:
    line = remote_line(["printf", "%s\\0", *words])
    told = subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout
    assert told.split(b"\0")[:-1] == [each.encode() for each in words]


@pytest.mark.req("TR-04", "TR-06")
@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "tcsh"])
def test_every_login_shell_marks_a_complete_answer_and_keeps_the_exit_code(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")

    def run(*argv: str) -> tuple[int, str]:
        words = [shell, "-c", remote_line(argv, utc=True, end="~end~")]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout

    assert run("printf", "%s|", "a b; $HOME `id` ~ 'q'") == (0, "a b; $HOME `id` ~ 'q'|~end~\n")
    assert run("sh", "-c", "echo half; exit 7") == (7, "half\n")


@pytest.mark.req("SL-02", "SL-20")
def test_whole_nodes_are_changed_until_26_05_fixes_them() -> None:
    job = Listed(a_record(), None).job
    (command,) = acts.edit(job, replace(job.spec, exclusive=True), (24, 11, 5))
    assert command.argv[-1] == "OverSubscribe=no"
    with pytest.raises(NotPossible, match="Slurm changes no exclusive of a job that waits"):
        acts.edit(job, replace(job.spec, exclusive=True), (26, 5, 5))


@pytest.mark.req("SL-20")
def test_an_edit_of_what_slurm_never_changes_names_it() -> None:
    job = Listed(a_record(State="PENDING", Command="/home/ann/run.sh")).job
    own = replace(job.spec, env={"A": "1"})
    job = replace(job, spec=own)
    edits = {
        "command": replace(own, command="other"),
        "env": replace(own, env={"A": "2"}),
        "array": replace(own, array=Array((0, 1))),
    }
    for name, wanted in edits.items():
        with pytest.raises(NotPossible, match=f"Slurm changes no {name} of a job that waits"):
            acts.edit(job, wanted, (22, 5, 8))
    with pytest.raises(NotPossible, match="The edit changes nothing"):
        acts.edit(job, own, (22, 5, 8))
    unsaid = replace(job, spec=replace(own, env={}))
    with pytest.raises(NotPossible, match="Slurm changes no env of a job that waits"):
        acts.edit(unsaid, own, (22, 5, 8))
    with pytest.raises(NotPossible, match="Slurm changes no env of a job that waits"):
        acts.edit(unsaid, replace(own, nice=7), (22, 5, 8))
    (command,) = acts.edit(unsaid, replace(unsaid.spec, nice=7), (22, 5, 8))
    assert command.argv[-1] == "Nice=7"


@pytest.mark.req("SL-20")
@pytest.mark.parametrize(
    "fields",
    [
        {"output": "/data/other"},
        {"image": "library/python:3.11"},
        {"terminal": True},
        {"pool": "night"},
        {"node_selector": {"disk": "ssd"}},
        {"labels": {"team": "vision"}},
        {"hold": True},
    ],
)
def test_an_edit_drops_no_field_without_saying_so(fields: dict[str, Any]) -> None:
    job = Listed(a_record(State="PENDING")).job
    with pytest.raises(NotPossible, match=next(iter(fields))):
        acts.edit(job, replace(job.spec, nice=7, **fields), (22, 5, 8))


@pytest.mark.req("SL-20")
def test_an_edit_of_the_priority_changes_the_qos() -> None:
    job = Listed(a_record(State="PENDING", QOS="normal")).job
    (command,) = acts.edit(job, replace(job.spec, priority=PriorityWord.URGENT), (22, 5, 8))
    assert command.argv[-1] == "QOS=urgent"


@pytest.mark.req("SL-20")
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_edit_by_a_jobs_own_file_changes_only_what_differs(version: str) -> None:
    commands = Changeable(version)
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
    root, seen = SlurmBackend("recorded", commands, reading, clock, "root"), []

    async def look(previews: Sequence[CommandPreview]) -> bool:
        seen.append([word for each in previews for word in each.argv[3:]])
        return False

    root.announce(look)
    waiting = [row for row in await root.jobs() if row.queued]
    for row in waiting:
        spec = (await root.job(row.id)).job.spec
        read = read_changes(spec, lambda *given: read_jobs(*given, defaults=Defaults()))
        (changed,) = read("the job file", spec_as_yaml(replace(spec, nice=spec.nice + 1)), "/")
        with pytest.raises(NotRun):
            await root.edit(row.id, changed)
        assert seen.pop() == [f"Nice={spec.nice + 1}"], row
    assert len(waiting) > 10


@pytest.mark.req("SL-20")
def test_an_edit_of_the_cards_says_how_many_each_node_gets() -> None:
    job = Listed(a_record(State="PENDING")).job
    (each,) = job.spec.specs
    two = replace(job.spec, specs=(replace(each, card_milli=2000, card_models=("a100",)),))
    (command,) = acts.edit(job, two, (22, 5, 8))
    assert command.argv[-1] == "TresPerNode=gres/gpu:a100:2"
    (command,) = acts.edit(replace(job, spec=two), job.spec, (22, 5, 8))
    assert command.argv[-1] == "TresPerNode="


def test_a_job_on_no_node_is_refused_because_sbatch_would_take_it() -> None:
    with pytest.raises(NotPossible, match=r"^nodes: 0 "):
        acts.submit(replace(a_spec(), nodes=0))


@pytest.mark.req("SL-20")
def test_a_refusal_on_standard_output_is_repeated() -> None:
    """sacctmgr 22.05 says there that it did nothing."""
    argv = ("sacctmgr", "add", "account", "optics")
    with pytest.raises(Failed, match=r"^Nothing new added\.$"):
        check_success(Printed(" Nothing new added.\n", "", 1), argv)


@pytest.mark.req("SL-22")
def test_ended_jobs_are_asked_for_by_state_so_that_those_never_eligible_are_listed() -> None:
    """Without states sacct leaves out jobs that ended while they were held."""
    assert "--state" in accounting.command("now-1days")
    assert "--state" not in accounting.command("now-1days", during=True)
