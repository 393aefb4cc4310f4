"""Jobs of Volcano are suspended and resumed by commands, objects that Volcano carries out and removes.

Source: Volcano, bus/v1alpha1 Command, and pkg/controllers/job/state: a resume raises `retryCount`, and a job whose
`retryCount` has reached its `maxRetry` fails when it is restarted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.resources import VOLCANO_COMMANDS, VOLCANO_JOBS
from cockpit.errors import RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob


def volcano_command(job: KubeJob, *, is_abort: bool) -> dict[str, Any]:
    """Return the manifest of the command that has Volcano abort a job, which deletes its pods, or resume it.

    Refuses a job that Volcano would let fail instead of resuming it: each resume counts as a retry. The command's name
    follows from the job, so that a command that is sent again is not carried out twice.
    """
    _check_retries(job)
    meta = job.meta
    action = "AbortJob" if is_abort else "ResumeJob"
    target = {"apiVersion": VOLCANO_JOBS.api_version, "kind": VOLCANO_JOBS.kind, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": VOLCANO_COMMANDS.api_version,
        "kind": VOLCANO_COMMANDS.kind,
        "metadata": {
            "name": f"{meta.name}-{action.lower()}",
            "namespace": meta.namespace,
            "ownerReferences": [{**target, "controller": True}],
        },
        "action": action,
        "target": target,
    }


def set_tasks(spec: dict[str, Any], pods: int) -> None:
    """Change the number of a job's pods by that of its workers: the task of that name, or else its only task.

    A gang of all pods stays one; a smaller one keeps its size as long as there are so many pods.
    """
    tasks = spec["tasks"]
    workers = next((each for each in tasks if each.get("name") == "worker"), tasks[0] if len(tasks) == 1 else None)
    others = sum(int(each.get("replicas", 1)) for each in tasks if each is not workers)
    if workers is None or pods <= others:
        names = ", ".join(str(each.get("name", "")) for each in tasks)
        message = f"nodes: a job of Volcano with the tasks {names} has no {pods} pods of which some are workers."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    before = others + int(workers.get("replicas", 1))
    workers["replicas"] = pods - others
    if "minAvailable" in workers:
        workers["minAvailable"] = min(int(workers["minAvailable"]), pods - others)
    least = int(spec.get("minAvailable") or before)
    spec["minAvailable"] = pods if least == before else min(least, pods)


def _check_retries(job: KubeJob) -> None:
    workload = job.workload
    assert workload is not None, "a job of Volcano is an object"
    used, most = workload.now.retry_count, workload.spec.max_retry
    if used + 1 < most:
        return
    message = (
        f"Volcano would let job {job.meta.namespace}/{job.meta.name} fail instead of resuming it: a resume counts as a "
        f"retry, its maxRetry is {most}, and its retryCount {used}. Cancel it, and submit it with a larger maxRetry."
    )
    raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
