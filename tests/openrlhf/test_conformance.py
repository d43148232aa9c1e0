"""The adapter for OpenRLHF, through the conformance suite."""

from __future__ import annotations

import functools

import pytest

from rollout_cassettes.testing import CHECKS, Run, check_adapter
from tests.openrlhf.conftest import plain

OPTIONS = {
    "plain": {},
    "more than a batch at once": {"vllm_generate_batch_size": 5},
    "filtered": {"filtering": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_it_passes(generator, options):
    """Three steps, each with an evaluation after it; every check was made."""

    def make_run(prompts="abcdefghijklmnop"):
        made = generator(prompts, **options)

        def train():
            log = []
            for _ in range(3):
                log.append(plain(made.generate_samples()))
                log.append([made.prompts_dataloader.position, plain(made._sample_buffer)])
                log.append(plain(made.generate_eval_samples(n_samples_per_prompt=1)))
            return log

        return Run(train, lambda: len(made.vllm_engines[0].prompts))

    other = functools.partial(make_run, "ponmlkjihgfedcba")
    outcomes = check_adapter("openrlhf", make_run, make_other=other)
    assert outcomes == dict.fromkeys(CHECKS, "passed")
