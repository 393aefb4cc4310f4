"""The positions and queue names of a quota tree, and what it may not say, in the amounts of its manifest."""

from __future__ import annotations

import pytest

from cockpit.model.quota import MOST, Amounts, QuotaNode, QuotaTree, places, queue_name, tree_errors


@pytest.mark.req("SC-07")
@pytest.mark.parametrize(
    ("resource", "least", "most", "said"),
    [
        ("cpu", 2500, 2000, "max 2 is below min 2.5"),
        ("cpu", 10_000, 1010, "max 1.01 is below min 10"),
        ("mem", 2_048_000, 1_024_000, "max 1024Mi is below min 2048Mi"),
    ],
)
def test_amounts_are_written_in_the_units_of_a_manifest(resource: str, least: int, most: int, said: str) -> None:
    child = QuotaNode(name="child", min={resource: least}, max={resource: most})
    root = QuotaNode(name="root", min={resource: 20_000_000}, max={resource: 20_000_000}, children=(child,))
    assert any(error.endswith(said) for error in tree_errors(QuotaTree("tree", root)))


def errors(*children: QuotaNode, name: str = "tree", **root: Amounts) -> list[str]:
    return list(tree_errors(QuotaTree(name, QuotaNode(name="root", children=children, **root))))


def chain(levels: int) -> QuotaNode:
    node = QuotaNode(name="leaf")
    for number in range(levels - 1):
        node = QuotaNode(name=f"n{number}", children=(node,))
    return node


CPUS = {"cpu": 10_000}
ROOT = {"min": CPUS, "max": CPUS}
UNKNOWN = "spec.root: bounds something else than cpu, memory, nvidia.com/gpu, kube-queue/max-jobs, or by less than 0"


@pytest.mark.req("FL-01")
def test_nodes_are_listed_in_the_order_of_the_manifest_with_their_positions() -> None:
    below = QuotaNode(name="b", children=(QuotaNode(name="c"),))
    tree = QuotaNode(name="root", children=(below, QuotaNode(name="d")))
    assert [(place.path, place.depth, place.where) for place in places(tree)] == [
        ("root", 0, "spec.root"),
        ("root/b", 1, "spec.root.children[0]"),
        ("root/b/c", 2, "spec.root.children[0].children[0]"),
        ("root/d", 1, "spec.root.children[1]"),
    ]


@pytest.mark.req("FL-03")
def test_a_queue_is_named_by_its_path_and_a_suffix_that_never_changes() -> None:
    assert queue_name("root/child-2") == "root-child-2-jpgph"
    assert queue_name("root-child-2") != queue_name("root/child-2")


@pytest.mark.req("FL-01")
def test_a_tree_within_its_rules_has_no_errors() -> None:
    leaf = QuotaNode(name="leaf", min=CPUS, max=CPUS, namespaces=("a", "b"))
    assert errors(leaf, QuotaNode(name="other", max=CPUS, namespaces=("c",)), **ROOT) == []
    assert errors(max={"jobs": 5000}) == []
    assert errors(min={"cpu": MOST}, max={"cpu": MOST}) == []
    assert (
        errors(
            *[QuotaNode(name=f"n{number}", min={"cpu": MOST}) for number in (1, 2)],
            min={"cpu": MOST},
            max={"cpu": MOST},
        )
        == []
    )
    assert not any("levels" in each for each in errors(chain(31)))
    assert errors(*[QuotaNode(name=f"n{number}") for number in range(9_999)]) == []


@pytest.mark.req("FL-01")
@pytest.mark.parametrize(
    ("children", "root", "error"),
    [
        ((chain(32),), {}, "spec.root: has more than 32 levels; use fewer"),
        (
            tuple(QuotaNode(name=f"n{each}") for each in range(10_000)),
            {},
            "spec.root: has 10001 nodes; use at most 10000",
        ),
        ((), {"max": {"disk": 1}}, UNKNOWN),
        ((), {"min": {"cpu": -1}}, UNKNOWN),
        ((), {"min": CPUS}, "spec.root.max.cpu: the root's max must equal its min; min is 10, max is not given"),
        ((), {"max": CPUS}, "spec.root.max.cpu: the root's max must equal its min; min is not given, max is 10"),
        (
            (),
            {"min": {"jobs": 1000}, "max": {"jobs": 2000}},
            "spec.root.max.kube-queue/max-jobs: the root's max must equal its min; min is 1, max is 2",
        ),
        ((QuotaNode(name=".."),), {}, 'spec.root.children[0].name: ".." begins with "."'),
        (
            (QuotaNode(name="leaf", namespaces=("a", "b/c")),),
            {},
            'spec.root.children[0].namespaces[1]: "b/c" contains "/"',
        ),
        (
            (QuotaNode(name="a", namespaces=("x",), children=(QuotaNode(name="b"),)),),
            {},
            "spec.root.children[0].namespaces: only a leaf has namespaces; move them to one of its children",
        ),
        (
            (QuotaNode(name="a"), QuotaNode(name="b"), QuotaNode(name="a")),
            {},
            'spec.root.children[2].name: "a" is there twice below root; give another',
        ),
        (
            (QuotaNode(name="a", max={"cpu": 10_500}),),
            ROOT,
            "spec.root.children[0].max.cpu: max 10.5 is over the 10 of root",
        ),
        (
            (QuotaNode(name="a", min={"cpu": 6000}), QuotaNode(name="b", min={"cpu": 5000})),
            ROOT,
            "spec.root.min.cpu: its children's min come to 11, more than its own 10",
        ),
        (
            (QuotaNode(name="a", min={"mem": 1000}), QuotaNode(name="b")),
            {},
            "spec.root.min.memory: its children's min come to 1Mi, more than its own 0",
        ),
        (
            (QuotaNode(name="a", namespaces=("x",)), QuotaNode(name="b", namespaces=("y", "x"))),
            {},
            'spec.root.children[1].namespaces[1]: "x" belongs to root/a already',
        ),
    ],
)
def test_an_error_of_a_tree_names_the_position_in_the_manifest(
    children: tuple[QuotaNode, ...], root: dict[str, Amounts], error: str
) -> None:
    found = errors(*children, **root)
    assert len(found) == 1, found
    assert found[0].startswith(error)


@pytest.mark.req("FL-01")
def test_the_name_of_a_tree_is_a_name() -> None:
    assert errors(name="a/b")[0].startswith('metadata.name: "a/b" contains "/"')
