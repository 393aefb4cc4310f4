"""Texts of users that look like records in the output of `scontrol show job`."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.slurm.list_checks import confirmed, live_jobs
from cockpit.backends.slurm.mapping.placements import allocation_records
from cockpit.backends.slurm.mapping.records import job_blocks
from cockpit.backends.slurm.mapping.spreads import spreads
from cockpit.backends.slurm.wire.calls import Failed, Printed

pytestmark = [pytest.mark.req("SL-02"), pytest.mark.req("TR-06")]
FORGED = "JobId={job} JobName=f\n   JobState=RUNNING Reason=None\n     Nodes=n9 CPU_IDs=0-7 Mem=9 GRES=\n"


def record(job: int, *, name: str = "a", comment: str = "") -> str:
    """One record, with the lines in the order of Slurm 22.05."""
    return (
        f"JobId={job} JobName={name}\n   UserId=ann(1) GroupId=ann(1) MCS_label=N/A\n   JobState=RUNNING Reason=None\n"
        "   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n   Socks/Node=* NtasksPerN:B:S:C=0:0:*:*\n"
        "     Nodes=n1 CPU_IDs=0 Mem=1 GRES=\n   MinCPUsNode=1 MinMemoryNode=1M MinTmpDiskNode=0\n"
        f"   Comment={comment} \n   Power=\n   \n\n"
    )


def nodes_of(printed: str, *names: str) -> list[tuple[str, str]]:
    return [(each["JobId"], each["Nodes"]) for each in allocation_records(printed, names)]


def test_a_line_of_a_comment_begins_no_record() -> None:
    printed = record(5, comment="x\n" + FORGED.format(job=999)) + record(6)
    assert [block.split()[0] for block in job_blocks(printed)] == ["JobId=5", "JobId=6"]
    assert nodes_of(printed) == [("5", "n1"), ("6", "n1")]


def test_a_whole_record_in_a_comment_takes_nothing_from_another_job() -> None:
    printed = record(5, comment="x\n\n" + FORGED.format(job=6)) + record(6)
    assert nodes_of(printed) == [("5", "n1")], "which of two records is job 6 cannot be known"


def test_a_name_with_line_breaks_tells_nothing_of_its_job() -> None:
    name = "x\n   JobState=PENDING Reason=None\n     Nodes=n9 CPU_IDs=0-7 Mem=9 GRES=\n   NumNodes=9 NumCPUs=9"
    printed = record(5, name=name)
    assert nodes_of(printed, name) == [("5", "n1")]
    assert spreads(printed, [name]) == {}


async def test_a_job_that_only_a_text_names_is_not_missing() -> None:
    listed = record(5, comment="x\n\n" + FORGED.format(job=999)) + record(6)

    class Answers:
        async def ask_now(self, argv: tuple[str, ...]) -> Printed:
            if argv[-1] == "job":
                return Printed(listed, "", 0)
            if argv[-1] == "999":
                raise Failed(Printed("", "slurm_load_jobs error: Invalid job id specified", 1), argv)
            return Printed(record(int(argv[-1])), "", 0)

    answers: Any = Answers()
    assert await live_jobs(answers) == {"5", "6", "999"}
    assert await confirmed(answers, {"999"}) == set()
    assert await confirmed(answers, {"6", "999"}) == {"6", "999"}
