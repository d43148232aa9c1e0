"""Stands in for `openrlhf.trainer.ppo_utils.samples_generator`, as openrlhf 0.11.2 published it.

Its signatures and its attributes, and how prompts are drawn from the iterator and samples wait in
the buffer; engines are called directly, and not through Ray.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Experience:
    sequences: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None
    action_mask: torch.Tensor | None = None
    rollout_log_probs: torch.Tensor | None = None
    rewards: torch.Tensor | None = None
    prompts: list[Any] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)


class SamplesGenerator:
    def __init__(self, strategy, prompts_dataloader, eval_dataloader, tokenizer, vllm_engines):
        self.args = strategy.args
        self.prompts_dataloader = prompts_dataloader
        self.eval_dataloader = eval_dataloader
        self.tokenizer = tokenizer
        self.vllm_engines = vllm_engines

    def generate_eval_samples(self, **generate_kwargs):
        samples, count = [], self.args.rollout.batch_size
        iterator, ended = iter(self.eval_dataloader), False
        while not ended:
            made, _, ended = self._made(iterator, count, False, generate_kwargs)
            samples += made
        self._eval_dataloader_iter = None
        return samples

    def generate_samples(self, **generate_kwargs):
        if getattr(self, "_dataloader_iter", None) is None and not getattr(
            self, "_sample_buffer", None
        ):
            self._dataloader_iter, self._sample_buffer = iter(self.prompts_dataloader), []
        rollout, rate, drawn = self.args.rollout, None, 0
        size = rollout.batch_size * rollout.n_samples_per_prompt
        if len(self._sample_buffer) < size and self._dataloader_iter is not None:
            filters = self.args.algo.dynamic_filtering_enable
            made, drawn, ended = self._made(
                self._dataloader_iter,
                rollout.vllm_generate_batch_size or rollout.batch_size,
                filters,
                generate_kwargs,
            )
            rate = len(made) / drawn * 100 if filters and drawn else None
            self._sample_buffer += made
            if ended:
                self._dataloader_iter = None
        given, self._sample_buffer = self._sample_buffer[:size], self._sample_buffer[size:]
        ended = self._dataloader_iter is None and not self._sample_buffer
        return given, rate, drawn, ended

    def _made(self, iterator, count, filters, generate_kwargs):
        """Return samples for so many prompts, how many were drawn, and whether those were all."""
        samples, drawn, wanted = [], 0, count
        while wanted:
            batch = next(iterator, None)
            if batch is None:
                return samples, drawn, True
            _, (prompt,), (label,), (images,) = batch
            drawn, wanted = drawn + 1, wanted - 1
            responses = self.vllm_engines[0].generate_responses.remote(
                prompt=prompt,
                label=label,
                sampling_params=None,
                max_length=2048,
                hf_tokenizer=self.tokenizer,
                num_samples=generate_kwargs.get(
                    "n_samples_per_prompt", self.args.rollout.n_samples_per_prompt
                ),
                images=images,
            )
            scores = [each["scores"] for each in responses]
            low, high = self.args.algo.dynamic_filtering_range
            if filters and not low < sum(scores) / len(scores) < high:
                wanted += 1
                continue
            samples += [_experience(each) for each in responses]
        return samples, drawn, False


def _experience(response):
    tokens = torch.tensor([response["observation_tokens"]])
    mask = torch.zeros_like(tokens)
    for start, end in response["action_ranges"]:
        mask[:, start:end] = 1
    return Experience(
        sequences=tokens,
        attention_mask=torch.ones_like(tokens),
        action_mask=mask[:, 1:],
        rollout_log_probs=torch.tensor([response["rollout_log_probs"][1:]]),
        rewards=torch.tensor([response["reward"]]),
        prompts=[response["prompt"]],
        labels=[response["label"]],
        info={"reward": torch.tensor([response["reward"]])},
    )
