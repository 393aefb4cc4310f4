"""An elastic spot job from its arena line to its end: it runs, loses a node, is suspended, resumes and grows.

The launcher runs a small driver that does with /etc/edl/discover_hosts.sh what horovodrun does: it reads `host:slots`
every second, starts the training script on each new host, and never again on one that failed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

WORKER_NODE = '{{ name = "n{}", cpus = 1, memory = "128M", taints = ["spot"], cards = [{{ model = "T4" }}] }}'
HEAD_NODE = '{ name = "head", cpus = 1, memory = "2G", labels = { role = "head" } }'
RULES = f"overcommit = true\nnodes = [{', '.join([*map(WORKER_NODE.format, range(1, 5)), HEAD_NODE])}]\n"
SUBMIT = r"""arena submit etjob \
    --loglevel=info --namespace=default --name=tune \
    --spot-instance --toleration=all --launcher-selector=role=head \
    --workers=3 --min-workers=2 --max-workers=4 --max-wait-time=300 \
    --gpus=1 --cpu=1 --memory=64Mi --image=host --data-dir={folder}:/code \
    --job-restart-policy=OnFailure --job-backoff-limit=2 --worker-restart-policy=Always \
    "/usr/bin/python3 /workspace/volume/code/drive.py -np \$((\${{workers}}*\${{gpus}})) \
    --min-np \$((\${{minWorkers}}*\${{gpus}})) --max-np \$((\${{maxWorkers}}*\${{gpus}})) \
    --host-discovery-script /etc/edl/discover_hosts.sh /usr/bin/python3 /workspace/volume/code/train.py"
"""
DRIVE = """
import subprocess, sys, time
words = sys.argv[1:]
at = words.index("--host-discovery-script")
print(*words[:at], flush=True)
running, failed, shown = {}, set(), None
while True:
    lines = subprocess.run([words[at + 1]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    hosts = [line.rpartition(":")[0] for line in lines if line.endswith(":1")]
    if lines != shown:
        shown = lines
        print("hosts", *lines, flush=True)
    for host in hosts:
        if host not in running and host not in failed:
            running[host] = subprocess.Popen(["ssh", host, *words[at + 2 :]])
    for host, process in list(running.items()):
        if process.poll() is not None:
            del running[host]
            failed.add(host)
            if process.returncode == 0:
                sys.exit(0)
    time.sleep(1)
"""
TRAIN = """
import os, sys, time
import kubeai.elastic as kubeai

saved = os.environ["COCKPIT_CHECKPOINTS"] + "/state"
host = os.uname().nodename
print(host, "from", open(saved).read() if os.path.exists(saved) else "nothing", flush=True)
kubeai.init()
while kubeai.check_alive():
    if os.path.exists(os.environ["COCKPIT_CHECKPOINTS"] + "/end"):
        sys.exit(0)
    time.sleep(0.1)
if kubeai.checkpoint_requested():
    with kubeai.save(saved) as path, open(path, "w") as file:
        file.write("checkpoint")
print(host, "saved", flush=True)
sys.exit(-1)
"""


def log(user: CockpitUser, job: str) -> list[str]:
    """The launcher's output, which has that of the programs that it starts in the workers."""
    return user.ok("logs", f"{job}/0").splitlines()


def hosts(user: CockpitUser, job: str) -> list[str]:
    """The hosts that the launcher has found last."""
    return next((line.split()[1:] for line in reversed(log(user, job)) if line.startswith("hosts ")), [])


def workers(*numbers: int) -> list[str]:
    return [f"tune-worker-{number}:1" for number in numbers]


def replicas(user: CockpitUser, job: str) -> list[str]:
    """The lines that `kubectl get pod` would list: name, READY, STATUS and RESTARTS."""
    table = user.ok("job", job, "--replicas", "--columns", "name,ready,status,restarts")
    return [" ".join(line.split()) for line in table.splitlines()[1:]]


def sentences(user: CockpitUser, job: str) -> list[str]:
    return [row["sentence"] for row in user.rows("events", job)]


@pytest.mark.req("EL-02", "EL-04", "EL-06")
def test_an_elastic_spot_job_lives_through_reclaims_from_its_arena_line_to_its_end(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    sent = user.work / "alerts"
    user.configure("config.toml", f'alert_command = "tee -a {sent}"\nalert_url = "https://lab.example.org/{{job}}"\n')
    user.write("code/drive.py", DRIVE)
    user.write("code/train.py", TRAIN)
    script = user.write("tune.sh", SUBMIT.format(folder=user.work / "code"))
    job = user.ok("submit", str(script)).split()[-1]

    # It starts with its workers, and grows into the fourth node.
    eventually(lambda: hosts(user, job) == workers(0, 1, 2, 3))
    assert log(user, job)[0] == "-np 3 --min-np 2 --max-np 4"
    names = ["tune-launcher", *(f"tune-worker-{number}" for number in range(4))]
    eventually(lambda: replicas(user, job) == [f"{name} 1/1 running 0" for name in names])
    for number in range(4):
        eventually(lambda number=number: f"tune-worker-{number} from nothing" in log(user, job))

    # A node is taken back: the launcher goes on with the others, before its worker is gone.
    user.ok("reclaim", "n2", "--grace", "60")
    eventually(lambda: hosts(user, job) == workers(0, 2, 3))
    eventually(lambda: "tune-worker-1 saved" in log(user, job))
    assert "tune-worker-1 1/1 leaving 0" in replicas(user, job)
    assert user.row("jobs", "--filter", f"id:{job}", "--columns", "state,retries") == {"state": "running", "retries": 0}

    # Below its minimum every worker gets the notice, a checkpoint is saved, and the job is suspended.
    for node in ("n1", "n3"):
        user.ok("reclaim", node, "--grace", "5")
    eventually(lambda: user.row("jobs", "--filter", f"id:{job}")["state"] == "suspended")
    assert (user.work / "tune/state").read_text() == "checkpoint"
    assert user.row("jobs", "--filter", f"id:{job}", "--columns", "retries")["retries"] == 0

    # It resumes by itself from the checkpoint as soon as its minimum fits, and grows again.
    user.ok("nodes", "resume", "n1")
    eventually(lambda: hosts(user, job) == workers(0, 1))
    user.ok("nodes", "resume", "n2", "n3")
    eventually(lambda: len(hosts(user, job)) == 4)
    eventually(lambda: "tune-worker-0 from checkpoint" in log(user, job))
    (user.work / "tune/end").touch()
    assert user.wait(job) == 0

    # What happened was said: as events, and by the alerts' command.
    told = sentences(user, job)
    assert any(each.startswith("alert (reclaim): n2 is taken back: 1 worker has until ") for each in told)
    alerts = [json.loads(line) for line in sent.read_text().splitlines()]
    assert [each["alert"] for each in alerts] == ["reclaim", "suspended"]
    assert {each["command"] for each in alerts} == {f"cockpit job {job}"}
    assert {each["url"] for each in alerts} == {f"https://lab.example.org/{job}"}
