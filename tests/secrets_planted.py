"""Texts that each hold a secret, and a cluster all of whose texts are such: `planted` is a part of every secret."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.store.codec import from_line
from tests.doubles.hostile_cluster import HostileBackend, with_attacks
from tests.doubles.samples import outlook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.forecast import Outlook
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.spec import JobSpec

PLANTED = "planted"
TEXTS = (
    "HF_TOKEN=planted-1",
    "run --password planted-2 --epochs 3",
    "run --api-key='planted 3' now",
    "git clone https://me:planted-4@host/x",
    "hf_PlantedAbCdEfGhIjKlMnOp",
    "ghp_Planted0123456789abcdefABCDEF",
    "AKIAPLANTED0123456789",
    "sk-proj-Planted0123456789abcdef",
    "eyJPlantedhbGciOiJI.eyJPlantedzdWIiOiI.Planted-abc",
    "curl -H 'Authorization: Bearer planted-5'",
    '{"client_secret": "planted-6"}',
    "db password: planted-7",
    "AWS_SECRET_ACCESS_KEY=planted/8",
)
ENV = {"WANDB_API_KEY": "planted-9", "KEY": "planted-10", "DATABASE": "postgres://u:planted-11@db/x", "PLAIN": "seen"}
EVENTS = Path(__file__).parent / "store/data/events.jsonl"


class SecretsBackend(HostileBackend):
    """Its log also prints the value of a secret variable without its name, and the private key of a file."""

    def __init__(self) -> None:
        super().__init__(TEXTS)
        self.log = "\n".join(
            (
                *TEXTS,
                "printed planted-9 alone",
                "-----BEGIN PRIVATE KEY-----",
                "MIIplanted",
                "AAAA",
                "-----END PRIVATE KEY-----",
            )
        ).encode()
        self.errors = self.log
        records = (from_line(line) for line in EVENTS.read_bytes().splitlines())
        self.event_records = [with_attacks(record, islice(cycle(TEXTS), 7, None)) for record in records]

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        shown = await super().job(job, task=task)
        return replace(shown, job=replace(shown.job, spec=replace(shown.job.spec, env=ENV)))

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        return [with_attacks(outlook(), cycle(TEXTS)) for _ in specs]
