"""What the names in a cluster's rules may be: partitions, pools, accounts, QOS, users, resources."""

from __future__ import annotations

import re

from cockpit.model.text import is_visible, visible

NAME_PATTERN = r"^\w[\w.@+-]{0,62}$"
"""No blank, comma, slash, colon, equals sign or bracket: each of them means something in a list of names."""
_NAME = re.compile(NAME_PATTERN)
TRES_PATTERN = r"^(cpu|mem|node|billing|gres/gpu(:[^,=:\s][^,=:\t\n]{0,62})?)$"
LARGEST_AMOUNT = 1e15
_TRES = re.compile(TRES_PATTERN)
_USER = re.compile(r"[^\s,/:=|*+-][^\s,/:=|*]{0,252}")


def rule_name_error(name: str) -> str | None:
    """What is wrong with the name of a partition, pool, account or QOS; None when it is fine."""
    if _NAME.fullmatch(name) and is_visible(name):
        return None
    return f'"{visible(name)}" is no name here; use letters, digits and ._@+- , at most 63, not beginning with a sign'


def user_name_error(name: str) -> str | None:
    """What is wrong with a user's name, whatever the machine's own rule is; None when it is fine."""
    if _USER.fullmatch(name) and is_visible(name):
        return None
    return f'"{visible(name)}" is no user name'


def tres_name_error(name: str) -> str | None:
    """What is wrong with a resource's name; None when it is one that cockpit counts."""
    if len(name) <= 80 and _TRES.fullmatch(name) and is_visible(name):
        return None
    known = "cpu, mem, node, billing, gres/gpu and gres/gpu:MODEL"
    return f'"{visible(name)}" is no resource that is counted here; there are {known}'
