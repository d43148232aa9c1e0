"""Runs to report on: sums that a made-up policy gets right more often from step to step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rollout_cassettes as rc

GROUPS, EACH = 6, 4
HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
)
"""What a model might write to take over a page that shows it."""

WORDS = (
    "<eos>",
    " the",
    " sum",
    " of",
    " is",
    " so",
    " we",
    " add",
    " \N{BLACK HEART SUIT}",
    HOSTILE,
)


def write_run(path: Path, *, steps=6, seed=0, validate=False, log_probs=True) -> Path:
    """Record a run: text, tokens, log-probs, masks, rewards of 0 and 1, and a field of its own."""
    rng = np.random.default_rng(seed)

    @rc.adapters.function(step_of=lambda step, phase: step, phase_of=lambda step, phase: phase)
    def rollout(step, phase):
        return batch(rng, step, steps, log_probs=log_probs)

    with rc.record(
        path=path, metadata={"seed": seed, "note": "<b>bold</b>"}, phases=("train", "val")
    ):
        for step in range(1, steps + 1):
            rollout(step, "train")
            if validate and step % 3 == 0:
                rollout(step, "val")
    return path


def batch(rng, step, steps, *, log_probs=True):
    """Return the trajectories of a step, as columns."""
    columns = {name: [] for name in ("uid", "prompt", "completions", "completion_ids", "mask")}
    columns |= {"logprobs": [], "score": [], "extra": []}
    for group in range(GROUPS):
        hard = group / GROUPS
        for _ in range(EACH):
            length = int(min(90, rng.lognormal(3.3, 0.5)))
            ids = rng.integers(1, len(WORDS) - 1, length)
            mask = np.ones(length, np.int64)
            if group == 1:
                mask[3:6] = 0
            columns["uid"].append(f"{step}-{group}")
            columns["prompt"].append(
                [
                    {"role": "system", "content": "You add numbers."},
                    {"role": "user", "content": f"What is {group} + {step}?"},
                ]
            )
            columns["completions"].append("".join(WORDS[token] for token in ids))
            columns["completion_ids"].append(ids)
            columns["mask"].append(mask)
            sure = rng.random(length) < 0.6
            columns["logprobs"].append(
                np.where(sure, -rng.exponential(0.01, length), -rng.exponential(1.6, length))
            )
            columns["score"].append(float(rng.random() < (1 - hard) * (0.3 + 0.7 * step / steps)))
            columns["extra"].append({"difficulty": hard, "long": np.arange(500)})
    columns["completions"][0] = f"It is {HOSTILE} needle"
    columns["completion_ids"][0] = np.array([4, 9, 0])
    columns["mask"][0] = np.ones(3, np.int64)
    columns["logprobs"][0] = np.array([-0.01, -6.0, -0.5])
    if not log_probs:
        del columns["logprobs"]
    return columns


def write_tokenizer(directory: Path) -> Path:
    """Write the tokenizer of these words."""
    import tokenizers

    directory.mkdir()
    words = {word: token for token, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token=WORDS[0]))
    made.decoder = tokenizers.decoders.Fuse()
    made.save(str(directory / "tokenizer.json"))
    return directory
