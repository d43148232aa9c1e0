"""A small training loop with a rollout engine, run as a script by `test_determinism`.

    python training.py FOLDER MODE...

It trains once in each mode (see `MODES`), saves what the training left behind as `FOLDER/MODE.pt`,
and prints how often the engine generated in each of them.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

import numpy as np
import torch

import rollout_cassettes as rc

STEPS, BATCH, LENGTH, VOCABULARY = 4, 6, 5, 11

generated = []
"""What the engine was asked for, call by call."""


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 8)
        self.dropout = torch.nn.Dropout(0.3)
        self.head = torch.nn.Linear(8, VOCABULARY)

    def forward(self, ids):
        return self.head(self.dropout(self.embedding(ids)))


def generate(policy, prompts, step):
    """Sample answers: draws from all three generators, and takes what the weights are now."""
    generated.append(len(prompts))
    policy.eval()
    ids = prompts
    with torch.no_grad():
        for _ in range(LENGTH):
            probabilities = policy(ids[:, -1]).softmax(-1)
            ids = torch.cat([ids, torch.multinomial(probabilities, 1)], 1)
    policy.train()
    rewards = [random.gauss(0, 1) + float(np.random.rand()) for _ in range(BATCH)]  # noqa: NPY002
    return {"ids": ids, "rewards": torch.tensor(rewards), "texts": [str(row) for row in ids]}


async def agenerate(policy, prompts, step):
    """Generate in three requests that are in flight together and end in another order."""
    rows = [
        request(policy, prompts[start::3], delay)
        for start, delay in zip(range(3), (0.003, 0.001, 0.002), strict=True)
    ]
    parts = await asyncio.gather(*rows)
    return {name: torch.cat([part[name] for part in parts]) for name in ("ids", "rewards")}


async def request(policy, prompts, delay):
    generated.append(len(prompts))
    await asyncio.sleep(delay)
    with torch.no_grad():
        noise = torch.rand(len(prompts), LENGTH)
        ids = torch.cat([prompts, (noise * VOCABULARY).long()], 1)
    return {"ids": ids, "rewards": torch.rand(len(prompts)) + random.random()}


def train(rollout):
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    policy = Policy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(3)
    for step in range(1, STEPS + 1):
        prompts = torch.randint(VOCABULARY, (BATCH, 2), generator=data)
        batch = rollout(policy, prompts, step)
        for rows in torch.randperm(BATCH).split(3):  # mini-batches, drawn after the rollout
            logits = policy(batch["ids"][rows, :-1])
            log_probs = logits.log_softmax(-1)
            taken = log_probs.gather(-1, batch["ids"][rows, 1:, None]).squeeze(-1)
            loss = -(taken.mean(1) * batch["rewards"][rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return policy, optimizer


class Requests:
    """How a loop that makes three requests at a time is recorded: each call is a step."""

    adapter = rc.adapters.function(
        "__main__:request", request_of=lambda policy, prompts, delay: list(prompts)
    )
    rollout = staticmethod(lambda *args: asyncio.run(agenerate(*args)))


class Whole:
    """How a loop that makes one call a step is recorded."""

    adapter = rc.adapters.function(
        "__main__:generate",
        step_of=lambda policy, prompts, step: step,
        request_of=lambda policy, prompts, step: list(prompts),
    )

    @staticmethod
    def rollout(*args):
        return generate(*args)  # by its name, as a loop does: that is what is patched


def recorded(kind, folder):
    with rc.record(path=folder / kind.__name__, adapters=kind.adapter, on_unstorable="error"):
        return train(kind.rollout)


def replayed(kind, folder, **options):
    path = folder / kind.__name__
    with rc.replay(path=path, adapters=kind.adapter, on_unplayed="error", **options):
        return train(kind.rollout)


MODES = {
    "live": lambda folder: train(generate),
    "recorded": lambda folder: recorded(Whole, folder),
    "replayed": lambda folder: replayed(Whole, folder),
    "replayed_without_rng": lambda folder: replayed(Whole, folder, restore_rng=False),
    "requests_recorded": lambda folder: recorded(Requests, folder),
    "requests_replayed": lambda folder: replayed(Requests, folder),
}


def main(folder, modes):
    counts = {}
    for mode in modes:
        generated.clear()
        policy, optimizer = MODES[mode](folder)
        left = {
            "parameters": policy.state_dict(),
            "optimizer": optimizer.state_dict()["state"],
            "generators": {
                "torch": torch.get_rng_state(),
                "python": torch.tensor(random.getstate()[1]),
                "numpy": torch.from_numpy(np.random.get_state()[1].astype(np.int64)),  # noqa: NPY002
            },
        }
        torch.save(left, folder / f"{mode}.pt")
        counts[mode] = len(generated)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
