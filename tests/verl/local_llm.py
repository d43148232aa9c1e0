"""A deterministic LLM in this process, asked as verl's LLM servers are."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter

from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

BYTES = 256  # the tokenizer's ids below this are bytes of text


class RequestFailedError(RuntimeError):
    """A request that a test asked to fail."""


class LocalLLM(LLMServerClient):
    """Replies that follow from the weights, the prompt, and how often it was asked before.

    Args:
        config: verl's whole configuration.
        fail: Which training requests raise, counted from 1 in the order of arrival.
    """

    def __init__(self, config, fail=()):
        super().__init__(config=config, load_balancer_handle=None)
        self.fail = frozenset(fail)
        self.training = 0
        self.validation = 0
        self.paused = False
        self.digests = {}
        self._weights = ""
        self._version = 0
        self._asked = Counter()

    def load(self, weights_digest, version):
        """Answer from now on as these weights would."""
        self._weights, self._version = weights_digest, version
        self.digests[version] = weights_digest

    async def generate(self, request_id, *, prompt_ids, sampling_params, **kwargs):
        """Give a reply of 1 to `response_length` tokens; wait for each while paused."""
        greedy = sampling_params["temperature"] == 0
        self._count(greedy)
        draw = random.Random(self._seed(tuple(prompt_ids), greedy))
        first_version = self._version
        length = draw.randint(1, self.config.actor_rollout_ref.rollout.response_length)
        token_ids, log_probs = [], []
        for _ in range(length):
            await self._resumed()
            token_ids.append(draw.randrange(BYTES))
            log_probs.append(-draw.random())
        return TokenOutput(
            token_ids=token_ids,
            log_probs=log_probs if sampling_params.get("logprobs") else None,
            stop_reason="completed",
            extra_fields={
                "global_steps": self._version,
                "min_global_steps": first_version,
                "max_global_steps": self._version,
            },
        )

    def _count(self, greedy):
        """Tell validation from training by its sampling; the configuration makes them differ."""
        if greedy:
            self.validation += 1
            return
        self.training += 1
        if self.training in self.fail:
            raise RequestFailedError(f"training request {self.training} was asked to fail")

    def _seed(self, prompt, greedy):
        question = (self._weights, prompt, greedy)
        turn = 0 if greedy else self._asked[question]
        self._asked[question] += 1
        return hashlib.sha256(repr((question, turn)).encode()).hexdigest()

    async def _resumed(self):
        await asyncio.sleep(0)
        while self.paused:  # noqa: ASYNC110 - the trainer pauses it from another thread
            await asyncio.sleep(0.001)
