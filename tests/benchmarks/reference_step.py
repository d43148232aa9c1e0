"""A made-up training step of realistic size: 128 prompts x 8 responses.

Lengths and token ids follow what math reasoning runs look like: response lengths are log-normal
with a median of some 450 tokens, token ids are Zipf-distributed over a vocabulary of 151,936, and
most tokens were sampled with a probability near 1.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import torch

PROMPTS, RESPONSES_EACH = 128, 8
PROMPT_SLOTS, RESPONSE_SLOTS = 512, 4096
VOCABULARY = 151_936
PAD = 151_643


@dataclass(frozen=True)
class ReferenceStep:
    """The trajectories of one step, without padding.

    Attributes:
        prompts: Token ids of each trajectory's prompt, int64.
        responses: Token ids of each response, int64.
        log_probs: Log-probability of each response token, float32.
        scores: The reward, float32, on the last response token.
        uids: The prompt's uid of each trajectory.
        raw_prompts: The prompt of each trajectory, as chat messages.
        answers: What the reward function compares with.
    """

    prompts: list[torch.Tensor]
    responses: list[torch.Tensor]
    log_probs: list[torch.Tensor]
    scores: list[torch.Tensor]
    uids: list[str]
    raw_prompts: list[list[dict[str, str]]]
    answers: list[dict[str, str]]

    def __len__(self) -> int:
        return len(self.prompts)


def make(seed: int = 0, prompts: int = PROMPTS) -> ReferenceStep:
    """Make the step; the same seed gives the same step."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list] = {name: [] for name in ReferenceStep.__dataclass_fields__}
    for _ in range(prompts):
        uid = str(uuid.UUID(bytes=rng.bytes(16), version=4))
        prompt = _tokens(rng, int(np.clip(rng.lognormal(4.9, 0.4), 40, PROMPT_SLOTS)))
        text = " ".join(f"word{token % 5000}" for token in prompt.tolist())
        answer = {"style": "rule", "ground_truth": str(int(rng.integers(1000)))}
        for _ in range(RESPONSES_EACH):
            length = int(np.clip(rng.lognormal(6.1, 0.6), 16, RESPONSE_SLOTS))
            rows["prompts"].append(prompt)
            rows["responses"].append(_tokens(rng, length))
            rows["log_probs"].append(_log_probs(rng, length))
            score = torch.zeros(length)
            score[-1] = float(rng.random() < 0.4)
            rows["scores"].append(score)
            rows["uids"].append(uid)
            rows["raw_prompts"].append([{"role": "user", "content": text}])
            rows["answers"].append(answer)
    return ReferenceStep(**rows)


def _tokens(rng: np.random.Generator, length: int) -> torch.Tensor:
    return torch.from_numpy(np.minimum(rng.zipf(1.35, length), VOCABULARY) - 1).to(torch.int64)


def _log_probs(rng: np.random.Generator, length: int) -> torch.Tensor:
    """Return log-probabilities as engines compute them: logit minus log-sum-exp, in float32."""
    sure = rng.random(length) < 0.7
    values = np.where(sure, -rng.exponential(1e-4, length), -rng.exponential(0.8, length))
    logits = rng.normal(20.0, 3.0, length).astype(np.float32)
    return torch.from_numpy(logits - (logits - values).astype(np.float32))


def as_dataproto(step: ReferenceStep):
    """Return the step as the padded DataProto of verl's V0 trainer; about 218 MB of tensors."""
    from verl import DataProto

    def left(rows, slots, value, dtype):
        return _padded(rows, slots, value, dtype, on_the_left=True)

    def right(rows, slots, value, dtype):
        return _padded(rows, slots, value, dtype, on_the_left=False)

    prompts = left(step.prompts, PROMPT_SLOTS, PAD, torch.int64)
    responses = right(step.responses, RESPONSE_SLOTS, PAD, torch.int64)
    prompt_mask = left([torch.ones_like(row) for row in step.prompts], PROMPT_SLOTS, 0, torch.int64)
    response_mask = right(
        [torch.ones_like(row) for row in step.responses], RESPONSE_SLOTS, 0, torch.int64
    )
    attention_mask = torch.cat([prompt_mask, response_mask], dim=1)
    return DataProto.from_dict(
        tensors={
            "prompts": prompts,
            "responses": responses,
            "input_ids": torch.cat([prompts, responses], dim=1),
            "attention_mask": attention_mask,
            "position_ids": (attention_mask.cumsum(dim=1) - 1).clamp(min=0),
            "response_mask": response_mask,
            "rollout_log_probs": right(step.log_probs, RESPONSE_SLOTS, 0.0, torch.float32),
            "rm_scores": right(step.scores, RESPONSE_SLOTS, 0.0, torch.float32),
        },
        non_tensors={
            "uid": np.array(step.uids, dtype=object),
            "raw_prompt": _objects(step.raw_prompts),
            "reward_model": _objects(step.answers),
        },
        meta_info={"temperature": 1.0},
    )


def as_v1_payload(step: ReferenceStep):
    """Return the step as V1 samples it: a jagged TensorDict, keys and tags."""
    from tensordict import NonTensorStack, TensorDict

    both = [torch.cat(pair) for pair in zip(step.prompts, step.responses, strict=True)]
    ones = [torch.ones_like(row) for row in step.responses]
    columns = {
        "prompts": _jagged(step.prompts),
        "responses": _jagged(step.responses),
        "input_ids": _jagged(both),
        "position_ids": _jagged([torch.arange(len(row)) for row in both]),
        "response_mask": _jagged(ones),
        "loss_mask": _jagged(ones),
        "rollout_log_probs": _jagged(step.log_probs),
        "rm_scores": _jagged(step.scores),
        "uid": NonTensorStack(*step.uids),
        "raw_prompt": NonTensorStack(*step.raw_prompts),
        "reward_model": NonTensorStack(*step.answers),
    }
    keys = [f"{uid}_{row % RESPONSES_EACH}_0" for row, uid in enumerate(step.uids)]
    tags = [
        {
            "status": "success",
            "prompt_len": len(prompt),
            "response_len": len(response),
            "seq_len": len(prompt) + len(response),
            "global_steps": 1,
            "min_global_steps": 0,
            "max_global_steps": 0,
        }
        for prompt, response in zip(step.prompts, step.responses, strict=True)
    ]
    data = TensorDict(columns, batch_size=[len(step)])
    return {"tensordict": data, "keys": keys, "tags": tags, "global_steps": 1}


def _padded(rows, slots, value, dtype, *, on_the_left):
    batch = torch.full((len(rows), slots), value, dtype=dtype)
    for target, row in zip(batch, rows, strict=True):
        place = slice(slots - len(row), slots) if on_the_left else slice(len(row))
        target[place] = row
    return batch


def _jagged(rows):
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def _objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
