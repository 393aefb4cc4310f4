"""A whole Slurm cluster on this machine: the daemons of `tests/e2e` and four nodes that run jobs of two ordinary users.

Everything is in one folder and on loopback; nothing needs systemd. Cards are files that gres.conf names.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.slurm_daemons import SlurmDaemons, missing
from tests.ports import free_ports

NODE_PROGRAMS = ("slurmd", "slurmrestd", "sbatch", "srun", "scancel", "squeue", "sprio", "sshare", "sacct")
NODE_PROGRAMS += ("useradd", "setpriv")
ADA, BEN = f"ada{os.getpid()}", f"ben{os.getpid()}"
PEOPLE = (ADA, BEN)
"""Of this run alone: another one on the same machine has its own."""
FIRST_UID = 300_000 + 2 * os.getpid() % 1_000_000
CARDS = {"n1": ("a100", 4), "n2": ("a100", 4), "n3": ("h100", 8), "n4": ("a100_1g.5gb", 7)}
SHARDS = {"n2": 16}
"""Into how many parts a node's cards are cut, in all."""
CONF = """
ClusterName=cockpit
SlurmctldHost=localhost
AuthType=auth/munge
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MinJobAge=600
MaxArraySize=2000
KillWait=2
MessageTimeout=60
SlurmdTimeout=600
BatchStartTimeout=120
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=2,bf_window=2880,bf_resolution=60,bf_continue,enable_user_top
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PriorityType=priority/multifactor
PriorityCalcPeriod=1
PriorityMaxAge=1-0
PriorityWeightAge=10000
PriorityWeightFairshare=20000
PriorityWeightJobSize=2000
PriorityWeightPartition=3000
PriorityWeightQOS=5000
PriorityWeightTRES=CPU=500,Mem=300,GRES/gpu=4000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100,gres/shard,license/matlab
AccountingStoreFlags=job_comment
GresTypes=gpu,shard
Licenses=matlab:4
"""
PARTITIONS = """
PartitionName=debug Nodes=n4 MaxTime=30 DefaultTime=5 PriorityJobFactor=10 State=UP
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=2-0 DefaultTime=60 PriorityJobFactor=50 State=UP
PartitionName=gpu Nodes=n[1-3] MaxTime=1-0 DefaultTime=30 PriorityJobFactor=100 State=UP
"""
ACCOUNTS = f"""
add qos high
modify qos where name=high set Priority=100
add account vision Fairshare=60
add account nlp Fairshare=40
add user {ADA} account=vision Fairshare=2
add user {BEN} account=nlp Fairshare=1
modify user where name={ADA},{BEN} set qos=normal,high DefaultQOS=normal
"""
LIMITS = """
modify qos where name=high set MaxTRESPerUser=gres/gpu=2
"""
"""Of resources that slurmctld tells the database of."""
SINCE_22 = ("AccountingStoreFlags=job_comment\n", ",gres/shard", ",shard")
"""What 20.11 has no word for: it keeps comments anyway, and cuts no cards into shards."""


def lacking() -> list[str]:
    """What is not installed."""
    plugin = any(Path("/usr/lib").glob("*/slurm-wlm/auth_jwt.so"))
    programs = (name for name in NODE_PROGRAMS if shutil.which(name) is None)
    return [*missing(), *programs, *(() if plugin else ("slurm-wlm-jwt-plugin",))]


class RealCluster(SlurmDaemons):
    """Nodes n1 and n2 with four A100 each, those of n2 cut into shards; n3 with eight H100; n4 with one cut by MIG."""

    def begin(self) -> None:
        said = subprocess.run(["slurmd", "-V"], check=True, capture_output=True, text=True).stdout.split()[-1]
        self.version = tuple(int(each) for each in said.split("."))
        self.shards = SHARDS if self.version >= (22, 5) else {}
        self._make_people()
        self._nodes = dict(zip(("n1", "n2", "n3", "n4"), free_ports(4), strict=True))
        self._make_cards()
        self.serve("\n".join([self._conf(), *self._own_lines(), *self._node_lines(), PARTITIONS]), accounts=ACCOUNTS)
        self.keep_accounts(LIMITS)
        for node in self._nodes:
            (self.folder / "spool" / node).mkdir(parents=True)
            self._start("slurmd", "-D", "-N", node, until=lambda node=node: self._is_up(node), name=f"slurmd-{node}")

    def tokens(self) -> list[str]:
        """JSON web tokens, for slurmrestd."""
        key = self.folder / "jwt.key"
        if not key.exists():
            key.write_bytes(bytes(range(64)))
            key.chmod(0o600)
        return ["AuthAltTypes=auth/jwt", f"AuthAltParameters=jwt_key={key}"]

    def clear(self) -> None:
        """End every job, and wait until none is left."""
        for person in PEOPLE:
            self.ask("scancel", f"--user={person}")
        self._until_no_job_is_left()

    def end(self) -> None:
        if self.lives("slurmctld"):  # else each question to it waits a minute
            self.clear()
        self.stop()
        for person in PEOPLE:
            subprocess.run(["userdel", person], check=False, capture_output=True)

    @property
    def env(self) -> dict[str, str]:
        return self._env

    def home(self, person: str) -> Path:
        return self.folder / "home" / person

    def controller(self) -> int:
        """The process of slurmctld."""
        return int((self.folder / "slurmctld.pid").read_text())

    def calls(self, kind: str) -> int:
        """How often the controller was asked that, as sdiag counts."""
        found = re.search(rf"^\s*{kind}\s*\(\s*\d+\) count:(\d+)", self.ask("sdiag") or "", re.MULTILINE)
        return int(found[1]) if found else 0

    def signal_controller(self, number: signal.Signals) -> None:
        os.kill(self.controller(), number)

    def as_person(self, person: str, *words: str, stdin: str = "") -> str:
        """What a command says to one of the people. It must succeed."""
        known = pwd.getpwnam(person)
        who = ("setpriv", f"--reuid={known.pw_uid}", f"--regid={known.pw_gid}", "--init-groups")
        env = {**self.env, "HOME": str(self.home(person)), "USER": person}
        done = subprocess.run(
            [*who, *words],
            env=env,
            cwd=self.home(person),
            input=stdin,
            capture_output=True,
            timeout=60,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def submit(self, person: str, *options: str, run: str) -> int:
        """The job's number."""
        account = "vision" if person == ADA else "nlp"
        return int(self.as_person(person, "sbatch", "--parsable", f"--account={account}", *options, f"--wrap={run}"))

    def _make_people(self) -> None:
        for uid, person in enumerate(PEOPLE, FIRST_UID):
            home = self.home(person)
            home.mkdir(parents=True, exist_ok=True)
            made = [
                "useradd",
                f"--uid={uid}",
                "--no-create-home",
                f"--home-dir={home}",
                "--shell=/bin/bash",
                "--password=*",
                person,
            ]
            subprocess.run(made, check=True, capture_output=True)
            os.chown(home, uid, pwd.getpwnam(person).pw_gid)

    def _make_cards(self) -> None:
        folder = self.folder / "dev"
        folder.mkdir()
        lines = []
        for node, (model, count) in CARDS.items():
            for number in range(count):
                (folder / f"{node}-{number}").touch()
            lines.append(f"NodeName={node} Name=gpu Type={model} File={folder}/{node}-[0-{count - 1}]")
        lines += [f"NodeName={node} Name=shard Count={count}" for node, count in self.shards.items()]
        (self.folder / "gres.conf").write_text("\n".join([*lines, ""]))
        disabled = self.version >= (23,)  # older ones do not know the word, and do without
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if disabled else "")

    def _conf(self) -> str:
        conf = CONF
        for words in SINCE_22 if self.version < (22, 5) else ():
            conf = conf.replace(words, "")
        return conf

    def _own_lines(self) -> list[str]:
        return [f"SlurmdSpoolDir={self.folder}/spool/%n", f"SlurmdPidFile={self.folder}/slurmd-%n.pid"]

    def _node_lines(self) -> list[str]:
        sizes = {"n1": (8, 64_000), "n2": (8, 64_000), "n3": (16, 128_000), "n4": (8, 32_000)}
        return [
            f"NodeName={node} NodeHostname=localhost Port={port} CPUs={sizes[node][0]} RealMemory={sizes[node][1]}"
            f" Gres=gpu:{CARDS[node][0]}:{CARDS[node][1]}"
            + (f",shard:{self.shards[node]}" if node in self.shards else "")
            for node, port in self._nodes.items()
        ]

    def _is_up(self, node: str) -> bool:
        return (self.ask("sinfo", "-h", "-n", node, "-o", "%t") or "").strip() in {
            "idle",
            "idle\nidle",
            "idle\nidle\nidle",
        }

    def _until_no_job_is_left(self) -> None:
        """A step's daemon outlives the node's."""
        deadline = time.monotonic() + 60
        while (self.ask("squeue", "-h", "-o", "%i") or "").strip() and time.monotonic() < deadline:
            time.sleep(0.2)
