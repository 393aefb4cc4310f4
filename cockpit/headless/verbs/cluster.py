"""`cockpit cluster`: show, write, export and choose the rules of a cluster; `snapshot`: write its state as a file."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError, RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError, Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.records import JSON_VERSION, encoded_lines
from cockpit.headless.services import Call
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe, safe_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.formats.cluster.fields import ClusterFile
    from cockpit.formats.slurm.spec import SlurmSpec
    from cockpit.model.cluster import Cluster


STDIN = "-"
SCRIPT_MODE = 0o755


def show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=["toml", "json"], default="toml", help="toml (as cluster.toml) or json"
    )


async def run_show(call: Call) -> int:
    rules = await call.backend.rules()
    if call.args.output == "json":
        call.streams.write(encoded_lines([{"version": JSON_VERSION, "cluster": rules}]))
        return ExitCode.OK
    from cockpit.formats.cluster.text import file_of_rules, rules_text
    from cockpit.present.events.sentences import member_lines

    nodes = [row.node for row in await call.backend.nodes()]
    written = rules_text(file_of_rules(rules, nodes))
    call.streams.text(safe_lines("\n".join((written, *member_lines(rules.members)))) + "\n")
    return ExitCode.OK


def init_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="spec", metavar="FILE", help="a JSON with an orchestratorSpec.slurmSpec; - is stdin"
    )
    parser.add_argument("--force", action="store_true", help="other rules in place of those that cluster.toml has")
    parser.add_argument("--system", action="store_true", help="of the machine-wide engine, in /etc/cockpit-cluster")


async def run_init(call: Call) -> int:
    """Write cluster.toml. One without rules is completed; one with rules is replaced only by `--force`, and kept."""
    from cockpit.formats.clusterinit import has_rules, initial_cluster

    site, spec = call.services.site(call.args.system), _spec(call)
    source, text = str(site.cluster_file), site.cluster_text()
    if text is not None and has_rules(text, source) and not call.args.force:
        raise RequestRefused(
            Refusal(
                RefusalKind.CONFLICT,
                f"{source} has rules already. Edit them, or put others in their place with --force; "
                "nodes, pools, storages and accounts stay, and the file before is kept.",
            )
        )
    # From the file that is there: nodes, pools, storages and accounts in it are the administrator's, and stay.
    initial = initial_cluster(site.machine(), spec, text, source=source, spec_source=str(call.args.spec))
    kept = site.write_cluster(initial.text)
    call.streams.line(f"wrote {safe(source)}" + (f"; the one before is {safe(str(kept))}" if kept is not None else ""))
    call.streams.lines(map(safe, _summary(initial.file, spec)))
    for warning in spec.warnings if spec is not None else ():
        call.streams.say(f"warning: {warning}")
    return ExitCode.OK


def export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--slurm-conf",
        nargs="?",
        const=STDIN,
        required=True,
        metavar="FILE",
        help="slurm.conf, into this file; none or -: to the output",
    )


async def run_export(call: Call) -> int:
    from cockpit.formats.slurm.conf import slurm_conf

    rules = await call.backend.rules()
    nodes = [row.node for row in await call.backend.nodes()]
    file = _target(call.args.slurm_conf)
    # Only with a file: slurm.conf names the scripts by their paths beside it.
    conf = slurm_conf(rules, nodes, scripts=_write_scripts(file.parent, rules) if file is not None else None)
    if file is None:
        call.streams.text(conf.text)
    else:
        _write(file, conf.text)
        call.streams.line(f"wrote {safe(str(file))}")
    # On stderr, so that the text on stdout can be redirected into a file.
    for sentence in conf.to_do:
        call.streams.say(f"to fill in: {sentence}")
    return ExitCode.OK


def use_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="CLUSTER", help="the cluster: local, system or demo")


async def run_use(call: Call) -> int:
    if not call.args.name:
        raise UsageError("NAME is empty; give local, system or demo")
    file = call.services.use_cluster(call.args.name)
    call.streams.line(f"commands open {safe(call.args.name)} from now on, unless -c says otherwise ({safe(str(file))})")
    return ExitCode.OK


def _spec(call: Call) -> SlurmSpec | None:
    if call.args.spec is None:
        return None
    from cockpit.formats.slurm.spec import read_slurm_spec

    if call.args.spec == STDIN:
        content = call.streams.stdin.read()
    else:
        try:
            content = Path(call.args.spec).read_bytes()
        except OSError as error:
            reason = f"{safe(call.args.spec)}: cannot be read: {error.strerror}"
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, reason)) from None
    return read_slurm_spec(call.args.spec, content.decode("utf-8", "surrogateescape"))


def _summary(file: ClusterFile, spec: SlurmSpec | None) -> Iterator[str]:
    """Return what was set, and the next step."""
    yield f"partitions: {', '.join(each.name for each in file.partitions)}"
    yield f"priority: {file.priority.kind}; preemption: {file.preemption.kind}, {','.join(file.preemption.mode)}"
    yield f"enforced of accounts: {', '.join(file.accounting.enforce) or 'nothing'}"
    if spec is not None:
        for pool, nodes in file.node_pools.items():
            yield f"pool {pool}: {', '.join(nodes) or 'no node yet'}"
        if spec.storage:
            yield f"/home in containers: {file.home.get(spec.storage, '')} ({spec.storage})"
        scripts = len(file.prolog_bash_scripts) + len(file.epilog_bash_scripts)
        if scripts:
            yield f"prolog and epilog scripts: {scripts}, run around each job by the engine's own user"
        yield "these settings are fixed (mutable = false); nodes, pools, storages and accounts are yours to change"
    yield "next: cockpit engine restart"
    if file.accounting.enforce and not file.users:
        yield "then: cockpit accounts add NAME, cockpit accounts add-user USER --account NAME; then users may submit"


def _target(name: str) -> Path | None:
    """Return the file to write; None: standard output."""
    return None if name == STDIN else Path(name).absolute()


def _write_scripts(folder: Path, rules: Cluster) -> dict[str, str]:
    """Write the scripts as files, which Slurm wants: 00.sh, 01.sh … in `prolog.d` and `epilog.d`."""
    return {
        name: pattern
        for name, scripts in (("Prolog", rules.prolog_scripts), ("Epilog", rules.epilog_scripts))
        if (pattern := _write_folder(folder / f"{name.lower()}.d", scripts))
    }


def _write_folder(folder: Path, scripts: Sequence[str]) -> str:
    for number, script in enumerate(scripts):
        file = folder / f"{number:02}.sh"
        _write(file, script)
        file.chmod(SCRIPT_MODE)
    return f"{folder}/*.sh" if scripts else ""


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CockpitError(f"{file}: cannot be written: {error.strerror}") from None


SHOW = Verb(show_arguments, run_show, ("cockpit cluster show", "cockpit cluster show -o json"))
INIT = Verb(
    init_arguments,
    run_init,
    (
        "cockpit cluster init",
        "cockpit cluster init --from cluster.json",
        "cockpit cluster init --from cluster.json --force",
    ),
)
EXPORT = Verb(
    export_arguments,
    run_export,
    ("cockpit cluster export --slurm-conf", "cockpit cluster export --slurm-conf slurm.conf"),
)
USE = Verb(use_arguments, run_use, ("cockpit cluster use system",))


def snapshot_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it; - for stdout")


async def run_snapshot(call: Call) -> int:
    """Write the snapshot, readable by its owner alone since it names all users' jobs."""
    from cockpit.formats.snapshotfile import write_snapshot

    text = write_snapshot(await call.backend.snapshot())
    if call.args.file == "-":
        call.streams.write(text.encode())
        return ExitCode.OK
    try:
        _write_private(call.args.file, text.encode())
    except OSError as error:
        raise SpecErrors([f"{safe(call.args.file)}: cannot be written: {error.strerror}"]) from None
    call.streams.line(f"wrote {safe(call.args.file)}; open it with `cockpit -c snapshot:{safe(call.args.file)}`")
    return ExitCode.OK


def _write_private(file: str, text: bytes) -> None:
    # By the mode at creation: at no moment others can read it.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(text)


SNAPSHOT = Verb(
    snapshot_arguments, run_snapshot, ("cockpit snapshot cluster.json", "cockpit snapshot - | xz > cluster.json.xz")
)
