"""The conformance suite of adapters: does one keep what this library promises?

It needs no test runner; under pytest, a test that calls :func:`check_adapter` is all there is to write.
"""

from rollout_cassettes.testing.checks import CHECKS
from rollout_cassettes.testing.run import MakeRun, Run
from rollout_cassettes.testing.suite import check_adapter

__all__ = ["CHECKS", "MakeRun", "Run", "check_adapter"]
