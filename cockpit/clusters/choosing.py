"""Chooses the cluster of a command.

The first of these counts: the flag `-c`, COCKPIT_CLUSTER, config.toml, the Slurm cluster that is configured on this
machine. Without any of them the name is empty, which means the embedded engine: the machine-wide one if it runs, else
the user's own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.config.cluster_names import DEMO, EVERY_CLUSTER, OWN, SLURM, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.config.members import Member
    from cockpit.config.places import EnginePaths
    from cockpit.config.settings import Settings


SESSION = "COCKPIT_ACCESS"
"""`model.access_level.ACCESS_VARIABLE`, which is in the environment of each session of `cockpit serve`. Written out,
since every command loads this module, and that one loads much more."""
RECORDED = "recorded:"
"""Prefix of a recorded Slurm cluster; its Slurm version follows."""
SSH = "ssh://"
"""Prefix of a Slurm cluster's login node."""
SNAPSHOT = "snapshot:"
"""Prefix of a snapshot; its file follows."""
KUBE = "kube:"
"""Prefix of a Kubernetes cluster; its context in the kubeconfig follows."""
NAMESPACES = "?namespaces="
"""What follows the context where only some namespaces are read: their names, with commas."""
REST = ("slurmrestd+unix:", "slurmrestd+http:", "slurmrestd+https:")
"""Prefixes of the address of a slurmrestd."""

CLUSTERS = {
    OWN: "your own engine on this machine",
    SYSTEM: "this machine's engine",
    SLURM: "the Slurm cluster of this login node",
    DEMO: "made up, to look around",
    EVERY_CLUSTER: "all clusters that you use, as one",
}


def chosen(cluster: str | None) -> str:
    """Return the name of the chosen cluster; empty: the embedded engine. Raises `CockpitError` for an unknown name."""
    from cockpit.errors import CockpitError

    name = cluster or os.environ.get("COCKPIT_CLUSTER") or _default_cluster() or slurm_if_configured()
    if cluster and _is_address(cluster) and not cluster.startswith(KUBE) and os.environ.get(SESSION):
        # An address would let a session open files and connections of this machine that are not configured.
        raise CockpitError(f"A session of cockpit serve opens clusters by their names, not by an address: {cluster!r}.")
    # `members` reads the settings and `kube_contexts` the kubeconfig, so they are asked last.
    if name not in {*CLUSTERS, ""} and not _is_address(name) and name not in members():
        contexts = kube_contexts()
        if name in contexts:
            return f"{KUBE}{name}"
        names = ", ".join(repr(each) for each in (*members(), *contexts, *CLUSTERS))
        ways = f"{names}, '{SSH}USER@LOGIN', '{REST[0]}///SOCKET', '{SNAPSHOT}FILE' and '{RECORDED}VERSION'"
        raise CockpitError(f"There is no cluster {name!r}. This cockpit knows {ways}; see -c, and [clusters].")
    return name


def is_read_in_this_process(name: str) -> bool:
    """Whether the cluster has no engine of cockpit's, so that its backend needs an event loop in this process."""
    address = address_of(name)
    return address in {SLURM, EVERY_CLUSTER} or _is_address(address)


def members() -> Mapping[str, Member]:
    """Return the clusters of config.toml by their names."""
    places = own_places()
    return settings_of(places).clusters if places.configured else {}


def kube_contexts() -> tuple[str, ...]:
    """Return the contexts of the user's kubeconfig, which `-c` takes by their names; none where it cannot be read."""
    from cockpit.backends.kubernetes.wire.kubeconfig import contexts
    from cockpit.errors import CockpitError

    try:
        return tuple(contexts(os.environ))
    except CockpitError:  # opening one of its contexts says why
        return ()


def openable() -> dict[str, str]:
    """Return the names that `-c` knows, each with a description; the names of config.toml come first."""
    of_members = {name: member.address for name, member in members().items()}
    return {**of_members, **{f"{KUBE}{each}": "a Kubernetes cluster" for each in kube_contexts()}, **CLUSTERS}


def address_of(name: str) -> str:
    """Return the address of a cluster in config.toml; any other name is itself an address."""
    if name in CLUSTERS or not name or _is_address(name):
        return name
    member = members().get(name)
    return member.address if member is not None else name


def _is_address(name: str) -> bool:
    return name.startswith((RECORDED, SNAPSHOT, SSH, KUBE, *REST))


def settled(name: str) -> str:
    """Return the name; in place of an empty one, the embedded engine that commands now talk to."""
    return name or (SYSTEM if system_runs() else OWN)


def system_meant() -> bool:
    """Whether commands now talk to the machine-wide engine."""
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
    """Return the paths of this user's engine."""
    from cockpit.config.places import paths

    return paths(os.geteuid(), os.environ)


def settings_of(places: EnginePaths) -> Settings:
    """Return the settings of the configuration files and the environment."""
    from cockpit.config.loading import load_settings

    return load_settings(env=os.environ, files=places.config_files)


def configured(places: EnginePaths) -> EnginePaths:
    """Return the paths with the state folder that the settings name."""
    return places.with_state_folder(settings_of(places).state_folder)


def _default_cluster() -> str:
    """Return the default cluster of config.toml; without the file the settings are not even imported."""
    places = own_places()
    return settings_of(places).cluster if places.configured else ""


def slurm_if_configured() -> str:
    """Return the name of this machine's Slurm cluster, whether it answers or not; empty where none is configured."""
    return SLURM if slurm_configured_by() else ""


def slurm_configured_by() -> str:
    """Return what says that this machine belongs to a Slurm cluster; empty where nothing does."""
    return configured_by(os.environ, own_places().state)


def advice_when_unreachable(cluster: str | None) -> str:
    """Return advice where the cluster that was chosen by default does not answer; empty where the user named it."""
    if cluster or os.environ.get("COCKPIT_CLUSTER") or _default_cluster():
        return ""
    why = slurm_configured_by()
    return f"This machine's cluster is Slurm ({why}). `-c {OWN}` opens your own engine on this machine." if why else ""


VARIABLE = "SLURM_CONF"
FILES = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/usr/local/etc/slurm.conf",
)
"""Paths at which packages, builds from source and Slurm's configless mode have the configuration."""


def configured_by(env: Mapping[str, str], state: str) -> str:
    """Return the variable or file that shows that this machine has a Slurm cluster; empty when there is none.

    `state`: the user's state folder. A machine that once had a configuration is remembered there, so that a network
    share that is not mounted at the moment changes nothing. The variable SLURM_CONF is not remembered.
    """
    if env.get(VARIABLE):
        return f"{VARIABLE}={env[VARIABLE]}"
    mark = f"{state}/slurm-on-{os.uname().nodename}"
    file = next(filter(os.path.lexists, _files(env)), "")  # lexists: a link into a share that is away counts, too
    if file:
        _remember(mark, file)
        return file
    return f"{mark} (a Slurm configuration was here before)" if os.path.exists(mark) else ""


def _files(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the usual paths, then those of installations in folders of their own, such as `/opt/slurm/bin` on PATH."""
    yield from FILES
    for folder in env.get("PATH", "").split(os.pathsep):
        if folder.endswith("/bin") and os.path.exists(f"{folder}/scontrol"):
            yield f"{folder.removesuffix('bin')}etc/slurm.conf"


def _remember(mark: str, file: str) -> None:
    """Write the configuration's path into the mark file, once."""
    if os.path.exists(mark):  # before the import: importing pathlib takes longer than this look
        return
    from pathlib import Path

    with suppress(OSError):  # a home that cannot be written to stores no mark
        Path(mark).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(mark).write_text(f"{file}\n", encoding="utf-8")
