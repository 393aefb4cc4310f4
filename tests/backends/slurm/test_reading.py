"""Single answers of Slurm: what is made of them, and what stays when a command fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import pytest

from cockpit.backends.slurm.mapping import priorities
from cockpit.backends.slurm.mapping.placements import NOTHING_KNOWN
from cockpit.backends.slurm.mapping.spreads import NO_SPREADS
from cockpit.backends.slurm.past import ended_jobs, jobs_between, look_up, look_up_waiting
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.calls import Failed, Garbled, Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import RequestRefused
from cockpit.model.cluster import PriorityFlag
from cockpit.model.ids import JobId, Millis, NodeName, rest_id, task_id
from cockpit.runtime.clock import VirtualClock

pytestmark = pytest.mark.req("SL-10", "TR-04")
SECOND = 1000


def says(text: str) -> Printed:
    return Printed(text, "", 0, verified=True)


def fails(words: str) -> Printed:
    return Printed("", f"error: {words}\n", 1)


AWAY = fails("Problem talking to the database: Connection refused")


class Cluster(RecordedCommands):
    """The recorded cluster, some of whose commands answer otherwise."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.answers: dict[str, Printed] = {}
        """By words with which the command line begins, without its options."""
        self.edits: dict[str, tuple[str, str]] = {}
        """Words in the output of programs, and what stands there instead."""
        self.asked: list[str] = []
        self.words: list[list[str]] = []

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        line = " ".join(word for word in argv if not word.startswith("-"))
        self.asked.append(line)
        self.words.append(list(argv))
        own = next((answer for lead, answer in self.answers.items() if line.startswith(lead)), None)
        if own is not None:
            return own
        printed = await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)
        return printed._replace(stdout=re.sub(*self.edits.get(argv[0], ("", "")), printed.stdout, count=1))


class Cockpit:
    """A reader of the cluster, with a clock that a test moves."""

    def __init__(self, intervals: PollIntervals | None = None) -> None:
        self.cluster = Cluster()
        self.clock = VirtualClock(self.cluster.recorded_at)
        self.reading = Reading(Answers(self.cluster, self.clock.now, Random(1)), self.clock.now, intervals)

    def later(self, seconds: float, **answers: Printed) -> None:
        """Let time pass, after which the cluster answers otherwise; the keys have `_` for a space."""
        self.clock.advance(int(SECOND * seconds))
        self.cluster.answers = {lead.replace("_", " "): answer for lead, answer in answers.items()}


@pytest.fixture
def cockpit() -> Cockpit:
    return Cockpit()


def test_poll_intervals_keep_their_proportions() -> None:
    usual = PollIntervals()
    found = PollIntervals.every(5.0, patience=7.0)
    assert (found.jobs, found.nodes, found.settings, found.patience) == (5.0, 10.0, 150.0, 7.0)
    assert PollIntervals.every(usual.jobs, usual.patience) == usual


async def test_a_list_that_fails_keeps_its_last_answer_and_says_so(cockpit: Cockpit) -> None:
    before = await cockpit.reading.reservations()
    assert [each.name for each in before] == ["maint"]
    cockpit.later(60, scontrol_show_reservation=fails("Requested operation not permitted"))
    assert await cockpit.reading.reservations() == before
    said = "scontrol show reservation is not available at the moment: Requested operation not permitted"
    assert cockpit.reading.missing("scontrol show reservation") == f"{said} Its last answer is shown."
    assert cockpit.reading.missing("sshare") == ""
    cockpit.later(60)
    assert await cockpit.reading.reservations() == before
    assert cockpit.reading.trouble == {}


async def test_a_list_that_was_never_answered_is_empty_and_says_why(cockpit: Cockpit) -> None:
    cockpit.later(0, scontrol_show_licenses=fails("Requested operation not permitted"))
    assert await cockpit.reading.licences() == ()
    said = "scontrol show licenses is not available at the moment: Requested operation not permitted"
    assert cockpit.reading.missing("scontrol show licenses") == said
    assert cockpit.cluster.asked.count("scontrol show licenses") == 1, "a failed list is not compared with others"


async def test_licences_are_listed_for_the_scheduler_only_while_a_job_waits_for_some(cockpit: Cockpit) -> None:
    assert (await cockpit.reading.everything(closely=False)).licences == ()
    assert "scontrol show licenses" not in cockpit.cluster.asked, "each list costs the controller time"


@pytest.mark.req("SL-30")
async def test_the_scheduler_gets_the_flags_that_are_meant_by_the_one_for_all_of_them(cockpit: Cockpit) -> None:
    cockpit.cluster.edits["scontrol"] = (r"(?m)^(PriorityFlags\s*=).*$", r"\1 NO_NORMAL_ALL")
    assert PriorityFlag.NO_NORMAL_ALL in (await cockpit.reading.rules()).priority.flags
    everything = await cockpit.reading.everything(closely=False)
    assert everything.jobs
    assert everything.rules.priority.flags == (), "the recorded cluster printed normalised values"


async def test_an_incomplete_list_without_an_earlier_answer_is_an_error(cockpit: Cockpit) -> None:
    cockpit.later(0, scontrol_show_licenses=Printed("LicenseNa", "", 0))
    with pytest.raises(Garbled):
        await cockpit.reading.licences()
    cockpit.later(60)
    before = await cockpit.reading.licences()
    cockpit.later(60, scontrol_show_licenses=Printed("LicenseNa", "", 0))
    assert await cockpit.reading.licences() == before
    assert "is not whole" in cockpit.reading.missing("scontrol show licenses")


@pytest.mark.parametrize("what", ["nodes", "partitions"])
async def test_a_list_that_the_cluster_hides_is_empty_until_it_is_shown(cockpit: Cockpit, what: str) -> None:
    denied = fails("slurm_load_node error: Access/permission denied")
    cockpit.later(0, **{f"scontrol_show_{what[:-1]}": denied})
    rules, nodes = await cockpit.reading.rules(), await cockpit.reading.nodes()
    assert len(nodes if what == "nodes" else rules.partitions) == 0
    said = f"This cluster does not show its {what} to you (PrivateData)."
    assert cockpit.reading.hidden == cockpit.reading.trouble == {what: said}
    assert await cockpit.reading.details() is NOTHING_KNOWN
    assert await cockpit.reading.spreads() is NO_SPREADS
    assert "scontrol show job" not in cockpit.cluster.asked
    cockpit.later(300)
    assert await cockpit.reading.nodes()
    assert (await cockpit.reading.rules()).partitions
    assert cockpit.reading.hidden == cockpit.reading.trouble == {}


async def test_another_failure_of_a_list_that_cannot_be_missed_is_an_error(cockpit: Cockpit) -> None:
    cockpit.later(0, scontrol_show_node=fails("Invalid node name"))
    with pytest.raises(Failed, match="Invalid node name"):
        await cockpit.reading.nodes()
    assert cockpit.reading.hidden == {}


async def test_a_user_without_jobs_is_no_trouble_of_accounting(cockpit: Cockpit) -> None:
    cockpit.later(0, sacct=fails("Invalid user id: ghost"))
    assert await cockpit.reading.sacct.ended("now-1days", user="ghost") == ()
    assert cockpit.reading.trouble == {}
    cockpit.later(60, sacct=AWAY)
    assert await cockpit.reading.sacct.ended("now-1days", user="ghost") == ()
    assert "Problem talking to the database" in cockpit.reading.missing("sacct")


async def test_a_job_that_the_controller_does_not_know_is_no_error(cockpit: Cockpit) -> None:
    cockpit.later(0, squeue=fails("slurm_load_jobs error: Invalid job id specified"))
    assert await cockpit.reading.jobs_now(JobId(9)) == ()
    cockpit.later(0, squeue=fails("slurm_load_jobs error: Access/permission denied"))
    with pytest.raises(Failed, match="permission denied"):
        await cockpit.reading.jobs_now(JobId(9))


async def test_what_is_no_job_id_makes_no_row(cockpit: Cockpit) -> None:
    cockpit.cluster.edits["squeue"] = ("(?m)^42~", "x7~")
    with pytest.raises(Garbled, match="'x7' is not a job id"):
        await cockpit.reading.jobs()


async def test_a_record_that_has_not_changed_is_the_same_object(cockpit: Cockpit) -> None:
    before = {each.id: each for each in await cockpit.reading.jobs()}
    cockpit.later(60)
    cockpit.cluster.edits["squeue"] = ("multi-part", "other-name")
    after = {each.id: each for each in await cockpit.reading.jobs()}
    assert [job for job in after if after[job] is not before[job]] == [45]


async def test_output_files_of_a_job(cockpit: Cockpit) -> None:
    found = await cockpit.reading.output_files("9")
    assert set(found) == {"stdout", "stderr", "folder"}
    assert found["folder"].startswith("/")
    cockpit.later(60, squeue=fails("slurm_load_jobs error: Invalid job id specified"))
    assert await cockpit.reading.output_files("9") == {}
    cockpit.later(60, squeue=says(""))
    assert await cockpit.reading.output_files("9") == {}


@pytest.mark.parametrize(
    ("host", "uname", "expected"),
    [
        ("gpu1.site.org", "login", "gpu1.site.org"),
        ("localhost", "login.site.org\n", "login.site.org"),
        ("localhost", "", "localhost"),
        ("localhost", None, "localhost"),
    ],
)
async def test_a_nodes_machine_has_its_own_host_name(
    cockpit: Cockpit, host: str, uname: str | None, expected: str
) -> None:
    printed = (await cockpit.cluster.run(("scontrol", "show", "node", "-o"), seconds=1)).stdout
    there = printed.replace("NodeHostName=n1", f"NodeHostName={host}").replace(
        "NodeHostName=localhost", f"NodeHostName={host}", 1
    )
    uname_says = says(uname) if uname is not None else fails("no such program")
    cockpit.later(0, scontrol_show_node=says(there), uname=uname_says)
    assert f"NodeHostName={host}" in there
    name = next(word for word in there.split() if word.startswith("NodeName=")).partition("=")[2]
    assert await cockpit.reading.host_of(NodeName(name)) == expected
    assert await cockpit.reading.host_of(NodeName("elsewhere")) == "elsewhere"


async def test_the_comment_of_a_job_comes_from_accounting_once_the_controller_forgot_it(cockpit: Cockpit) -> None:
    cockpit.later(0, squeue=says(" cockpit:held \n"), sacct=says("old\n"))
    assert await cockpit.reading.comment("9") == "cockpit:held"
    cockpit.later(0, squeue=fails("slurm_load_jobs error: Invalid job id specified"), sacct=says("old\n"))
    assert await cockpit.reading.comment("9") == "old"


@pytest.mark.parametrize(
    ("printed", "script"),
    [
        ("Batch Script for 9\n-----\n#!/bin/sh\necho '#!'\n", "#!/bin/sh\necho '#!'\n"),
        ("NONE\n", ""),
        ("NONE #!/x", ""),
        ("", ""),
    ],
)
async def test_the_script_of_a_job_is_read_from_accounting(cockpit: Cockpit, printed: str, script: str) -> None:
    cockpit.later(0, sacct=says(printed))
    assert await cockpit.reading.sacct.script("9") == script
    cockpit.later(300, sacct=AWAY)
    assert await cockpit.reading.sacct.script("9") == ""


async def test_steps_that_cannot_be_listed_are_left_out(cockpit: Cockpit) -> None:
    step = "StepId=9.0 UserId=1001 StartTime=2026-11-21T08:00:00 TimeLimit=UNLIMITED State=RUNNING Nodes=1 Name=train"
    cockpit.later(0, scontrol_show_step=says(f"{step}\n"))
    (found,) = await cockpit.reading.running_steps(9)
    assert found.name == "0"
    cockpit.later(60, scontrol_show_step=fails("No job steps in the system"))
    assert await cockpit.reading.running_steps(9) == ()


async def test_the_version_and_the_kind_of_accounting_are_read_from_the_configuration(cockpit: Cockpit) -> None:
    assert await cockpit.reading.version() == (22, 5, 8)
    assert await cockpit.reading.lacks_accounting() == ""
    cockpit.later(300, scontrol_show_config=says("AccountingStorageType = accounting_storage/none\n"))
    assert "no accounting database" in await cockpit.reading.lacks_accounting()
    cockpit.later(300, scontrol_show_config=says("ClusterName = lab\n"))
    assert await cockpit.reading.lacks_accounting() == "", "slurmrestd does not say"


async def test_a_job_of_several_partitions_has_its_highest_priority_first(cockpit: Cockpit) -> None:
    found = (await cockpit.reading.priorities())[45]
    assert len(found) == 2
    assert found[0].total >= found[1].total
    rows = "45|{}|alice|{}|1|0|0|0|0|0|0||0\n"
    printed = rows.format("batch", 10) + rows.format("gpu", 20)
    cockpit.later(60, sprio=says(printed))
    assert [(each.partition, each.total) for each in (await cockpit.reading.priorities())[45]] == [
        ("gpu", 20),
        ("batch", 10),
    ]


async def test_accounts_without_associations_are_those_of_the_shares(cockpit: Cockpit) -> None:
    whole = await cockpit.reading.accounts()
    assert "nlp" in {each.account for each in whole.associations.values()}
    cockpit.later(300, sacctmgr_list_assoc=says(""))
    fewer = await cockpit.reading.accounts()
    assert {each.account for each in fewer.associations.values()} >= {"nlp", "nlp-a"}
    assert all(not each.qos for each in fewer.associations.values())


async def test_an_ended_job_is_looked_up_in_accounting(cockpit: Cockpit) -> None:
    ended = next(each for each in await cockpit.reading.sacct.ended("now-1days") if each.fields["JobName"] == "fails")
    cockpit.later(60)
    known = await look_up(cockpit.reading, ended.job.id)
    assert known.job.id == ended.job.id
    with pytest.raises(RequestRefused, match="There is no job 9999"):
        await look_up(cockpit.reading, JobId(9999))
    with pytest.raises(RequestRefused, match="There is no job 9999_3"):
        await look_up(cockpit.reading, JobId(9999), 3)


async def test_a_job_that_was_submitted_after_the_last_list_is_found(cockpit: Cockpit) -> None:
    cockpit.cluster.edits["squeue"] = ("(?m)^42~.*\n", "")
    assert 42 not in {each.id for each in await cockpit.reading.jobs()}
    cockpit.cluster.edits.clear()
    cockpit.later(1, sacct=says(""))
    assert (await look_up(cockpit.reading, JobId(42))).job.id == 42


async def test_the_tasks_of_an_array_that_wait_stand_for_it(cockpit: Cockpit) -> None:
    assert (await look_up_waiting(cockpit.reading, JobId(46))).job.id == rest_id(46)
    assert (await look_up(cockpit.reading, JobId(46))).job.id != rest_id(46)
    assert (await look_up_waiting(cockpit.reading, JobId(46), 9)).job.id == task_id(46, 9)
    assert (await look_up_waiting(cockpit.reading, JobId(9))).job.id == 9


async def test_answers_that_a_change_affects_are_read_anew(cockpit: Cockpit) -> None:
    await cockpit.reading.jobs()
    at = cockpit.clock.now()
    assert cockpit.reading.listed_at == at
    cockpit.later(1)
    cockpit.reading.forget({"sacctmgr"})
    await cockpit.reading.jobs()
    assert cockpit.reading.listed_at == at
    cockpit.reading.forget({"squeue"})
    cockpit.later(1)
    await cockpit.reading.jobs()
    assert cockpit.reading.listed_at == Millis(at + 2 * SECOND)


async def test_the_jobs_of_a_time_are_those_that_were_there_in_it_also_running_ones(cockpit: Cockpit) -> None:
    since, until = Millis(1_795_248_117_999), Millis(1_795_251_717_000)
    await jobs_between(cockpit.reading, since, until)
    asked = next(words for words in cockpit.cluster.words if words[0] == "sacct")
    assert "--state" not in asked
    assert asked[asked.index("--starttime") + 1] == "2026-11-21T08:01:57"
    assert asked[asked.index("--endtime") + 1] == "2026-11-21T09:01:57"
    await ended_jobs(cockpit.reading, None, None, "")
    asked = [words for words in cockpit.cluster.words if words[0] == "sacct"][-1]
    assert "--state" in asked
    assert (asked[asked.index("--starttime") + 1], asked[asked.index("--endtime") + 1]) == ("now-1days", "now")


async def test_jobs_are_listed_again_for_priorities_only_if_the_two_lists_are_of_different_moments() -> None:
    row = "45|gpu|alice|20|1|0|0|0|0|0|0||0\n"
    for seconds, again in ((0, 0), (60, 1)):
        cockpit = Cockpit(PollIntervals.every(600.0, patience=7.0))
        head = (await cockpit.cluster.run(priorities.COMMAND, seconds=1)).stdout.partition("\n")[0]
        await cockpit.reading.jobs()
        before = sum(each.startswith("squeue") for each in cockpit.cluster.asked)
        cockpit.later(seconds, sprio=says(f"{head}\n{row}"))
        await cockpit.reading.priorities()
        assert sum(each.startswith("squeue") for each in cockpit.cluster.asked) == before + again
