"""Acts as requests to slurmrestd, in the words of two versions of its API."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping.rest.acts import NoSuchRequest, RestRequest, request

NUMBER = {"set": True, "infinite": False, "number": 1}


@pytest.mark.req("SL-01")
@pytest.mark.parametrize(
    ("argv", "version", "wanted"),
    [
        ("scontrol hold 7", 38, RestRequest("POST", "slurm", "job/7", {"hold": True})),
        ("scontrol release 7_3", 42, RestRequest("POST", "slurm", "job/7_3", {"hold": False})),
        ("scancel 7", 38, RestRequest("DELETE", "slurm", "job/7")),
        ("scancel --full --signal=KILL 7", 38, RestRequest("DELETE", "slurm", "job/7", None, {"signal": "KILL"})),
        (
            "scancel --batch --signal=USR1 7",
            42,
            RestRequest("DELETE", "slurm", "job/7", None, {"signal": "USR1", "flags": "BATCH_JOB"}),
        ),
        ("scontrol update JobId=7 TimeLimit=01:00:30", 38, RestRequest("POST", "slurm", "job/7", {"time_limit": 61})),
        (
            "scontrol update JobId=7 TimeLimit=00:01:00 Nice=5 Priority=1",
            42,
            RestRequest("POST", "slurm", "job/7", {"time_limit": NUMBER, "nice": 5, "priority": NUMBER}),
        ),
        (
            "sbatch --parsable --hold --wrap={x}",
            38,
            RestRequest(
                *("POST", "slurm", "job/submit"),
                {
                    "script": "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{x}\n",
                    "job": {"hold": True, "name": "wrap", "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"}},
                },
            ),
        ),
        (
            "sbatch --parsable --job-name=mine --wrap=x",
            38,
            RestRequest(
                *("POST", "slurm", "job/submit"),
                {
                    "script": "#!/bin/sh\n# This script was created by sbatch --wrap.\n\nx\n",
                    "job": {"name": "mine", "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"}},
                },
            ),
        ),
        ("scontrol update JobId=7 NumNodes=2", 38, RestRequest("POST", "slurm", "job/7", {"nodes": "2"})),
        ("scontrol update JobId=7 TimeLimit=5", 38, RestRequest("POST", "slurm", "job/7", {"time_limit": 5})),
        (
            "scontrol update JobId=7 TresPerNode=gres/gpu:2",
            38,
            RestRequest("POST", "slurm", "job/7", {"gres": "gpu:2"}),
        ),
        ("scontrol update JobId=7 JobName=a", 42, RestRequest("POST", "slurm", "job/7", {"name": "a"})),
        (
            "scontrol update NodeName=n1 State=DRAIN Reason=disk",
            39,
            RestRequest("POST", "slurm", "node/n1", {"state": ["DRAIN"], "reason": "disk"}),
        ),
    ],
)
def test_an_action_is_one_request(argv: str, version: int, wanted: RestRequest) -> None:
    assert request(argv.split(), "", version) == wanted


@pytest.mark.req("SL-01", "SL-20")
def test_a_submission_has_every_field_in_either_version() -> None:
    argv = ("sbatch", "--parsable", "--job-name=a b; $x", "--nodes=2", "--mem=1G", "--time=00:01:00", "--gres=gpu:2")
    argv += ("--begin=uts1", "--exclusive", "--hold")
    old = request(argv, "#!/bin/sh\n", 38).body
    new = request((*argv, "--nodelist=n1,n2"), "#!/bin/sh\n", 42).body
    assert old == {
        "script": "#!/bin/sh\n",
        "job": {
            "name": "a b; $x",
            "nodes": "2",
            "tasks": 2,
            "memory_per_node": 1024,
            "time_limit": 1,
            "gres": "gpu:2",
            "begin_time": "uts1",
            "exclusive": "exclusive",
            "hold": True,
            "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        },
    }
    assert new == {
        "script": "#!/bin/sh\n",
        "job": {
            "name": "a b; $x",
            "nodes": "2",
            "tasks": 2,
            "memory_per_node": {**NUMBER, "number": 1024},
            "time_limit": NUMBER,
            "tres_per_node": "gres/gpu:2",
            "begin_time": NUMBER,
            "shared": ["none"],
            "hold": True,
            "required_nodes": ["n1", "n2"],
            "environment": ["PATH=/usr/local/bin:/usr/bin:/bin"],
        },
    }


@pytest.mark.req("SL-01")
@pytest.mark.parametrize(
    ("argv", "version", "why"),
    [
        ("scontrol suspend 7", 42, "slurmrestd does not support `scontrol suspend`: do it on a login node"),
        ("sacctmgr --immediate add account x", 42, "does not support `sacctmgr --immediate`"),
        ("scontrol update NodeName=n1 State=DRAIN", 38, r"v0\.0\.38 changes no node"),
        ("scancel --batch --signal=USR1 7", 38, r"v0\.0\.38 signals no script by itself"),
        ("scancel --signal=USR1 7", 38, r"v0\.0\.38 signals no steps by themselves"),
        ("scancel 7 8", 42, "slurmrestd cancels one job at a time, not 7 8"),
        ("scontrol update JobId=7 TimeLimit=+5", 42, "give the new limit"),
        ("scontrol update JobId=7 SiteFactor=3", 42, "does not support SiteFactor of a job that waits"),
        ("sbatch --parsable --burst=7", 42, "does not support sbatch's --burst"),
        ("scontrol update JobId=7 JobName=a", 38, "does not support JobName of a job that waits"),
        ("sbatch --parsable --nodelist=n1", 38, "does not support sbatch's --nodelist"),
        ("sbatch --parsable --time=UNLIMITED", 38, "slurmrestd takes no time_limit of 'UNLIMITED'"),
        ("sbatch --parsable --begin=now+1hour", 42, r"slurmrestd takes no begin_time of 'now\+1hour'"),
        ("sbatch --parsable --ntasks=many", 42, "slurmrestd takes no tasks of 'many'"),
    ],
)
def test_what_it_does_not_support_is_refused_with_advice(argv: str, version: int, why: str) -> None:
    with pytest.raises(NoSuchRequest, match=why):
        request(argv.split(), "", version)


@pytest.mark.req("SL-01", "SL-20")
@pytest.mark.parametrize("options", [(), ("--job-name=train.sh",)])
def test_a_script_with_options_of_its_own_is_refused_and_not_submitted_without_them(options: tuple[str, ...]) -> None:
    script = "#!/bin/sh\n#SBATCH --gres=gpu:2\ntrue\n"
    with pytest.raises(NoSuchRequest, match="slurmrestd reads no #SBATCH lines"):
        request(("sbatch", "--parsable", *options), script, 42)
