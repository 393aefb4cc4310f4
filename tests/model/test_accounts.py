"""The tree of accounts: which association holds for a user, what it inherits, and which trees are refused."""

from __future__ import annotations

import pytest

from cockpit.model.accounts import (
    Accounts,
    Association,
    AssocKey,
    Qos,
    QosFlag,
    account_troubles,
    assoc_key,
    qos_flag,
)


def tree(*associations: Association, qos: tuple[Qos, ...] = (Qos(name="normal"),)) -> Accounts:
    every = (Association(account="root"), *associations)
    return Accounts(associations={each.key: each for each in every}, qos={each.name: each for each in qos})


LAB = Association(account="lab", parent="root", priority=5)
NLP = Association(account="nlp", parent="lab")
ANN = Association(account="nlp", user="ann")
ANN_ON_GPU = Association(account="nlp", user="ann", partition="gpu", priority=9)
LABS = tree(LAB, NLP, ANN, ANN_ON_GPU)


@pytest.mark.req("SC-16")
def test_an_association_is_named_by_account_user_and_partition() -> None:
    assert [each.key for each in (LAB, ANN, ANN_ON_GPU)] == ["lab/", "nlp/ann", "nlp/ann/gpu"]
    assert assoc_key("nlp") == "nlp/"


@pytest.mark.req("SC-16")
def test_a_new_cluster_has_the_account_root_with_the_user_root_and_the_qos_normal() -> None:
    new = Accounts()
    assert list(new.associations) == ["root/", "root/root"]
    assert list(new.qos) == ["normal"]
    assert list(account_troubles(new)) == []


@pytest.mark.req("SC-03")
def test_the_association_for_the_partition_goes_before_the_general_one() -> None:
    assert LABS.of("nlp", "ann", "gpu") is ANN_ON_GPU
    assert LABS.of("nlp", "ann", "cpu") is ANN
    assert LABS.of("nlp", "ann") is ANN
    assert LABS.of("lab", "ann") is None
    assert LABS.of("nlp", "bob", "gpu") is None


@pytest.mark.req("SC-03")
def test_a_user_is_bound_to_partitions_by_an_association_with_the_account_or_with_any() -> None:
    assert LABS.is_bound("nlp", "ann")
    assert LABS.is_bound("", "ann")
    assert not LABS.is_bound("lab", "ann")
    assert not LABS.is_bound("nlp", "bob")
    assert not tree(LAB, NLP, ANN).is_bound("nlp", "ann")


@pytest.mark.req("SC-01")
def test_an_association_without_a_priority_has_that_of_the_nearest_account_above() -> None:
    assert LABS.priority_of(ANN_ON_GPU) == 9
    assert LABS.priority_of(ANN) == 5
    assert tree(NLP, ANN).priority_of(ANN) == 0


@pytest.mark.req("SC-16")
def test_accounts_above_are_listed_from_the_nearest_to_root() -> None:
    assert [each.account for each in LABS.above(ANN)] == ["nlp", "lab", "root"]
    assert [each.account for each in LABS.above(NLP)] == ["lab", "root"]
    assert LABS.above(LABS.associations[AssocKey("root/")]) == ()


@pytest.mark.req("SC-16")
def test_an_account_has_its_users_and_subaccounts_below_it() -> None:
    assert LABS.children == {"root": (LAB,), "lab": (NLP,), "nlp": (ANN, ANN_ON_GPU)}
    assert LABS.names == {"root", "lab", "nlp"}


@pytest.mark.req("SC-03")
def test_flags_of_a_qos_are_read_in_any_case() -> None:
    assert qos_flag("denyonlimit") is QosFlag.DENY_ON_LIMIT
    assert qos_flag("NoReserve") is None
    assert Qos(name="q", flags=("nodecay",)).has(QosFlag.NO_DECAY)
    assert not Qos(name="q", flags=("nodecay",)).has(QosFlag.DENY_ON_LIMIT)


@pytest.mark.req("SC-16")
@pytest.mark.parametrize(
    ("wrong", "key", "field", "sentence"),
    [
        (Association(account="root", parent="lab"), "root/", "parent", "root is above all accounts; leave it out"),
        (Association(account="nlp", parent="none"), "nlp/", "parent", "there is no account none"),
        (Association(account="nlp", parent=""), "nlp/", "parent", "there is no account "),
        (Association(account="none", user="ann"), "none/ann", "account", "there is no account none"),
        (Association(account="nlp", parent="nlp"), "nlp/", "parent", "nlp would be above itself"),
        (Association(account="lab", parent="nlp"), "lab/", "parent", "lab would be above itself"),
        (Association(account="nlp", user="ann", coordinators=("bob",)), "nlp/ann", "coordinators", "are an account's"),
        (Association(account="nlp", user="ann", qos=("high",)), "nlp/ann", "qos", "there is no QOS high; there are"),
        (Association(account="nlp", user="ann", default_qos="high"), "nlp/ann", "default_qos", "there is no QOS high"),
    ],
)
def test_an_error_in_the_tree_names_the_association_and_its_field(
    wrong: Association, key: str, field: str, sentence: str
) -> None:
    found = list(account_troubles(tree(LAB, NLP, ANN, wrong)))
    assert any((each.key, each.field) == (key, field) and each.sentence.startswith(sentence) for each in found), found


@pytest.mark.req("SC-16")
def test_a_tree_with_coordinators_and_known_qos_has_no_errors() -> None:
    high = Qos(name="high", preempt=("normal",))
    lab = Association(account="lab", parent="root", coordinators=("bob",), qos=("high",), default_qos="high")
    assert list(account_troubles(tree(lab, NLP, ANN, qos=(Qos(name="normal"), high)))) == []


@pytest.mark.req("SC-16")
def test_a_missing_account_in_the_chain_is_reported_once_and_not_as_a_circle() -> None:
    found = list(account_troubles(tree(Association(account="lab", parent="none"), NLP)))
    assert [(each.key, each.sentence) for each in found] == [("lab/", "there is no account none")]


@pytest.mark.req("SC-08")
def test_a_qos_preempts_only_qos_that_exist() -> None:
    (found,) = account_troubles(tree(qos=(Qos(name="normal", preempt=("normal", "low")),)))
    assert found == ("normal", "preempt", "there is no QOS low; there are normal")
