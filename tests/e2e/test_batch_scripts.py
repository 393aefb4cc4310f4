"""Batch scripts as people have them, run by the embedded engine: what Slurm 22.05 prints for the same scripts."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.e2e.cockpit_user import CockpitUser, a_new_user, eventually
from tests.runtime.containers.roots import make_root

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts"), pytest.mark.req("LA-71")]

NODES = "overcommit = true\n" + "".join(
    f'[[nodes]]\nname = "{name}"\ncpus = 4\nmemory = "4G"\ncards = [{{model = "A100", vendor = "nvidia", count = 2}}]\n'
    for name in ("n1", "n2")
)
SECONDS = 60


@pytest.fixture(scope="module")
def one_engine() -> Iterator[CockpitUser]:
    """One engine for all scripts: at the end of each test its jobs have ended."""
    with a_new_user() as user:
        user.configure("cluster.toml", NODES)
        yield user


@pytest.fixture
def lab(one_engine: CockpitUser, monkeypatch: pytest.MonkeyPatch) -> Iterator[CockpitUser]:
    """The engine's user in an empty folder, with a shell of its own."""
    work = Path(mkdtemp(dir=one_engine.folder / "work")) / "work"
    work.mkdir()
    monkeypatch.setattr(one_engine, "work", work)
    monkeypatch.setattr(one_engine, "env", {**one_engine.env, "FROM_THE_SHELL": "seen"})
    yield one_engine
    networks = one_engine.folder / "state/cockpit-cluster/networks"
    eventually(lambda: not networks.exists())


def submitted(lab: CockpitUser, script: str, *words: str, name: str = "job.sh") -> str:
    lab.write(name, script)
    return lab.ok("submit", name, *words).split()[-1]


def ran(lab: CockpitUser, script: str, *words: str, code: int = 0, name: str = "job.sh") -> str:
    """The job's id, once it has ended."""
    job = submitted(lab, script, *words, name=name)
    assert lab.wait(job, SECONDS) == code, lab.ok("job", job) + lab.ok("logs", job)
    return job


def output(lab: CockpitUser, name: str) -> list[str]:
    return (lab.work / name).read_text().splitlines()


def test_a_script_runs_where_it_was_submitted_and_writes_its_output_there(lab: CockpitUser) -> None:
    lab.write("data/input.txt", "seven\n")
    job = ran(
        lab,
        '#!/bin/bash\n#SBATCH --mem=200M\npwd; cat data/input.txt; echo "$@"; echo late >&2; echo x > made\n',
        "--",
        "a",
        "b c",
    )
    assert output(lab, f"slurm-{job}.out") == [str(lab.work), "seven", "a b c", "late"]
    assert (lab.work / "made").read_text() == "x\n"
    assert lab.ok("logs", job).splitlines() == output(lab, f"slurm-{job}.out")
    assert (lab.work / "job.sh").is_file()


def test_the_submission_prints_the_path_of_the_output(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\n#SBATCH -J train -o logs/%x-%j.out\ntrue\n")
    (lab.work / "logs").mkdir()
    done = lab.run("submit", "--hold", "job.sh")
    job = done.stdout.decode().split()[-1]
    assert f"output goes to {lab.work}/logs/train-{job}.out" in done.stderr.decode()
    lab.ok("cancel", job, "--yes")


@pytest.mark.parametrize(
    ("first", "body", "said"),
    [
        ("#!/bin/bash -l", "shopt login_shell; which srun", ["login_shell    \ton", "/usr/local/bin/srun"]),
        ("#!/bin/bash -e", "echo one; false; echo two", ["one"]),
        ("#!/usr/bin/env -S bash -u", "echo $-", None),
        ("#!/usr/bin/env python3", "import sys, os\nprint('python', os.environ['SLURM_PROCID'])", ["python 0"]),
        ("#!/bin/sh", "echo plain", ["plain"]),
    ],
)
def test_a_script_may_use_any_interpreter_with_its_options(
    lab: CockpitUser, first: str, body: str, said: list[str] | None
) -> None:
    job = ran(lab, f"{first}\n#SBATCH -o out.txt --mem=200M\n{body}\n", code=1 if "-e" in first.split() else 0)
    assert job
    found = output(lab, "out.txt")
    assert ("u" in found[0]) if said is None else (found == said)


def test_the_last_lines_come_through_a_tee(lab: CockpitUser) -> None:
    script = """#!/bin/bash
#SBATCH --mem=200M -o out.txt
set -e
trap 'echo "cleaning up after $?"' EXIT
exec > >(while read -r line; do echo "$line"; done | tee -a log.txt) 2>&1
seq 2000; false
"""
    ran(lab, script, code=1)
    said = [*map(str, range(1, 2001)), "cleaning up after 1"]
    assert (output(lab, "out.txt"), output(lab, "log.txt")) == (said, said)


def test_a_reader_of_a_pipe_left_open_does_not_prevent_the_end_of_the_job(lab: CockpitUser) -> None:
    job = ran(lab, "#!/bin/bash\n#SBATCH --mem=200M -o out.txt\nexec > >(cat)\nsleep 1000 &\necho said\n")
    assert output(lab, "out.txt") == ["said"]
    assert lab.row("job", job)["state"] == "succeeded"


def test_a_script_without_any_option_line_runs_too(lab: CockpitUser) -> None:
    job = ran(lab, "#!/bin/bash\nset -euo pipefail\ncd $SLURM_SUBMIT_DIR\necho in $(basename $PWD)\n")
    assert output(lab, f"slurm-{job}.out") == ["in work"]


VARIABLES = """#!/bin/bash
#SBATCH -J named -N 2 --ntasks-per-node=2 -c 1 --mem=300M --gres=gpu:A100:1 -o vars.txt
env | grep -E '^(SLURM_|CUDA_VISIBLE)' | sort
"""
AS_UNDER_SLURM = {
    "SLURM_CPUS_ON_NODE": "2",
    "SLURM_CPUS_PER_TASK": "1",
    "SLURM_GPUS_ON_NODE": "1",
    "SLURM_GTIDS": "0",
    "SLURM_JOB_CPUS_PER_NODE": "2(x2)",
    "SLURM_JOB_NAME": "named",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_LOCALID": "0",
    "SLURM_MEM_PER_NODE": "300",
    "SLURM_NNODES": "2",
    "SLURM_NODEID": "0",
    "SLURM_NPROCS": "4",
    "SLURM_NTASKS": "4",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_PROCID": "0",
    "SLURM_TASKS_PER_NODE": "2(x2)",
}
"""What Slurm sets for the same script on two nodes of its own."""


def test_the_variables_are_those_of_slurm(lab: CockpitUser) -> None:
    job = ran(lab, VARIABLES)
    found = dict(line.split("=", 1) for line in output(lab, "vars.txt"))
    assert {name: found.get(name) for name in AS_UNDER_SLURM} == AS_UNDER_SLURM
    assert found["SLURM_JOB_ID"] == found["SLURM_JOBID"] == job
    assert found["SLURM_SUBMIT_DIR"] == str(lab.work)
    assert found["SLURM_JOB_NODELIST"] == found["SLURM_NODELIST"] == "named-0,named-1"


TORCHRUN = """#!/bin/bash
#SBATCH -J multi -N 2 --ntasks-per-node=1 --mem=300M -o out.txt
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address | awk '{print $1}')
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
echo $MASTER_ADDR $head_node_ip
address() { getent hosts $1 | cut -d" " -f1; }; export -f address
srun bash -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS node $SLURM_NODEID: $(address $MASTER_ADDR)' | sort
"""


def test_a_script_for_torchrun_on_several_nodes_finds_its_first_one(lab: CockpitUser) -> None:
    ran(lab, TORCHRUN)
    first, *ranks = output(lab, "out.txt")
    name, address = first.split()
    assert name == "multi-0"
    assert ranks == [f"rank {rank} of 2 node {rank}: {address}" for rank in (0, 1)]


STEPS = """#!/bin/bash
#SBATCH -J steps -n 2 --mem=300M -o out.txt -e err.txt
srun hostname | sort -u
srun -l sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_STEP_ID; exit $SLURM_PROCID' | sort
echo "worst ${PIPESTATUS[0]}"
srun -n1 sh -c 'kill -9 $$'; echo "killed $?"
srun -n 2 -o t%t-%j.%s.txt -e /dev/null sh -c 'echo task $SLURM_PROCID; echo gone >&2'
srun -n1 no-such-command; echo "missing $?"
for i in 1 2 3; do echo $i; done | srun -n1 cat
while read name; do srun -n1 echo "read $name" < /dev/null; done < names.txt
srun bash -c 'trap "echo signalled; exit 3" USR1; touch ready.$SLURM_PROCID; while :; do sleep 0.1; done' &
until [ -e ready.0 ] && [ -e ready.1 ]; do :; done
kill -USR1 $!; wait $!; echo "after signal $?"
scontrol show job $SLURM_JOB_ID | grep -o 'JobState=[A-Z]*'
scontrol show hostlist a1,a2,a3
srun --exclusive -n1 -c1 true & srun --overlap -n1 true & wait
srun --pty true; echo "pty $?"
"""


def test_srun_and_scontrol_do_on_one_node_what_they_do_under_slurm(lab: CockpitUser) -> None:
    lab.write("names.txt", "ann\nbob\n")
    job = ran(lab, STEPS)
    assert output(lab, "out.txt") == [
        "steps-0",
        "0: 0 0 1",
        "1: 1 1 1",
        "worst 1",
        "killed 137",
        "missing 2",
        *("1", "2", "3"),
        *("read ann", "read bob"),
        *("signalled", "signalled"),
        "after signal 3",
        "JobState=RUNNING",
        "a[1-3]",
        "pty 0",
    ]
    said = (lab.work / "err.txt").read_text()
    assert "srun: error: steps-0: task 1: Exited with exit code 1" in said
    assert "srun: error: steps-0: task 0: Killed" in said
    assert [output(lab, f"t{task}-{job}.3.txt") for task in (0, 1)] == [["task 0"], ["task 1"]]
    assert lab.ok("logs", job, "--stderr") == said


STEPS_AND_THEIR_INPUT = """#!/bin/bash
#SBATCH -n 2 --mem=300M -o out.txt -e err.txt
printf '1\\n2\\n' | srun -n2 -i0 cat
printf '3\\n' | srun -n2 --input=none cat
echo four > four.txt; srun -n2 -i four.txt cat
srun -n2 --job-name=inner sh -c 'echo $SLURM_JOB_NAME $SLURM_TASKS_PER_NODE'
srun -n3 true; echo "too many $?"
export TMPDIR=/tmp/other; srun -n1 sh -c 'echo step $SLURM_STEP_ID'
"""


def test_a_step_has_the_input_the_name_and_the_cpus_that_it_asks_for(lab: CockpitUser) -> None:
    ran(lab, STEPS_AND_THEIR_INPUT)
    expected = ["1", "2", "four", "four", "inner 2", "inner 2", "too many 1", "step 4"]
    assert output(lab, "out.txt") == expected
    assert "More processors requested than permitted" in (lab.work / "err.txt").read_text()


@pytest.mark.parametrize("temporary", ["", "/scratch/of/a/login/node", "/tmp/mine"])
def test_a_script_always_has_a_temporary_folder(lab: CockpitUser, temporary: str) -> None:
    if temporary:
        lab.env["TMPDIR"] = temporary
    ran(lab, "#!/bin/bash\n#SBATCH -o out.txt --mem=200M\necho $TMPDIR\ncd $(mktemp -d) && srun true && dirname $PWD\n")
    assert output(lab, "out.txt") == [temporary if temporary == "/tmp/mine" else "/tmp"] * 2


def test_exclusive_steps_share_the_cpus_and_cards_of_the_job(lab: CockpitUser) -> None:
    script = """#!/bin/bash
#SBATCH -n 2 --mem=300M --gres=gpu:2 -o out.txt
for i in 1 2 3 4; do
  srun --exclusive -n1 --gres=gpu:1 sh -c 'd=busy.$CUDA_VISIBLE_DEVICES; mkdir $d && sleep 0.3 && rmdir $d' &
done
wait
srun -n2 --gpus-per-task=1 sh -c 'echo $CUDA_VISIBLE_DEVICES' | sort
"""
    ran(lab, script)
    lines = [line for line in output(lab, "out.txt") if "busy)" not in line and "error" not in line]
    assert not any("File exists" in line for line in output(lab, "out.txt"))
    assert len(set(lines)) == 2


@pytest.mark.parametrize("where", ["the script", "the step"])
def test_each_task_has_its_own_cards_on_every_node(lab: CockpitUser, where: str) -> None:
    script, step = ("#SBATCH --gpus-per-task=1\n", "") if where == "the script" else ("", "--gpus-per-task=1")
    ran(
        lab,
        f"""#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=2 -c 1 --mem=300M --gres=gpu:2 -o out.txt
{script}srun {step} sh -c 'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES' > cards
sort cards
[ "$(srun -N1 -n1 sh -c 'echo $SLURM_LAUNCH_NODE_IPADDR')" = "$(getent hosts $(hostname) | cut -d' ' -f1)" ]
""",
    )
    assert output(lab, "out.txt") == ["0 0", "1 1", "2 0", "3 1"]


def test_an_mpi_program_is_for_mpirun_and_srun_says_so(lab: CockpitUser) -> None:
    script = "#!/bin/bash\n#SBATCH -n 2 --mem=300M -o out.txt\nsrun --mpi=list\n"
    ran(lab, f"{script}srun --mpi=pmix touch started\n[ $? = 1 ] && [ ! -e started ] && srun --mpi=none true\n")
    assert output(lab, "out.txt")[:2] == ["MPI plugin types are...", "\tnone"]
    assert (
        "error: --mpi=pmix: tasks of srun are no ranks of one MPI program here; start it by mpirun"
        in output(lab, "out.txt")[2]
    )


def test_verbs_of_scontrol_that_change_a_job_name_the_verb_of_cockpit(lab: CockpitUser) -> None:
    ran(lab, "#!/bin/bash\n#SBATCH --mem=300M -o out.txt\nscontrol requeue $SLURM_JOB_ID\n[ $? = 1 ]\n")
    (said,) = output(lab, "out.txt")
    assert "requeue: does not work in a container; outside of it run `cockpit requeue ID`" in said


def test_a_step_ends_at_its_own_time_limit_and_some_time_after_its_first_task(lab: CockpitUser) -> None:
    script = """#!/bin/bash
#SBATCH -n 2 --mem=300M -o out.txt
srun --time=0:01 -n 1 sleep 1000; echo limit $?
srun --wait=1 -n 2 sh -c '[ $SLURM_PROCID = 1 ] || exec sleep 1000'; echo stragglers $?
"""
    job = ran(lab, script)
    said = (lab.work / "out.txt").read_text()
    assert "limit 143\n" in said
    assert "stragglers 143\n" in said
    assert f"*** STEP {job}.0 CANCELLED AT " in said
    assert "DUE TO TIME LIMIT" in said
    assert "First task exited 1s ago; still running: 0" in said


@pytest.mark.parametrize("pattern", ["/dev/null", "logs/%x-%A_%a.out", "", "%5j.%u.txt"])
def test_an_arrays_tasks_read_their_line_and_write_their_file(lab: CockpitUser, pattern: str) -> None:
    lab.write("list.txt", "one\ntwo\nthree\n")
    (lab.work / "logs").mkdir()
    said = f"#SBATCH -o {pattern}\n" if pattern else ""
    body = (
        'line=$(sed -n "${SLURM_ARRAY_TASK_ID}p" list.txt); echo "$line $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_STEP"'
    )
    lab.write("job.sh", f"#!/bin/bash\n#SBATCH -J arr --array=1-3:2%2 --mem=200M\n{said}{body}\n")
    job = int(lab.ok("submit", "job.sh").split()[-1])
    assert lab.wait(str(job), SECONDS) == 0
    user = pwd.getpwuid(os.geteuid()).pw_name
    names = {
        "/dev/null": [],
        "logs/%x-%A_%a.out": [f"logs/arr-{job}_{task}.out" for task in (1, 3)],
        "": [f"slurm-{job}_{task}.out" for task in (1, 3)],
        "%5j.%u.txt": [f"{each:05}.{user}.txt" for each in (job, job + 1)],
    }[pattern]
    assert [output(lab, name) for name in names] == [["one 2 2"], ["three 2 2"]][: len(names)]
    assert Path("/dev/null").is_char_device()
    if not names:
        assert lab.ok("logs", f"{job}_1") == ""


def test_output_and_errors_apart_appended_and_in_another_folder(lab: CockpitUser) -> None:
    (lab.work / "elsewhere").mkdir()
    lab.write("elsewhere/all.txt", "before\n")
    script = """#!/bin/bash
#SBATCH --chdir=elsewhere -o all.txt -e %j.err --open-mode=append --mem=200M
pwd; echo $SLURM_SUBMIT_DIR; ls $SLURM_SUBMIT_DIR/job.sh; echo wrong >&2
"""
    job = ran(lab, script)
    folder = lab.work / "elsewhere"
    assert output(lab, "elsewhere/all.txt") == ["before", str(folder), str(lab.work), f"{lab.work}/job.sh"]
    assert output(lab, f"elsewhere/{job}.err") == ["wrong"]
    assert lab.ok("logs", job).splitlines() == [str(folder), str(lab.work), f"{lab.work}/job.sh"]
    assert lab.ok("logs", job, "--stderr") == "wrong\n"


def test_output_into_a_missing_folder_ends_the_job_with_the_path(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\n#SBATCH -o logs/x.out\ntrue\n")
    done = lab.run("submit", "job.sh")
    assert b"logs is not there now" in done.stderr
    job = done.stdout.decode().split()[-1]
    assert lab.wait(job, SECONDS) != 0
    assert f"script.output: {lab.work}/logs/x.out: no such file or directory" in lab.ok("job", job)


@pytest.mark.parametrize(
    ("export", "said"),
    [
        ("", "seen - shell"),
        ("ALL,LR=0.1", "seen 0.1 shell"),
        ("NONE", "- - -"),
        ("NONE,LR=0.1", "- 0.1 -"),
        ("FROM_THE_SHELL", "seen - -"),
    ],
)
def test_the_variables_of_the_shell_are_exported_as_asked(lab: CockpitUser, export: str, said: str) -> None:
    lab.env["OTHER"] = "shell"
    line = f"#SBATCH --export={export}\n" if export else ""
    job = ran(lab, f"#!/bin/bash\n#SBATCH --mem=200M\n{line}echo ${{FROM_THE_SHELL:--}} ${{LR:--}} ${{OTHER:--}}\n")
    assert output(lab, f"slurm-{job}.out") == [said]


def test_unsupported_options_are_reported_and_several_models_on_a_node_are_refused(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\n#SBATCH --mail-type=END --mem=200M\ntrue\n")
    assert b"--mail-type: has no counterpart here" in lab.run("submit", "job.sh").stderr
    lab.write("mixed.sh", "#!/bin/bash\n#SBATCH --gres=gpu:a100:2,gpu:v100:1\ntrue\n")
    refused = lab.run("submit", "mixed.sh")
    assert refused.returncode != 0
    assert b"cards of several models (a100 and v100) on one node" in refused.stderr


def test_begin_takes_the_local_times_of_sbatch(lab: CockpitUser) -> None:
    lab.env["TZ"] = "Europe/Berlin"
    lab.write("job.sh", "#!/bin/bash\n#SBATCH --begin=2099-07-25T10:00 --mem=200M\ntrue\n")
    job = lab.ok("submit", "job.sh").split()[-1]
    assert "Is not to begin before 2099-07-25 10:00" in lab.ok("job", job)
    lab.write("later.sh", "#!/bin/bash\n#SBATCH --begin=16:00 --mem=200M\ntrue\n")
    later = lab.ok("submit", "later.sh").split()[-1]
    lab.ok("cancel", job, later, "--yes")  # a waiting job's name is taken for the other tests


def test_a_dependency_and_a_time_limit_in_days(lab: CockpitUser) -> None:
    first = ran(lab, "#!/bin/bash\n#SBATCH --mem=200M\ntrue\n", name="first.sh")
    script = f"""#!/bin/bash
#SBATCH --dependency=afterok:{first} --time=1-00:00:00 --mem-per-cpu=150M --cpus-per-task=2 -o out.txt
scontrol show job $SLURM_JOB_ID | grep -o 'TimeLimit=[0-9:-]*'; echo $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_CPU
"""
    ran(lab, script)
    assert output(lab, "out.txt") == ["TimeLimit=1-00:00:00", "2 150"]


def test_a_stopped_script_runs_its_trap(lab: CockpitUser) -> None:
    job = submitted(
        lab,
        "#!/bin/bash\n#SBATCH -o out.txt --mem=200M\n"
        "trap 'echo saved; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done\n",
    )
    eventually(lambda: (lab.work / "out.txt").exists() and output(lab, "out.txt") == ["up"])
    eventually(lambda: lab.ok("logs", job) == "up\n")
    lab.ok("cancel", job)
    lab.wait(job, SECONDS)
    assert [line for line in output(lab, "out.txt") if line != "Terminated"] == ["up", "saved"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("B:USR1@57", ["shell saved", "after"]),
        ("USR1@57", ["task saved", "after"]),
        ("B:10@57", ["shell saved", "after"]),
    ],
)
def test_a_script_gets_its_signal_before_its_time_limit(lab: CockpitUser, wanted: str, said: list[str]) -> None:
    script = f"""#!/bin/bash
#SBATCH --signal={wanted} --time=00:01:00 --mem=200M -o out.txt -e /dev/null
trap 'echo shell saved; touch done' USR1
srun bash -c 'trap "echo task saved; touch done" USR1; until [ -e done ]; do sleep 0.1; done' &
until [ -e done ]; do wait; done
wait; echo after
"""
    job = ran(lab, script)
    assert output(lab, "out.txt") == said
    assert "gets its signal before the time limit" in lab.ok("job", job)


def test_an_unknown_signal_is_refused(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\n#SBATCH --signal=B:NONE@60\ntrue\n")
    assert b"--signal=B:NONE@60 is no signal; write --signal=B:USR1@60" in lab.run("submit", "job.sh").stderr


def test_the_page_of_a_job_names_the_files_of_its_script(lab: CockpitUser) -> None:
    job = submitted(lab, "#!/bin/bash\n#SBATCH -o %x.out -e %j.err --mem=200M\ntrue\n")
    page = lab.ok("job", job)
    assert [word for word in (f"{lab.work}/job.sh.out", f"{lab.work}/{job}.err") if word not in page] == []


def test_a_script_runs_in_an_image_where_its_folder_is_too(lab: CockpitUser) -> None:
    make_root(lab.folder / "root")
    lab.write("data.txt", "mine\n")
    script = (
        "#!/bin/sh\n#SBATCH -o out.txt --mem=200M\npwd; cat data.txt /etc/release; echo $SLURM_NTASKS_PER_NODE > made\n"
    )
    (lab.work / "job.sh").write_text(script)
    spec = yaml.safe_load(lab.ok("convert", "job.sh", "--to", "yaml"))
    lab.write("job.yaml", yaml.safe_dump({**spec, "image": f"dir:{lab.folder / 'root'}"}))
    job = lab.ok("submit", "job.yaml").split()[-1]
    assert lab.wait(job, SECONDS) == 0, lab.ok("job", job)
    assert output(lab, "out.txt") == [str(lab.work), "mine", "a root of its own"]
    assert (lab.work / "made").exists()


def test_the_held_container_of_a_failed_script_has_its_folder(lab: CockpitUser) -> None:
    spec_of = yaml.safe_load
    lab.write("job.sh", "#!/bin/bash\n#SBATCH -o out.txt --mem=200M\necho before; exit 3\n")
    spec = spec_of(lab.ok("convert", "job.sh", "--to", "yaml"))
    lab.write("job.yaml", yaml.safe_dump({**spec, "terminal": True}))
    job = lab.ok("submit", "job.yaml").split()[-1]
    assert lab.wait(job, SECONDS) == 3
    assert lab.ok("shell", job, "--", "sh", "-c", "pwd; cat out.txt; which srun").splitlines() == [
        str(lab.work),
        "before",
        "/run/cockpit-slurm/bin/srun",
    ]
    lab.ok("holds", "end", job, "--yes")


def test_a_command_is_wrapped_into_a_script(lab: CockpitUser) -> None:
    job = lab.ok("submit", "--wrap", "echo one; hostname | cut -c1-4; echo $0").split()[-1]
    assert lab.wait(job, SECONDS) == 0
    assert output(lab, f"slurm-{job}.out") == ["one", "wrap", "/run/cockpit-slurm/slurm_script"]
    assert lab.run("submit").returncode == 64


def test_dos_line_breaks_are_refused_as_sbatch_does(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\r\n#SBATCH --mem=200M\r\ntrue\r\n")
    (lab.work / "job.sh").write_bytes(b"#!/bin/bash\r\n#SBATCH --mem=200M\r\ntrue\r\n")
    assert b"has DOS line breaks" in lab.run("submit", "job.sh").stderr


def test_a_script_may_be_submitted_again_while_its_job_runs(lab: CockpitUser) -> None:
    lab.write("job.sh", "#!/bin/bash\n#SBATCH -J same --mem=200M\necho $SLURM_JOB_ID\n")
    first = lab.ok("submit", "--hold", "job.sh").split()[-1]
    done = lab.run("submit", "job.sh", "job.sh")
    second, third = (line.split()[-1] for line in done.stdout.decode().splitlines())
    assert b"a job called same is there already" in done.stderr
    assert len({first, second, third}) == 3
    assert (lab.wait(second, SECONDS), lab.wait(third, SECONDS)) == (0, 0)
    assert output(lab, f"slurm-{second}.out") == [second]
    lab.ok("cancel", first, "--yes")
