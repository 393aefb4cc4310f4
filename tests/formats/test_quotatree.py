"""ElasticQuotaTree manifests: read as they are, and refused whole with every place that is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.quotatree import quantity, read_quota_tree
from cockpit.model.quota import MOST, RESOURCES, places, queue_name

PUBLISHED = """\
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata:
  name: elasticquotatree # Hanya satu ElasticQuotaTree yang didukung.
  namespace: kube-system # Grup kuota elastis hanya berlaku di namespace kube-system.
spec:
  root:
    name: root # Jumlah maksimum sumber daya untuk root harus sama dengan jumlah minimum sumber daya untuk root.
    max:
      cpu: 999900
      memory: 400000Gi
      kube-queue/max-jobs: 10000000000
      nvidia.com/gpu: 100000
    min:
      cpu: 999900
      memory: 400000Gi
      kube-queue/max-jobs: 10000000000
      nvidia.com/gpu: 100000
    children:
    - name: child-2
      max: # Hanya satu pekerjaan yang dapat dikeluarkan dari antrian pada satu waktu.
        kube-queue/max-jobs: 1
        cpu: 10000
        nvidia.com/gpu: 10000
        memory: 10000Gi
      namespaces: # Konfigurasikan namespace.
      - default
"""
"""From the manual of ACK One's fleets, word by word."""


def manifest(root: str, name: str = "quotas", namespace: str = "kube-system") -> str:
    head = f"apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {{name: {name}"
    return f"{head}, namespace: {namespace}}}\nspec:\n  root: {root}\n"


def errors_of(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read_quota_tree("q.yaml", text)
    return [error.removeprefix("q.yaml: ") for error in caught.value.errors]


@pytest.mark.req("FL-01", "FL-03")
def test_the_published_manifest_is_read_unchanged() -> None:
    tree = read_quota_tree("quota.yaml", PUBLISHED)
    root, leaf = (place.node for place in places(tree.root))
    assert tree.name == "elasticquotatree"
    assert root.min == root.max
    assert root.max == {"cpu": 999_900_000, "mem": 409_600_000_000, "gres/gpu": 10**8, "jobs": 10**13}
    assert (leaf.name, leaf.min, leaf.namespaces) == ("child-2", {}, ("default",))
    assert leaf.max == {"cpu": 10**7, "mem": 10_240_000_000, "gres/gpu": 10**7, "jobs": 1000}
    names = [queue_name(place.path) for place in places(tree.root)]
    assert [name.rpartition("-")[0] for name in names] == ["root", "root-child-2"]
    assert all(len(name.rpartition("-")[2]) == 5 for name in names)


@pytest.mark.req("FL-01")
def test_what_schedulers_of_clusters_read_is_kept() -> None:
    """Attributes came with the scheduler 6.9.0 of ACK; any resource of Kubernetes may be bounded."""
    leaf = """{name: a, attributes: {resourceflavors: "fast, slow"}, namespaces: [x],
        min: {cpu: 1, aliyun.com/gpu-mem: 4}, max: {cpu: 2, aliyun.com/gpu-mem: 24Gi, ephemeral-storage: 1.5Ti}}"""
    root = read_quota_tree(
        "q.yaml", manifest(f"{{name: root, min: {{cpu: 4}}, max: {{cpu: 4}}, children: [{leaf}]}}")
    ).root
    (child,) = root.children
    assert (child.min, child.max) == ({"cpu": 1000}, {"cpu": 2000})
    assert child.attributes == {"resourceflavors": "fast, slow"}
    assert child.uncounted_min == {"aliyun.com/gpu-mem": "4"}
    assert child.uncounted_max == {"aliyun.com/gpu-mem": "24Gi", "ephemeral-storage": "1.5Ti"}


@pytest.mark.req("FL-01")
@pytest.mark.parametrize(
    ("leaf", "error"),
    [
        ("max: {amd.com/gpu: lots}", 'max.amd.com/gpu: is the text "lots"; write a quantity of at least 0'),
        ("max: {amd.com/gpu: -1}", "max.amd.com/gpu: is the number -1; write a quantity of at least 0"),
        ("max: {gpu: 1}", "max.gpu: is no resource that cockpit counts"),
        ("max: {../gpu: 1}", "max.../gpu: is no resource that cockpit counts"),
        ("attributes: {resourceflavors: [a]}", "attributes.resourceflavors: is a list; write text"),
        ("attributes: fast", 'attributes: is the text "fast"; write a table of names'),
    ],
)
def test_what_only_looks_like_it_is_refused(leaf: str, error: str) -> None:
    (said,) = errors_of(manifest(f"{{name: root, children: [{{name: a, {leaf}}}]}}"))
    assert said.startswith(f"spec.root.children[0].{error}")


@pytest.mark.req("FL-01")
@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("500m", Fraction(1, 2)),
        ("64Gi", 64 * 2**30),
        ("1.5Ki", 1536),
        ("2k", 2000),
        ("1e3", 1000),
        ("12E-1", Fraction(6, 5)),
        ("3E", 3 * 10**18),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("+7", 7),
        (10_000_000_000, 10**10),
        (0.25, Fraction(1, 4)),
        ("9223372036854775807", MOST),
        ("250u", Fraction(1, 4000)),
    ],
)
def test_quantities(text: object, counts: Fraction) -> None:
    assert quantity(text) == counts


@pytest.mark.req("FL-01")
@pytest.mark.parametrize(
    "text", ["", "many", "1 Gi", "1gi", "0x10", "9223372036854775808", "8Ei", True, None, "1e", []]
)
def test_invalid_quantities_are_refused(text: object) -> None:
    assert quantity(text) is None


@pytest.mark.req("FL-01")
def test_counts_have_64_bits_and_siblings_max_are_not_added_up() -> None:
    most = 9223372036854775807
    both = f"{{kube-queue/max-jobs: {most}, nvidia.com/gpu: {most}}}"
    children = f"[{{name: a, max: {{nvidia.com/gpu: {most}}}}}, {{name: b, max: {{nvidia.com/gpu: {most}}}}}]"
    root = read_quota_tree("q.yaml", manifest(f"{{name: root, min: {both}, max: {both}, children: {children}}}")).root
    assert root.max == {"jobs": MOST, "gres/gpu": MOST}
    assert [child.max for child in root.children] == [{"gres/gpu": MOST}] * 2


@pytest.mark.req("FL-01")
@pytest.mark.parametrize(
    ("root", "errors"),
    [
        (
            "{name: root, min: {cpu: 4}, max: {cpu: 8, memory: 1Gi}}",
            [
                "spec.root.max.cpu: the root's max must equal its min; min is 4, max is 8",
                "spec.root.max.memory: the root's max must equal its min; min is not given, max is 1024Mi",
            ],
        ),
        (
            "{name: r, min: {cpu: 4}, max: {cpu: 4}, children: [{name: a, min: {cpu: 3}}, {name: b, min: {cpu: 1.5}}]}",
            ["spec.root.min.cpu: its children's min come to 4.5, more than its own 4"],
        ),
        (
            "{name: root, children: [{name: a, children: [{name: b, min: {nvidia.com/gpu: 1}}]}]}",
            ["spec.root.children[0].min.nvidia.com/gpu: its children's min come to 1, more than its own 0"],
        ),
        (
            "{name: root, min: {cpu: 4}, max: {cpu: 4}, children: [{name: a, max: {cpu: 4001m}}]}",
            ["spec.root.children[0].max.cpu: max 4.001 is over the 4 of root"],
        ),
        (
            "{name: root, min: {cpu: 9}, max: {cpu: 9}, children: [{name: a, min: {cpu: 3}, max: {cpu: 2}}]}",
            ["spec.root.children[0].max.cpu: max 2 is below min 3"],
        ),
        (
            "{name: root, children: [{name: a, namespaces: [x]}, {name: b, namespaces: [y, x]}]}",
            ['spec.root.children[1].namespaces[1]: "x" belongs to root/a already'],
        ),
        (
            "{name: root, namespaces: [x], children: [{name: a}, {name: a}]}",
            [
                "spec.root.namespaces: only a leaf has namespaces; move them to one of its children",
                'spec.root.children[1].name: "a" is there twice below root; give another',
            ],
        ),
        (
            "{name: root, min: {cpu: much}, max: {cpu: -1, pods: 3}, children: [{nme: a, min: {cpu: 1}}]}",
            [
                'spec.root.min.cpu: is the text "much"; write a quantity of at most 64 bits, such as 8, 500m or 64Gi',
                "spec.root.max.cpu: is the number -1; write 0 or more",
                f"spec.root.max.pods: is no resource that cockpit counts; those are {', '.join(RESOURCES)}",
                "spec.root.children[0].nme: is no field here; did you mean name?",
                "spec.root.children[0].name: is missing; name the node",
            ],
        ),
    ],
)
def test_a_malformed_tree_is_refused_with_every_path(root: str, errors: list[str]) -> None:
    assert errors_of(manifest(root)) == errors


@pytest.mark.req("FL-01")
def test_only_one_tree_and_only_in_kube_system() -> None:
    assert errors_of(manifest("{name: root}", namespace="default")) == [
        'metadata.namespace: is the text "default"; write kube-system: a quota tree counts only in this namespace'
    ]
    (error,) = errors_of(f"{manifest('{name: root}')}---\n{manifest('{name: root}', name='second')}")
    assert error == "holds 2 manifests; a cluster has one ElasticQuotaTree, so write one"
    assert errors_of("kind: Queue") == ['kind: is the text "Queue"; only ElasticQuotaTree is read here']
    assert errors_of("") == ["holds no ElasticQuotaTree"]


@pytest.mark.req("FL-01")
def test_fields_added_by_a_server_are_ignored() -> None:
    listed = """
apiVersion: v1
kind: List
items:
- apiVersion: scheduling.sigs.k8s.io/v1beta1
  kind: ElasticQuotaTree
  metadata: {name: t, namespace: kube-system, uid: 1-2, labels: {a: b}}
  spec: {root: {name: root, min: null, children: null}}
  status: {}
"""
    assert read_quota_tree("q.yaml", listed).root.children == ()
    assert read_quota_tree(
        "q.json",
        '{"kind": "ElasticQuotaTree", "apiVersion": "scheduling.sigs.k8s.io/v1beta1", '
        '"metadata": {"name": "t", "namespace": "kube-system"}, "spec": {"root": {"name": "r"}}}',
    )


@pytest.mark.req("FL-01")
def test_amounts_of_0_and_below_1_are_read() -> None:
    both = "{cpu: 500m, memory: 0, nvidia.com/gpu: 0}"
    root = read_quota_tree("q.yaml", manifest(f"{{name: root, min: {both}, max: {both}}}")).root
    assert root.max == root.min == {"cpu": 500, "mem": 0, "gres/gpu": 0}
