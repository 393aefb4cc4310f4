"""Reads the table `[clusters]` of config.toml: the user's names for clusters, and their addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from cockpit.config.cluster_names import DEMO, EVERY_CLUSTER, OWN, SLURM, SYSTEM
from cockpit.config.filters import NAME
from cockpit.formats.kinds import ListOf, Path, Reading, Schema, Text, described
from cockpit.formats.measures import Checked, duration
from cockpit.formats.tables import Field, Table
from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.spec import label_error
from cockpit.model.text import visible

ASKED_SECONDS = Bounds(1, 3600, " s")
PATIENCE_SECONDS = Bounds(1, 600, " s")
MOST_NAMESPACES = 200
TAKEN = frozenset({EVERY_CLUSTER, OWN, SYSTEM, SLURM, DEMO})
"""Names that have a meaning of their own."""


_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def namespace_error(text: str) -> str | None:
    """Return the error of the name of a namespace of Kubernetes; None: it is valid (RFC 1123 label)."""
    if _NAMESPACE.fullmatch(text):
        return None
    return f'"{visible(text)}" is no namespace; its name has small letters, digits and -, 63 at most'


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of config.toml. A field that is None takes the setting of the same name."""

    address: str
    token_file: str = ""
    ask_every_seconds: int | None = None
    patience_seconds: int | None = None
    namespaces: tuple[str, ...] = ()


MEMBER = Table(
    Member,
    [
        Field(
            "address",
            Checked(Text(), label_error),
            "`ssh://ann@login`, `slurmrestd+unix:///run/slurmrestd.sock`, `slurmrestd+https://ann@host:6820`, "
            "`kube:CONTEXT`, `snapshot:FILE`, `recorded:22.05`, or a name such as `slurm`, `local` and `demo`.",
            required=True,
        ),
        Field(
            "token_file",
            Path(),
            "The file of the token for slurmrestd, as `scontrol token` prints it; else `SLURM_JWT` has it.",
        ),
        Field("ask_every", duration(ASKED_SECONDS), "Replaces the setting `ask_every`.", attribute="ask_every_seconds"),
        Field("patience", duration(PATIENCE_SECONDS), "Replaces the setting `patience`.", attribute="patience_seconds"),
        Field(
            "namespaces",
            ListOf(Checked(Text(), namespace_error), MOST_NAMESPACES),
            "The namespaces of a Kubernetes cluster that are read; without them all that you may list.",
        ),
    ],
    short="address",
)


class Members:
    """Reads lines such as `lab = "ssh://ann@login"`, and tables `[clusters.lab]` with an `address`."""

    stand_in: Mapping[str, Member] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, Member]:
        if not isinstance(value, dict):
            reading.wrong(at, f'is {described(value)}; write a table [clusters] with lines such as lab = "ssh://login"')
            return self.stand_in
        return {name: self._member(name, item, f"{at}.{visible(name)}", reading) for name, item in value.items()}

    def write(self, value: Mapping[str, Member]) -> dict[str, str]:
        return {name: member.address for name, member in value.items()}

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, MEMBER.schema()]}}

    def _member(self, name: str, value: object, at: str, reading: Reading) -> Member:
        if name in TAKEN or not NAME.fullmatch(name):
            taken = f"means something already ({', '.join(sorted(TAKEN))})" if name in TAKEN else "is no name"
            reading.wrong(at, f"{taken}; a name has letters, digits, -, _ and dots")
        return MEMBER.read(value, at, reading)
