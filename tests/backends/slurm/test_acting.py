"""Which commands a change runs, in which order, and what becomes of Slurm's refusals."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview
from cockpit.backends.slurm.acting import Acts
from cockpit.backends.slurm.logs import output_path
from cockpit.backends.slurm.mapping.acts import Command
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.backends.slurm.wire.recorded import FILES
from cockpit.errors import NotRun, RequestRefused
from cockpit.model import accountchange as change
from cockpit.model.directives import MoveToTop, SendSignal, SubmitScript, UpdateJob
from cockpit.model.ids import Millis, rest_id
from cockpit.model.image import HOST
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Hooks, JobSpec
from cockpit.protocol import messages
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.paper_cluster import Changeable
from tests.builders import a_spec

pytestmark = pytest.mark.req("SL-20")
FINE = Printed("", "", 0)


def refusal(program: str, words: str) -> Printed:
    return Printed("", f"{program}: error: {words}\n", 1)


class Cluster(Changeable):
    """The recorded cluster, which notes the commands that change it and answers them in turn."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.ran: list[tuple[str, ...]] = []
        self.answers: dict[str, list[Printed]] = {}
        """Answers by program; the last one again and again."""
        self.probed = 0
        self.comment = ""
        """What stands for the word COMMENT in what the commands print."""
        self.texts: dict[str, tuple[str, str]] = {}
        """Words of recorded files, and what replaces them."""

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if not reading:
            self.ran.append(tuple(argv))
            self.sent = stdin.decode()
        elif argv[0] == "sh":
            self.probed += 1
        elif argv[0] not in (*FILES, *self.answers):
            return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)
        answers = self.answers.get(argv[0], [FINE])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _printed(self, argv: Sequence[str]) -> str:
        return super()._printed(argv).replace("COMMENT", self.comment)

    def _text(self, name: str) -> str:
        return super()._text(name).replace(*self.texts.get(name, ("", "")))

    def lines(self) -> list[str]:
        return [shlex.join(each) for each in self.ran]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def acts_of(cluster: Cluster, user: str = "root") -> Acts:
    clock = VirtualClock(cluster.recorded_at)
    return Acts(cluster, Reading(Answers(cluster, clock.now, Random(1)), clock.now), user)


def submit(*specs: JobSpec) -> messages.SubmitArgs:
    return messages.SubmitArgs(specs)


async def refused(acts: Acts, op: str, args: object) -> tuple[RefusalKind, str]:
    with pytest.raises(RequestRefused) as caught:
        await acts.act(op, args)
    return caught.value.refusal.kind, caught.value.refusal.message


async def test_a_missing_output_folder_is_made_once_before_the_jobs_are_submitted(cluster: Cluster) -> None:
    cluster.answers = {
        "stat": [refusal("stat", "No such file")],
        "sbatch": [Printed("101;lab\n", "", 0), Printed("102", "", 0)],
    }
    done = await acts_of(cluster).act("submit", submit(a_spec("a"), a_spec("b")))
    assert done == messages.Submitted((101, 102))
    assert cluster.lines()[0] == "mkdir -p -- /data/out"
    assert [each[0] for each in cluster.ran] == ["mkdir", "sbatch", "sbatch"]
    assert cluster.sent.startswith("#!")
    cluster.ran.clear()
    cluster.answers["stat"] = [Printed("directory", "", 0)]
    await acts_of(cluster).act("submit", submit(a_spec()))
    assert [each[0] for each in cluster.ran] == ["sbatch"]


async def test_a_connection_that_runs_no_mkdir_submits_all_the_same(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def without_mkdir(_self: Cluster, argv: Sequence[str], _stdin: str) -> tuple[str, ...]:
        if argv[0] == "mkdir":
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "no mkdir"))
        return tuple(argv)

    monkeypatch.setattr(Cluster, "shown", without_mkdir)
    cluster.answers = {"stat": [refusal("stat", "No such file")], "sbatch": [Printed("101", "", 0)]}
    assert await acts_of(cluster).act("submit", submit(a_spec())) == messages.Submitted((101,))
    assert [each[0] for each in cluster.ran] == ["sbatch"]


async def test_jobs_are_submitted_all_or_none(cluster: Cluster) -> None:
    no = refusal("sbatch", "Batch job submission failed: Invalid account or account/partition combination specified")
    cluster.answers = {"sbatch": [Printed("101;lab", "", 0), Printed("102", "", 0), no]}
    kind, said = await refused(acts_of(cluster), "submit", submit(a_spec(), a_spec(), a_spec()))
    assert (kind, said) == (
        RefusalKind.INVALID,
        "Slurm refused: Batch job submission failed: Invalid account or account/partition combination specified",
    )
    assert cluster.lines()[-2:] == ["scancel 101", "scancel 102"]
    cluster.ran.clear()
    cluster.answers = {"sbatch": [no]}
    await refused(acts_of(cluster), "submit", submit(a_spec(), a_spec()))
    assert [each[0] for each in cluster.ran] == ["sbatch"]


async def test_fields_that_slurm_lacks_are_named_with_their_job(cluster: Cluster) -> None:
    hooked = a_spec(hooks=Hooks(before_start="true"))
    kind, said = await refused(acts_of(cluster), "submit", submit(a_spec(), hooked, a_spec(), hooked))
    assert kind is RefusalKind.INVALID
    assert [line.partition(":")[0] for line in said.splitlines()] == ["jobs[1].hooks", "jobs[3].hooks"]
    assert cluster.ran == []


async def test_the_container_runtime_is_looked_for_once_and_only_for_images(cluster: Cluster) -> None:
    acts = acts_of(cluster)
    assert await acts.runtime([a_spec(image=HOST)]) is None
    assert cluster.probed == 0
    cluster.answers = {"sh": [Printed("pyxis\napptainer\n", "", 0)]}
    for _ in range(2):
        assert await acts.runtime([a_spec(image=HOST), a_spec(image="library/python:3.11")]) == "pyxis"
    assert cluster.probed == 1


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("slurm_suspend error: Access/permission denied", RefusalKind.DENIED),
        ("slurm_suspend error: Invalid job id specified", RefusalKind.NOT_FOUND),
        ("slurm_suspend error: Job is no longer pending execution", RefusalKind.CONFLICT),
        ("slurm_suspend error: Job is already suspended", RefusalKind.CONFLICT),
        ("slurm_suspend error: Requested operation is presently disabled", RefusalKind.INVALID),
    ],
)
async def test_a_refusal_of_slurm_has_its_kind(cluster: Cluster, words: str, kind: RefusalKind) -> None:
    cluster.answers = {"scontrol": [Printed("", f"{words}\n", 1)]}
    acts = acts_of(cluster)
    with pytest.raises(RequestRefused) as caught:
        await acts._carry_out([Command(("scontrol", "suspend", "8"))])
    assert caught.value.refusal.kind is kind
    assert caught.value.refusal.message == f"Slurm refused: {words.partition('error: ')[2]}"


async def test_a_refused_change_of_accounts_names_its_command(cluster: Cluster) -> None:
    acts = acts_of(cluster)
    await acts.is_admin()
    cluster.answers = {"sacctmgr": [Printed(" Nothing deleted\n", "", 1)]}
    kind, said = await refused(acts, "change_accounts", messages.ChangeAccountsArgs(change.RemoveAccount("old")))
    assert kind is RefusalKind.NOT_FOUND
    line = "sacctmgr --immediate --quiet delete account where name=old"
    assert said == f"Slurm refused: Nothing deleted The command was `{line}`."


@pytest.mark.parametrize("dot", ["", "."])
async def test_a_refused_qos_is_followed_by_those_that_exist(cluster: Cluster, dot: str) -> None:
    cluster.answers = {"sbatch": [refusal("sbatch", f"Batch job submission failed: Invalid qos specification{dot}")]}
    _, said = await refused(acts_of(cluster, "alice"), "submit", submit(a_spec(qos="fast")))
    assert said.startswith(
        "Slurm refused: Batch job submission failed: Invalid qos specification. This cluster has no QOS fast. "
    )


async def test_a_refused_qos_is_no_other_error_when_accounting_is_away(cluster: Cluster) -> None:
    acts = acts_of(cluster, "alice")
    words = "Batch job submission failed: Invalid qos specification"
    away = refusal("sacctmgr", "Problem talking to the database: Connection refused")
    cluster.answers = {"sbatch": [refusal("sbatch", words)], "sacctmgr": [away], "scontrol": [away], "sshare": [away]}
    assert await refused(acts, "submit", submit(a_spec(qos="fast"))) == (RefusalKind.INVALID, f"Slurm refused: {words}")


@pytest.mark.parametrize(
    ("user", "owner", "level", "admin"),
    [
        ("root", "slurm", "None", True),
        ("slurm", "slurm", "None", True),
        ("alice", "slurm", "None", False),
        ("alice", "slurm", "Operator", True),
        ("alice", "slurm", "Administrator", True),
        ("alice", "alice", "None", True),
        ("alice", "slurm", "", False),
    ],
)
async def test_administrators_are_root_slurmuser_and_those_of_accounting(
    cluster: Cluster, user: str, owner: str, level: str, admin: bool
) -> None:
    cluster.texts = {"scontrol-config.txt": ("= root(0)", f"= {owner}(64030)")}
    cluster.answers = {"sacctmgr": [Printed(f"{level}\n", "", 0)]}
    assert await acts_of(cluster, user).is_admin() is admin


async def test_who_is_an_administrator_is_asked_again_after_a_change_of_accounts(cluster: Cluster) -> None:
    acts = acts_of(cluster, "alice")
    cluster.answers = {"sacctmgr": [Printed("Administrator\n", "", 0)]}
    assert await acts.is_admin()
    cluster.answers = {"sacctmgr": [Printed("None\n", "", 0)]}
    assert await acts.is_admin()
    await acts._carry_out([Command(("scontrol", "suspend", "8"))])
    assert await acts.is_admin()
    await acts._carry_out([Command(("sacctmgr", "modify", "user"))])
    assert not await acts.is_admin()


@pytest.mark.parametrize(
    ("op", "args", "line"),
    [
        ("hold", messages.JobArgs(46), "scontrol hold '46_[4-9%2]'"),
        ("hold", messages.JobArgs(rest_id(46)), "scontrol hold '46_[4-9%2]'"),
        ("hold", messages.JobArgs(46, task=9), "scontrol hold 46_9"),
        ("requeue", messages.JobArgs(46), "scontrol requeue 46"),
        ("cancel", messages.CancelArgs(46), "scancel 46"),
        ("cancel", messages.CancelArgs(46, task=9), "scancel 46_9"),
    ],
)
async def test_a_hold_of_an_array_names_only_the_tasks_that_wait(
    cluster: Cluster, op: str, args: object, line: str
) -> None:
    made = await acts_of(cluster).commands(op, args)
    assert [shlex.join(each.argv).replace("%2", "") for each in made] == [line.replace("%2", "")]


async def test_a_change_is_refused_if_slurm_would_refuse_it_for_every_task_of_an_array(cluster: Cluster) -> None:
    assert await refused(acts_of(cluster), "release", messages.JobArgs(46)) == (
        RefusalKind.CONFLICT,
        "Job 46_[…] is not held.",
    )
    kind, said = await refused(acts_of(cluster, "bob"), "cancel", messages.CancelArgs(46))
    assert (kind, said) == (RefusalKind.DENIED, "Job 46_[…] is carol's, not yours.")
    assert await refused(acts_of(cluster), "cancel", messages.CancelArgs(4600)) == (
        RefusalKind.NOT_FOUND,
        "There is no job 4600, or it has ended.",
    )
    assert await refused(acts_of(cluster), "cancel", messages.CancelArgs(59)) == (
        RefusalKind.CONFLICT,
        "Job 59 has ended: it is error.",
    )
    assert cluster.ran == []


async def test_tasks_that_no_longer_wait_are_refused(cluster: Cluster) -> None:
    with pytest.raises(RequestRefused, match=r"^No task of array 61 waits any more\.$"):
        await acts_of(cluster)._name_pending_tasks(Command(("scontrol", "hold", "61")), rest_id(61))


async def test_a_hold_is_extended_from_its_present_end(cluster: Cluster) -> None:
    until = cluster.recorded_at // 1000 + 600
    record = "JobId=8 JobName=urgent\n"
    cluster.texts = {"scontrol-job-d.txt": (record, f"{record}   Comment=COMMENT\n")}
    cluster.comment = f"cockpit:held rc=3 until={until}"
    acts = acts_of(cluster)
    done = await acts.act("extend_hold", messages.ExtendArgs(8, 120))
    assert done == messages.HeldUntil(1000 * (until + 120))
    assert f"Comment=cockpit:held rc=3 until={until + 120}" in cluster.lines()[-2]
    assert cluster.lines()[-1] == "scancel --batch --signal=USR2 8"
    assert await acts.act("end_hold", messages.JobArgs(8)) is None
    assert cluster.lines()[-1] == "scancel --batch --signal=USR1 8"


async def test_owners_send_signals_and_change_fields_of_their_own_jobs_alone(cluster: Cluster) -> None:
    alice = acts_of(cluster, "alice")
    assert await alice.direct(SendSignal(8, "USR1")) is None
    assert await alice.direct(UpdateJob(9, {"Comment": "mine"})) is None
    assert cluster.lines() == ["scancel --full --signal=USR1 8", "scontrol update JobId=9 Comment=mine"]
    for wanted, said in (
        (SendSignal(2, "USR1"), "Job 2 is bob's, not yours"),
        (UpdateJob(9, {"Priority": "9"}), "Priority is for administrators"),
        (UpdateJob(46, {"Comment": "x"}, 9), "Job 46_9 is carol's, not yours"),
    ):
        with pytest.raises(RequestRefused, match=said):
            await alice.direct(wanted)
    assert len(cluster.ran) == 2
    await acts_of(cluster).direct(UpdateJob(9, {"Priority": "9"}))
    assert cluster.lines()[-1] == "scontrol update JobId=9 Priority=9"


async def test_what_slurm_does_not_know_is_refused_before_it_runs(cluster: Cluster) -> None:
    for wanted, said in ((SendSignal(8, "no signal"), "is no signal"), (UpdateJob(9, {"JobId": "1"}), "is no field")):
        with pytest.raises(RequestRefused, match=said) as caught:
            await acts_of(cluster).direct(wanted)
        assert caught.value.refusal.kind is RefusalKind.INVALID
    assert cluster.ran == []


async def test_users_move_jobs_to_the_top_where_the_cluster_lets_them(cluster: Cluster) -> None:
    cluster.texts = {"scontrol-config.txt": ("bf_interval=10", "enable_user_top,bf_interval=10")}
    await acts_of(cluster, "alice").direct(MoveToTop(("9", "18")))
    assert cluster.lines() == ["scontrol top 9,18"]


async def test_a_submitted_script_has_its_id(cluster: Cluster) -> None:
    cluster.answers = {"sbatch": [Printed("77;lab\n", "", 0)]}
    assert await acts_of(cluster, "alice").direct(SubmitScript("#!/bin/sh\ntrue\n")) == 77
    assert cluster.sent == "#!/bin/sh\ntrue\n"


async def test_commands_run_only_after_the_user_has_seen_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts, seen = acts_of(cluster), []

    async def look(previews: Sequence[CommandPreview]) -> bool:
        seen.append(list(previews))
        return False

    acts.look = look
    with pytest.raises(NotRun):
        await acts.direct(SubmitScript("#!/bin/sh\n", ("--hold",)))

    async def as_request(_self: Cluster, _argv: Sequence[str], _stdin: str) -> tuple[str, ...]:
        return ("curl", "--json", "{}")

    monkeypatch.setattr(Cluster, "shown", as_request)
    with pytest.raises(NotRun):
        await acts.direct(SubmitScript("#!/bin/sh\n"))
    assert seen == [
        [CommandPreview(("sbatch", "--parsable", "--hold"), "#!/bin/sh\n")],
        [CommandPreview(("curl", "--json", "{}"), "")],
    ]
    assert cluster.ran == []


async def test_an_edit_that_repeats_the_shown_output_changes_nothing_of_it(cluster: Cluster) -> None:
    acts = acts_of(cluster)
    job = await acts._job(9, None)
    shown = await output_path(acts._reading, await look_up(acts._reading, job.id))
    assert shown.startswith("/")
    for output in (shown, posixpath.dirname(shown)):
        (command,) = await acts.commands("edit", messages.EditArgs(9, replace(job.spec, nice=7, output=output)))
        assert command.argv[-1] == "Nice=7"
    kind, said = await refused(acts, "edit", messages.EditArgs(9, replace(job.spec, nice=7, output="/other")))
    assert kind is RefusalKind.INVALID
    assert "output" in said


async def test_a_change_is_seen_at_once(cluster: Cluster) -> None:
    acts = acts_of(cluster)
    await acts._reading.jobs()
    listed = acts._reading.listed_at
    clock_moved = Millis((listed or 0) + 1)
    vars(acts._reading._answers)["_now"] = lambda: clock_moved
    await acts._reading.jobs()
    assert acts._reading.listed_at == listed
    await acts.direct(SendSignal(8, "USR1"))
    vars(acts._reading._answers)["_now"] = lambda: Millis(clock_moved + 1)
    await acts._reading.jobs()
    assert acts._reading.listed_at == clock_moved + 1
