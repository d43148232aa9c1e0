"""Cassettes to be shrunk."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc


@pytest.fixture
def loop(tmp_path):
    """Make a loop of one's own: `loop(answer, name="c", **options)` gives a function of prompts and step."""

    def make(answer, name="c", **options):
        compared = options.pop("compared", True)
        given = {"request_of": lambda prompts, step: prompts} if compared else {}
        adapter = rc.adapters.function(
            step_of=lambda prompts, step: step, name=f"tests.shrinking.{name}", **given, **options
        )

        @adapter
        def generate(prompts, step):
            return answer(prompts, step)

        return generate

    return make
