"""Account trees for tests, in a line each."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from cockpit.model.accounts import Accounts, Association, AssocKey, Usage


def account(name: str, shares: int | None = 1, parent: str = "root") -> Association:
    return Association(account=name, parent=parent, shares=shares)


def user(account: str, name: str, shares: int | None = 1, partition: str = "") -> Association:
    return Association(account=account, user=name, shares=shares, partition=partition)


def accounts_of(*associations: Association) -> Accounts:
    """Without a user of root's own, so that ranks are easy to say."""
    return Accounts(associations={each.key: each for each in (Association(account="root"), *associations)})


def usage_of(accounts: Accounts, used: Mapping[str, float]) -> dict[AssocKey, Usage]:
    """What users have used, by name, also of every account above them."""
    raw: dict[AssocKey, float] = {}
    for each in accounts.associations.values():
        if each.user in used:
            for key in (each.key, *(above.key for above in accounts.above(each))):
                raw[key] = raw.get(key, 0.0) + used[each.user]
    return {key: Usage(amount) for key, amount in raw.items()}


@st.composite
def some_trees(draw) -> tuple[Accounts, dict[AssocKey, Usage]]:
    """Up to six accounts under one another, with users, and usage conserved up the tree."""
    shares = st.sampled_from([1, 1, 2, 3, 10, 0, None])
    names = ["root", *(f"a{number}" for number in range(draw(st.integers(0, 6))))]
    accounts = [
        account(name, draw(shares), draw(st.sampled_from(names[: number + 1]))) for number, name in enumerate(names[1:])
    ]
    users = [
        user(draw(st.sampled_from(names)), f"u{number}", draw(shares)) for number in range(draw(st.integers(1, 8)))
    ]
    made = accounts_of(*accounts, *users)
    amounts = st.one_of(st.sampled_from([0.0, 1.0, 64.0]), st.floats(0.001, 1e6))
    return made, usage_of(made, {each.user: draw(amounts) for each in users})
