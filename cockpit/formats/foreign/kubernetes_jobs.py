"""Reads and writes four kinds of Kubernetes job, each from the type that its section names.

batch/v1 Job (JobSpec; completions are the tasks of an array), TrainJob (trainer.kubeflow.org/v1alpha1, TrainJobSpec),
TFJob (kubeflow.org/v1, TFJobSpec) and MPIJob (kubeflow.org/v1 and v2beta1, MPIJobSpec).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_container, read_name, read_template, take_labels
from cockpit.formats.foreign.podwriting import container_of, deadline_of, metadata_of, run_policy, template_of
from cockpit.formats.foreign.pytorchjob import GIVEN, take_torchrun
from cockpit.formats.foreign.roles import PER_POOL, Role, merge, pools_of, read_policy, read_roles
from cockpit.formats.foreign.torchrun import without_nodes
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.model.spec import PARAMETER_SERVER, WHOLE_CARD, Mode

if TYPE_CHECKING:
    from cockpit.model.spec import Array, JobSpec


_INDEX: Final = "JOB_COMPLETION_INDEX"
_TASK: Final = f"env {_INDEX}=${{SLURM_ARRAY_TASK_ID}} "
"""Gives a task its index by the name that it has in Kubernetes."""
_DEFAULT_RETRIES: Final = 6
"""Kubernetes' value for a missing `backoffLimit`, unless there is a limit for each index."""


def read_job(value: Mapping[str, Any]) -> Draft:
    """Read a Job (batch/v1)."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    template = dict(spec.pop("template", None) or {})
    pod = dict(template.get("spec") or {})
    # Handled here, so that `read_template` does not note it.
    restarts = pod.get("restartPolicy") == "OnFailure"
    if restarts:
        del pod["restartPolicy"]
    read_template({**template, "spec": pod}, "spec", draft, {_INDEX})
    retries = spec.pop("backoffLimit", None)
    if retries is None:
        # With a limit for each index the default of the whole Job is unlimited, and has no number to take over.
        retries = 0 if spec.get("backoffLimitPerIndex") is not None else _DEFAULT_RETRIES
    if restarting := draft.whole(retries, "spec.backoffLimit"):
        draft.values["restart"] = {"max_restarts": restarting}
    elif restarts:
        draft.lacks("spec.template.spec.restartPolicy=OnFailure", "`restart` says how often the job restarts")
    if (seconds := spec.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = draft.whole(seconds, "spec.activeDeadlineSeconds")
    if spec.pop("suspend", False):
        draft.values["hold"] = True
    _take_completions(spec, draft)
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _take_completions(spec: dict[str, Any], draft: Draft) -> None:
    """Read several completions as an array of tasks."""
    mode = str(spec.pop("completionMode", "") or "NonIndexed")
    index, task = f"${{{_INDEX}}}", "${SLURM_ARRAY_TASK_ID}"
    completions, parallelism = spec.pop("completions", None), spec.pop("parallelism", None)
    # batch/v1 JobSpec: parallelism is 1 by default, and 0 suspends the job.
    at_once = draft.whole(parallelism, "spec.parallelism", missing=1)
    if completions is None and at_once > 1:
        draft.lacks(f"spec.parallelism={at_once}", "without completions one success ends the others; here all run on")
    # Without completions as many pods run as `parallelism` says (a work queue).
    count = draft.whole(completions, "spec.completions", missing=max(1, at_once))
    if parallelism is not None and not at_once:
        draft.values["hold"] = True
    if mode == "Indexed":
        draft.values["command"] = _TASK + draft.values["command"].replace(index, task)
    if count > 1 or mode == "Indexed":
        bound = f"%{at_once}" if 0 < at_once < count else ""
        draft.values["array"] = f"0-{count - 1}{bound}"


def write_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a Job (batch/v1)."""
    body: dict[str, Any] = {
        **deadline_of(spec),
        "backoffLimit": spec.restart.max_restarts if spec.restart is not None else 0,
    }
    if spec.hold:
        body["suspend"] = True
    command = spec.command
    if spec.array is not None:
        body |= _completions(spec.array, indexed=command.startswith(_TASK))
        # What reading a Job put before its command, and Kubernetes' own name for the index.
        command = command.removeprefix(_TASK).replace("${SLURM_ARRAY_TASK_ID}", f"${{{_INDEX}}}")
    template = template_of(spec, "main", {_INDEX}, command=command)
    # A Job refuses the usual policy of pods, Always. With Never each retry is a new pod, as a restart here is a new
    # container.
    template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata_of(spec),
        "spec": {**body, "template": template},
    }


def _completions(array: Array, *, indexed: bool) -> dict[str, Any]:
    count = len(array.indices)
    fields = {"completions": count, "parallelism": array.at_once or count}
    return {**fields, "completionMode": "Indexed"} if indexed else fields


_MODES: Final = (
    ("deepspeed", "deepspeed"),
    ("mpi", "horovod"),
    ("mlx", "horovod"),
    ("tensorflow", "tensorflow"),
    ("torch", "pytorch"),
)
"""The mode of a runtime, by a part of the runtime's name."""
_RUNTIMES: Final = {
    Mode.DEEPSPEED: "deepspeed-distributed",
    Mode.HOROVOD: "mpi-distributed",
    Mode.TENSORFLOW: "tensorflow-distributed",
    Mode.PYTORCH: "torch-distributed",
}
_KIND: Final = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}


_POD_CHANGES: Final = ("podTemplateOverrides", "podSpecOverrides", "runtimePatches")
"""Fields of TrainJobSpec, in different versions of the trainer, that change where and how the runtime's pods run."""


def read_train_job(value: Mapping[str, Any]) -> Draft:
    """Read a TrainJob. Raises ValueError for a field without which the job would run elsewhere or otherwise."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    for name in _POD_CHANGES:
        if spec.get(name):
            raise ValueError(
                f"spec.{name} changes the pods of the runtime, and a job here has no runtime; remove it, convert the "
                "rest with `cockpit convert`, and write node_selector, volumes and env into the job file"
            )
    read_name(dict(value.get("metadata") or {}), draft)
    _runtime(dict(spec.pop("runtimeRef", None) or {}), draft)
    trainer = dict(spec.pop("trainer", None) or {})
    if (nodes := trainer.pop("numNodes", None)) is not None:
        draft.values["nodes"] = draft.whole(nodes, "spec.trainer.numNodes")
    processes = trainer.pop("numProcPerNode", None)
    # The trainer has a container's fields, except for this name.
    trainer["resources"] = trainer.pop("resourcesPerNode", None)
    read_container(trainer, "spec.trainer", draft, GIVEN)
    take_torchrun(draft, processes, "spec.trainer.numProcPerNode")
    take_labels(spec.pop("labels", None) or {}, "spec.labels", draft)
    if (seconds := spec.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = draft.whole(seconds, "spec.activeDeadlineSeconds")
    if spec.pop("suspend", False):
        draft.values["hold"] = True
    for part in spec.pop("initializer", None) or {}:
        draft.lacks(f"spec.initializer.{part}", "nothing is downloaded; name it under datasets or models")
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _runtime(reference: dict[str, Any], draft: Draft) -> None:
    """Set the mode by the name of the runtime."""
    name = str(reference.pop("name", "") or "")
    # A site names its runtimes as it likes; most names tell the framework.
    mode = next((mode for part, mode in _MODES if part in name.lower()), "")
    draft.values["mode"] = mode or "pytorch"
    if not name:
        draft.lacks("spec.runtimeRef.name", "is missing; taken for a runtime of PyTorch")
    elif not mode:
        draft.lacks(f"spec.runtimeRef.name={name}", "is not known here; taken for one of PyTorch")
    for field, value in reference.items():
        if value != _KIND.get(field):
            draft.lacks(f"spec.runtimeRef.{field}={value}")


def write_train_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a TrainJob (trainer.kubeflow.org/v1alpha1)."""
    container = container_of(spec, GIVEN, command=without_nodes(spec.command))
    trainer: dict[str, Any] = {"numNodes": spec.nodes}
    if (resources := container.pop("resources", None)) is not None:
        trainer["resourcesPerNode"] = resources
    runtime = _RUNTIMES.get(spec.mode, "torch-distributed") if spec.mode is not None else "torch-distributed"
    body: dict[str, Any] = {
        "runtimeRef": {"name": runtime},
        "trainer": {**container, **trainer},
        **deadline_of(spec),
    }
    if spec.hold:
        body["suspend"] = True
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata_of(spec),
        "spec": body,
    }


_TF_AT: Final = "spec.tfReplicaSpecs"
_CHIEFS: Final = ("Chief", "Master")
_POOLS: Final = ("Chief", "Worker", "PS", "Evaluator")
"""The roles, by the position of the pool."""
_TF_GIVEN: Final = frozenset({"TF_CONFIG"})


def read_tf_job(value: Mapping[str, Any]) -> Draft:
    """Read a TFJob (kubeflow.org/v1)."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    known = (*_CHIEFS, "Worker", "PS", "Evaluator")
    roles = read_roles(spec.pop("tfReplicaSpecs", None) or {}, known, _TF_AT, draft, _TF_GIVEN)
    by_name = {("Chief" if role.name in _CHIEFS else role.name): role for role in roles if role.replicas}
    # The mode `tensorflow` has workers and servers only; the other roles need worker pools.
    if {"Chief", "Evaluator"} & by_name.keys():
        _take_pools(by_name, draft)
    else:
        _take_servers(by_name, draft)
    if not by_name:
        draft.run([])
    read_policy(spec.pop("runPolicy", None) or {}, roles, draft)
    if str(policy := spec.pop("successPolicy", "") or "") not in {"", "ChiefWorker"}:
        draft.lacks(f"spec.successPolicy={policy}")
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _take_pools(roles: dict[str, Role], draft: Draft) -> None:
    """Make worker pools of the roles; without a chief the first worker is one."""
    if "Chief" not in roles and "Worker" in roles:
        worker = roles.pop("Worker")
        draft.lacks(f"{_TF_AT}.Worker", "the first of them is the chief, by which the job ends")
        roles["Chief"] = worker._replace(replicas=1)
        if worker.replicas > 1:
            roles["Worker"] = worker._replace(replicas=worker.replicas - 1)
    present = [roles[name] for name in _POOLS if name in roles]
    merge(present, _TF_AT, draft, besides=PER_POOL)
    draft.values |= {name: value for name, value in present[0].values.items() if name in {"command", "image"}}
    # No empty pools behind the last role.
    last = max(_POOLS.index(name) for name in roles)
    pools_of([roles.get(name) for name in _POOLS[: last + 1]], draft)


def _take_servers(roles: dict[str, Role], draft: Draft) -> None:
    """Set workers and parameter servers."""
    draft.values["mode"] = "tensorflow"
    workers, servers = roles.get("Worker"), roles.get("PS")
    draft.values["nodes"] = workers.replicas if workers is not None else 1
    merge([role for role in (workers, servers) if role is not None], _TF_AT, draft, besides=("specs",))
    # The workers' size counts, even where the servers come first or ask for more.
    if workers is not None and "specs" in workers.values:
        draft.values["specs"] = workers.values["specs"]
    if servers is not None:
        draft.values["parameter_servers"] = servers.replicas
        if "specs" in servers.values:
            size = f"{PARAMETER_SERVER.cpus} CPU and {PARAMETER_SERVER.memory_mib} MiB"
            draft.lacks(f"{_TF_AT}.PS…resources", f"a parameter server has {size}")


def write_tf_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a TFJob: workers and servers, or the roles of worker pools."""
    policy = run_policy(spec)
    if spec.mode is Mode.WORKER_POOLS:
        replicas = {
            name: _replicas(spec, pool.replicas, each=pool.spec, image=pool.image, command=pool.command or None)
            # Fewer pools than roles are usual.
            for name, pool in zip(_POOLS, spec.worker_pools, strict=False)
            if pool.replicas
        }
    else:
        replicas = {"Worker": _replicas(spec, spec.nodes)}
        if spec.parameter_servers:
            replicas["PS"] = _replicas(spec, spec.parameter_servers, each=PARAMETER_SERVER)
    body = {"runPolicy": policy, "tfReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata_of(spec), "spec": body}


def _replicas(spec: JobSpec, count: int, **of_pool: Any) -> dict[str, Any]:  # noqa: ANN401 - as `template_of` has them
    return {
        "replicas": count,
        "restartPolicy": "Never",
        "template": template_of(spec, "tensorflow", _TF_GIVEN, **of_pool),
    }


_MPI_AT: Final = "spec.mpiReplicaSpecs"
_OF_LAUNCHER: Final = ("command", "env")
_NO_CONCERN: Final = frozenset({"sshAuthMountPath", "launcherCreationPolicy"})


_MPI_FIRST: Final = (
    "gpus",
    "gpusPerNode",
    "processingUnits",
    "processingUnitsPerNode",
    "processingResourceType",
    "replicas",
    "launcherOnMaster",
    "template",
)
"""Fields of MPIJobSpec in kubeflow.org/v1alpha1 alone, where the operator computes the number of workers."""


def read_mpi_job(value: Mapping[str, Any]) -> Draft:
    """Read an MPIJob. Raises ValueError for a manifest of kubeflow.org/v1alpha1."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    if first := [f"spec.{name}" for name in _MPI_FIRST if name in spec]:
        raise ValueError(
            f"{', '.join(first)} are fields of kubeflow.org/v1alpha1, which cannot be read here; write Launcher and "
            "Worker under spec.mpiReplicaSpecs, as in kubeflow.org/v2beta1"
        )
    read_name(dict(value.get("metadata") or {}), draft)
    draft.values["mode"] = "horovod"
    roles = read_roles(spec.pop("mpiReplicaSpecs", None) or {}, ("Launcher", "Worker"), _MPI_AT, draft)
    by_name = {role.name: role for role in roles if role.replicas}
    _take_roles(by_name.get("Launcher"), by_name.get("Worker"), draft)
    if spec.pop("runLauncherAsWorker", False) and "Worker" in by_name:
        # The launcher counts as one more worker then (MPIJobSpec v2beta1).
        draft.values["nodes"] += 1
    take_slots(spec.pop("slotsPerWorker", None), draft)
    policy = dict(spec.pop("runPolicy", None) or {})
    # Older versions have these beside runPolicy, v2beta1 in it.
    for name in ("cleanPodPolicy", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if name in spec:
            policy.setdefault(name, spec.pop(name))
    read_policy(policy, roles, draft)
    if str(which := spec.pop("mpiImplementation", "") or "OpenMPI") != "OpenMPI":
        draft.lacks(f"spec.mpiImplementation={which}", "the image's own is taken, whichever it is")
    for name in spec:
        draft.lacks(f"spec.{name}", *(("there is no SSH here; left out",) if name in _NO_CONCERN else ()))
    return draft


def _take_roles(launcher: Role | None, worker: Role | None, draft: Draft) -> None:
    """Give the launcher's command and variables to the workers' nodes."""
    whole = worker or launcher
    if whole is None:
        draft.run([])
        return
    draft.values |= whole.values
    draft.values["nodes"] = worker.replicas if worker is not None else 1
    if launcher is None or worker is None:
        return
    draft.values["command"] = launcher.values["command"]
    if not launcher.values["command"].startswith(ENTRYPOINT):  # that workers give none is as it should be
        draft.notes = [note for note in draft.notes if not note.startswith("command:")]
    if env := {**worker.values.get("env", {}), **launcher.values.get("env", {})}:
        draft.values["env"] = env
    for name in sorted(launcher.values.keys() - {*_OF_LAUNCHER}):
        if launcher.values[name] != worker.values.get(name):
            draft.lacks(f"{_MPI_AT}.Launcher", f"the command runs on the first worker, with the workers' {name}")
    for name, value in launcher.values.get("env", {}).items():
        if worker.values.get("env", {}).get(name, value) != value:
            draft.lacks(f"{_MPI_AT}.Worker…env.{name}", "all replicas get the launcher's value")


def take_slots(count: object, draft: Draft) -> None:
    """Note a number of slots per worker that is not the usual one: as many as cards, or one."""
    cards = (draft.values.get("specs") or [{}])[0].get("cards", 0)
    if count is not None and str(count) != str(max(1, cards)):
        draft.lacks(f"spec.slotsPerWorker={count}", f"a node has a slot for each card, {max(1, cards)} here; left out")


def write_mpi_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of an MPIJob (kubeflow.org/v2beta1)."""
    template = template_of(spec, "mpi")
    # A copy down to the container, whose command is removed below: the launcher has the same template.
    waits = {**template, "spec": {**template["spec"], "containers": [dict(template["spec"]["containers"][0])]}}
    # Workers wait for mpirun, which reaches them by SSH: they run the image's sshd and not the command.
    if spec.mode in LAUNCHED_BY_FIRST:
        waits["spec"]["containers"][0].pop("command", None)
    replicas = {
        "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": template},
        "Worker": {"replicas": spec.nodes, "restartPolicy": "Never", "template": waits},
    }
    body = {
        # A slot for each card, as `take_slots` expects; a node without whole cards has one, too.
        "slotsPerWorker": max(1, -(-spec.specs[0].card_milli // WHOLE_CARD)),
        "runPolicy": run_policy(spec),
        "mpiReplicaSpecs": replicas,
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata_of(spec), "spec": body}
