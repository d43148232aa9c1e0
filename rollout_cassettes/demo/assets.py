"""What a toy training needs instead of a model hub: a tokenizer, a model, data and a reward."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

__all__ = ["Assets", "make_assets"]

TRAIN_PROMPTS = 32
VALIDATION_PROMPTS = 4

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

REWARD_FUNCTION = '''\
"""Reward of the toy arithmetic task."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """Score a reply: a sixteenth for each character of plain text, plus one for the right sum.

    Sixteenths add up to the same mean in any order. verl returns validation rows as they finish,
    so that scores with rounding errors would differ between equal runs.
    """
    correct = float(ground_truth in solution_str)
    plain = sum(" " <= character <= "~" for character in solution_str)
    return {"score": plain / 16 + correct, "acc": correct}
'''


@dataclass(frozen=True)
class Assets:
    """The files of the toy task, all under one directory."""

    root: Path

    @property
    def model(self) -> Path:
        """The directory of the tokenizer and the model, in the Hugging Face layout."""
        return self.root / "model"

    @property
    def train(self) -> Path:
        """The training prompts, in the layout of verl's RLHFDataset."""
        return self.root / "train.parquet"

    @property
    def validation(self) -> Path:
        """The validation prompts, none of which is a training prompt."""
        return self.root / "validation.parquet"

    @property
    def reward(self) -> Path:
        """The Python file with verl's `compute_score`."""
        return self.root / "reward.py"


def make_assets(directory: str | Path) -> Assets:
    """Write the toy task into a directory; the same bytes every time, nothing downloaded.

    Args:
        directory: Where to; made if missing.

    Returns:
        The paths of what was written.
    """
    assets = Assets(Path(directory).resolve())
    assets.model.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(assets.model)
    _model(tokenizer).save_pretrained(assets.model)
    questions = _questions()
    _write_prompts(assets.train, questions[:TRAIN_PROMPTS], split="train")
    _write_prompts(assets.validation, questions[TRAIN_PROMPTS:], split="validation")
    assets.reward.write_text(REWARD_FUNCTION)
    return assets


def _tokenizer() -> Any:
    """Make a byte-level tokenizer: 256 bytes, no merges, and the ChatML marks."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: index for index, character in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",  # noqa: S106 - a token of text, not of access
        pad_token="<|endoftext|>",  # noqa: S106
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _model(tokenizer: Any) -> Any:
    """Make a Qwen2 with 39 thousand random parameters, leaving torch's generator as it was."""
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Qwen2ForCausalLM(config)


def _questions() -> list[tuple[int, int]]:
    """Draw pairs of summands, all different, the same every time."""
    pairs = [(left, right) for left in range(20) for right in range(20)]
    # A toy data set must be the same everywhere; nothing here is secret.
    return random.Random(1).sample(pairs, TRAIN_PROMPTS + VALIDATION_PROMPTS)  # noqa: S311


def _write_prompts(path: Path, questions: list[tuple[int, int]], split: str) -> None:
    rows = [
        {
            "data_source": "toy/sums",
            "prompt": [{"role": "user", "content": f"What is {left} plus {right}?"}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(left + right)},
            "extra_info": {"split": split, "index": index},
        }
        for index, (left, right) in enumerate(questions)
    ]
    pd.DataFrame(rows).to_parquet(path)
