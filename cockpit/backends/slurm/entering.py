"""Makes the command that opens a shell in a running job, or in a new job for the files of a failed one."""

from __future__ import annotations

from cockpit.backends.slurm.mapping.containers import HeldContainer, Runtime, held_container_of
from cockpit.backends.slurm.mapping.holding import folder_copied
from cockpit.backends.slurm.mapping.script import gres
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind

SHELL = ("/bin/bash", "-l")


def command_in_new_job(job: Job, comment: str, request: ShellRequest) -> tuple[str, ...]:
    """Return an srun of a new job of the same size, in the copy of a failed job's folder or in its held container.

    Refused when there is neither any more.
    """
    each, container, copy = job.spec.specs[0], held_container_of(comment), folder_copied(comment)
    if container is None and not copy:
        message = f"Job {slurm_id(job.id)} is {job.state}, and Slurm no longer reports where its remaining files are."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
    # Only one node: the files are looked at, the job does not run again.
    size = ("--nodes=1", "--ntasks=1", f"--cpus-per-task={each.cpus}", f"--mem={each.memory_mib}M")
    cards = (f"--gres={gres(each)}",) if each.card_milli else ()
    place = (f"--partition={','.join(job.partitions)}",) if job.partitions else ()
    whose = (f"--account={job.account}",) if job.account else ()
    # A held container is on its node; a copied folder is reached from every node.
    where = (f"--chdir={copy}",) if container is None else (f"--nodelist={container.node}",)
    pty = ("--pty",) if request.terminal else ()
    own = (f"--job-name={job.spec.name}-look", *size, *cards, *place, *whose, *where, *pty)
    return ("srun", *own, *_within(container), *(request.command or SHELL))


def _within(container: HeldContainer | None) -> tuple[str, ...]:
    if container is None:
        return ()
    if container.runtime is Runtime.PYXIS:
        return (f"--container-name={container.kept}",)
    return ("apptainer", "exec", "--overlay", container.kept, container.image)


def command(job: Job, folder: str, request: ShellRequest) -> tuple[str, ...]:
    """Return an srun on the node of that rank, in the job's working folder, within its allocation but beside its steps.

    Refused when the job does not run.
    """
    attempt = job.attempt
    if (job.state is not JobState.RUNNING and not job.kept) or attempt is None:
        raise RequestRefused(
            Refusal(
                RefusalKind.CONFLICT,
                f"Job {slurm_id(job.id)} is {job.state}: only a running job can be entered. One that is submitted with "
                "`terminal` keeps its allocation for a while when it fails.",
            )
        )
    if not 0 <= request.rank < len(attempt.placement):
        last = len(attempt.placement) - 1
        raise RequestRefused(
            Refusal(RefusalKind.NOT_FOUND, f"Job {slurm_id(job.id)} has nodes 0 to {last}, in the order of its list.")
        )
    node = attempt.placement[request.rank].node
    # --overlap (since 20.11): the step shares CPUs and cards with the steps that run, else it would wait for them to
    # end.
    where = ("srun", "--overlap", f"--jobid={slurm_id(job.id)}", "--nodes=1", "--ntasks=1", f"--nodelist={node}")
    chdir = (f"--chdir={folder}",) if folder.startswith("/") else ()
    pty = ("--pty",) if request.terminal else ()
    return (*where, *chdir, *pty, *(request.command or SHELL))
