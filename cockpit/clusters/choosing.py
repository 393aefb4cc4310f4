"""Which cluster a command means: by its flag, the environment, the settings, or because Slurm is configured here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cockpit.config.clusternames import DEMO, EVERY_CLUSTER, OWN, SLURM, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.config.members import Member
    from cockpit.config.places import EnginePaths
    from cockpit.config.settings import Settings

RECORDED = "recorded:"
"""Before the version of a recorded Slurm cluster."""
SSH = "ssh://"
"""Before the login node of a Slurm cluster elsewhere."""
SNAPSHOT = "snapshot:"
"""Before the file that a snapshot is in."""
REST = ("slurmrestd+unix:", "slurmrestd+http:", "slurmrestd+https:")
"""Before where a slurmrestd listens."""

CLUSTERS = {
    OWN: "your own engine on this machine",
    SYSTEM: "this machine's engine",
    SLURM: "the Slurm cluster of this login node",
    DEMO: "made up, to look around",
    EVERY_CLUSTER: "all clusters that you use, as one",
}


def chosen(cluster: str | None) -> str:
    """The name of the cluster that is meant; empty: whichever embedded one there is. Raises `CockpitError`."""
    from cockpit.errors import CockpitError

    name = cluster or os.environ.get("COCKPIT_CLUSTER") or _default_cluster() or slurm_if_configured()
    if name not in {*CLUSTERS, ""} and not _is_address(name) and name not in members():
        names = ", ".join(repr(each) for each in (*members(), *CLUSTERS))
        ways = f"{names}, '{SSH}USER@LOGIN', '{REST[0]}///SOCKET', '{SNAPSHOT}FILE' and '{RECORDED}VERSION'"
        raise CockpitError(f"There is no cluster {name!r}. This cockpit knows {ways}; see -c, and [clusters].")
    return name


def is_read_in_this_process(name: str) -> bool:
    """It has no engine of ours to ask: its backend needs a loop here."""
    address = address_of(name)
    return address in {SLURM, EVERY_CLUSTER} or _is_address(address)


def members() -> Mapping[str, Member]:
    """The clusters of config.toml, by the names that they have there."""
    places = own_places()
    return settings_of(places).clusters if places.configured else {}


def openable() -> dict[str, str]:
    """Names to choose from, with a word about each: those of config.toml first."""
    return {**{name: member.address for name, member in members().items()}, **CLUSTERS}


def address_of(name: str) -> str:
    """What config.toml says for the name; else the name is one."""
    if name in CLUSTERS or not name or _is_address(name):
        return name
    found = members().get(name)
    return found.address if found is not None else name


def _is_address(name: str) -> bool:
    return name.startswith((RECORDED, SNAPSHOT, SSH, *REST))


def settled(name: str) -> str:
    """The one that an empty name means just now."""
    return name or (SYSTEM if system_runs() else OWN)


def system_meant() -> bool:
    """Whether commands talk to the machine-wide engine just now."""
    return settled(chosen(None)) == SYSTEM


def system_runs() -> bool:
    """Whether a machine-wide engine answers."""
    from cockpit.backends.local.start import connect
    from cockpit.config.places import system_paths

    channel = connect(system_paths(), system=True)
    if channel is None:
        return False
    channel.close()
    return True


def own_places() -> EnginePaths:
    """Of this user's engine."""
    from cockpit.config.places import paths

    return paths(os.geteuid(), os.environ)


def settings_of(places: EnginePaths) -> Settings:
    """What its files and the environment set."""
    from cockpit.config.loading import load_settings

    return load_settings(env=os.environ, files=places.config_files)


def configured(places: EnginePaths) -> EnginePaths:
    """With the state folder that the settings name."""
    return places.with_state_folder(settings_of(places).state_folder)


def _default_cluster() -> str:
    """What config.toml says; where there is none, nothing need be loaded to read it."""
    places = own_places()
    return settings_of(places).cluster if places.configured else ""


def slurm_if_configured() -> str:
    """Return the name of this machine's Slurm cluster, whether it answers or not; empty where none is configured."""
    return SLURM if slurm_configured_by() else ""


def slurm_configured_by() -> str:
    """Return what says that this machine belongs to a Slurm cluster; empty where nothing does."""
    from cockpit.clusters.slurm_here import configured_by

    return configured_by(os.environ, own_places().state)


def advice_when_unreachable(cluster: str | None) -> str:
    """Return what to do where the cluster that nobody named does not answer; empty where it was named."""
    if cluster or os.environ.get("COCKPIT_CLUSTER") or _default_cluster():
        return ""
    why = slurm_configured_by()
    return f"This machine's cluster is Slurm ({why}). `-c {OWN}` opens your own engine on this machine." if why else ""
