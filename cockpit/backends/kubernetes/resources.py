"""Kinds of objects, by the path under which an API server serves them."""

from __future__ import annotations

from typing import NamedTuple


class Resource(NamedTuple):
    """A kind of object."""

    group: str
    """The API group; empty: the core group."""
    version: str
    plural: str
    """The name in paths, such as `pytorchjobs`."""
    kind: str
    """The name in objects, such as `PyTorchJob`."""
    namespaced: bool = True
    titled: str = ""
    """The name in sentences where another kind has the same one; empty: `kind`."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def title(self) -> str:
        """The kind's name in sentences: `PyTorchJob`."""
        return self.titled or self.kind

    @property
    def shown(self) -> str:
        """The name in sentences: `pytorchjobs.kubeflow.org`, as kubectl takes it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, of a namespace's, or of one object or a part of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return "/".join(filter(None, (f"{root}{inside}/{self.plural}", name, subresource)))


KUBEFLOW = "kubeflow.org"
"""The group of the training operator's kinds, and of arena's."""
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
EVENTS = Resource("", "v1", "events", "Event")
SECRETS = Resource("", "v1", "secrets", "Secret")
JOBS = Resource("batch", "v1", "jobs", "Job")
PYTORCH_JOBS = Resource(KUBEFLOW, "v1", "pytorchjobs", "PyTorchJob")
TF_JOBS = Resource(KUBEFLOW, "v1", "tfjobs", "TFJob")
MPI_JOBS_V1 = Resource(KUBEFLOW, "v1", "mpijobs", "MPIJob")
MPI_JOBS = Resource(KUBEFLOW, "v2beta1", "mpijobs", "MPIJob")
MPI_JOBS_V1ALPHA1 = Resource(KUBEFLOW, "v1alpha1", "mpijobs", "MPIJob")
XGBOOST_JOBS = Resource(KUBEFLOW, "v1", "xgboostjobs", "XGBoostJob")
PADDLE_JOBS = Resource(KUBEFLOW, "v1", "paddlejobs", "PaddleJob")
JAX_JOBS = Resource(KUBEFLOW, "v1", "jaxjobs", "JAXJob")
TRAIN_JOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
TRAINING_JOBS = Resource("kai.alibabacloud.com", "v1alpha1", "trainingjobs", "TrainingJob")
SCALE_INS = Resource("kai.alibabacloud.com", "v1alpha1", "scaleins", "ScaleIn")
SCALE_OUTS = Resource("kai.alibabacloud.com", "v1alpha1", "scaleouts", "ScaleOut")
SCALERS = (SCALE_INS, SCALE_OUTS)
"""Kinds that change the number of workers of a TrainingJob."""
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
WORKLOAD_CLASSES = Resource(
    "kueue.x-k8s.io", "v1beta1", "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False
)
WORKLOAD_CLASSES_2 = Resource(
    "kueue.x-k8s.io", "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False
)
KOORDINATOR_DEVICES = Resource("scheduling.koordinator.sh", "v1alpha1", "devices", "Device", namespaced=False)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
RESOURCE_SLICES_BETA = Resource("resource.k8s.io", "v1beta2", "resourceslices", "ResourceSlice", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIMS_BETA = Resource("resource.k8s.io", "v1beta2", "resourceclaims", "ResourceClaim")
CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
CLAIM_TEMPLATES_BETA = Resource("resource.k8s.io", "v1beta2", "resourceclaimtemplates", "ResourceClaimTemplate")

_KUEUE = "kueue.x-k8s.io"
KUEUE_WORKLOADS = Resource(_KUEUE, "v1beta1", "workloads", "Workload")
KUEUE_WORKLOADS_2 = Resource(_KUEUE, "v1beta2", "workloads", "Workload")
CLUSTER_QUEUES = Resource(_KUEUE, "v1beta1", "clusterqueues", "ClusterQueue", namespaced=False)
CLUSTER_QUEUES_2 = Resource(_KUEUE, "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)
LOCAL_QUEUES = Resource(_KUEUE, "v1beta1", "localqueues", "LocalQueue")
LOCAL_QUEUES_2 = Resource(_KUEUE, "v1beta2", "localqueues", "LocalQueue")
COHORTS_ALPHA = Resource(_KUEUE, "v1alpha1", "cohorts", "Cohort", namespaced=False)
COHORTS = Resource(_KUEUE, "v1beta1", "cohorts", "Cohort", namespaced=False)
COHORTS_2 = Resource(_KUEUE, "v1beta2", "cohorts", "Cohort", namespaced=False)
FLAVORS = Resource(_KUEUE, "v1beta1", "resourceflavors", "ResourceFlavor", namespaced=False)
FLAVORS_2 = Resource(_KUEUE, "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)

QUEUE_UNITS = Resource("scheduling.x-k8s.io", "v1alpha1", "queueunits", "QueueUnit")
KUBE_QUEUES = Resource("scheduling.x-k8s.io", "v1alpha1", "queues", "Queue")
QUOTA_TREES = Resource("scheduling.sigs.k8s.io", "v1beta1", "elasticquotatrees", "ElasticQuotaTree")

KUBE_QUEUE_KINDS = (QUEUE_UNITS, KUBE_QUEUES, QUOTA_TREES)
"""Kinds of KubeQueue and of Koord-Queue."""
VOLCANO_JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", titled="Volcano Job")
VOLCANO_COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
VOLCANO_POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
KOORDINATOR_POD_GROUPS = Resource("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")
ELASTIC_QUOTAS = Resource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
KOORDINATOR_QUOTAS = Resource("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")

BATCH_SCHEDULING = (
    VOLCANO_QUEUES,
    VOLCANO_POD_GROUPS,
    POD_GROUPS,
    KOORDINATOR_POD_GROUPS,
    ELASTIC_QUOTAS,
    KOORDINATOR_QUOTAS,
)
"""Kinds of Volcano, Koordinator and scheduler-plugins. Two groups have a kind of the same name and meaning."""
LISTED_QUEUES = (
    *(CLUSTER_QUEUES, CLUSTER_QUEUES_2, KUBE_QUEUES, QUOTA_TREES),
    *(VOLCANO_QUEUES, ELASTIC_QUOTAS, KOORDINATOR_QUOTAS),
)
"""Kinds of which `cockpit queues` lists each object or node."""
# The newest version first: servers warn of v1beta1, which Kueue will drop.
QUEUES = (
    *(KUEUE_WORKLOADS_2, KUEUE_WORKLOADS, CLUSTER_QUEUES_2, CLUSTER_QUEUES, LOCAL_QUEUES_2, LOCAL_QUEUES),
    *(COHORTS_2, COHORTS, COHORTS_ALPHA, FLAVORS_2, FLAVORS),
)
"""Kinds of queue managers. Of two versions of one kind the first that is served counts."""
WORKLOADS = (
    *(PYTORCH_JOBS, TF_JOBS, MPI_JOBS, MPI_JOBS_V1, MPI_JOBS_V1ALPHA1, XGBOOST_JOBS, PADDLE_JOBS, JAX_JOBS),
    *(TRAIN_JOBS, TRAINING_JOBS, JOB_SETS, VOLCANO_JOBS, JOBS),
)
"""Kinds of jobs. Of two versions of one kind the first that is served counts."""
DEVICES = (
    *(KOORDINATOR_DEVICES, RESOURCE_SLICES, RESOURCE_SLICES_BETA, RESOURCE_CLAIMS, RESOURCE_CLAIMS_BETA),
    *(CLAIM_TEMPLATES, CLAIM_TEMPLATES_BETA),
)
"""Kinds that tell of cards beside nodes and pods. Of two versions of one kind the first that is served counts."""
