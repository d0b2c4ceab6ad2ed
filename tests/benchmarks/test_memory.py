"""Peak memory counts from the last reset."""

import subprocess
import sys

import pytest

from benchmarks.harness import race

PROGRAM = """
import numpy as np
from benchmarks.harness.memory import forget_peak, peak_mib
large = np.ones((200, 1 << 17)); del large
before = peak_mib()
forget_peak()
base = peak_mib()
small = np.ones((40, 1 << 17)); del small
print(before, base, peak_mib())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_peak_before_the_reset_does_not_count():
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=race.ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    before, base, peak = map(float, output.split())
    assert before > 200
    assert base < before - 150
    assert peak - base == pytest.approx(40, abs=8)
