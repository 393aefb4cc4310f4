"""A module that is loaded late is the module."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cockpit.late import LazyModule

LOADED_WHEN_USED = """
import json, sys
from cockpit.late import LazyModule
late = LazyModule("fractions")
before = "fractions" in sys.modules
print(json.dumps([before, late.Fraction(1, 2) * 2 == 1, "fractions" in sys.modules]))
"""


def test_a_lazy_module_is_loaded_on_first_use():
    done = subprocess.run([sys.executable, "-c", LOADED_WHEN_USED], capture_output=True, check=True)
    assert json.loads(done.stdout) == [False, True, True]


def test_a_missing_attribute_is_missing_in_the_lazy_module_too():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        LazyModule("fractions").nonsense  # noqa: B018 - looked up for its error
