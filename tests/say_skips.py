"""
Runs a test script; each of its tests that is skipped is said in a line,

    SKIPPED NAME: REASON

for scripts/unexpected-skips. unittest itself tells how many there were.
"""

import os
import runpy
import sys
import unittest

add_skip = unittest.TestResult.addSkip


def say_and_add_skip(result, test, reason):
    print(f"\nSKIPPED {test.id()}: {reason}", flush=True)
    add_skip(result, test, reason)


unittest.TestResult.addSkip = say_and_add_skip
del sys.argv[0]
sys.path[0] = os.path.dirname(sys.argv[0])
# Where harness.py is.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "live"))
runpy.run_path(sys.argv[0], run_name="__main__")
