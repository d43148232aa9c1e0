"""A training with TRL that takes a second on a CPU: a tiny random Qwen2 learns to write digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
import trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from rollout_cassettes.demo.assets import make_assets

_CLOCK = ("step_time", "runtime", "per_second", "_flos")
"""Parts of the names of what is measured, and differs between equal runs."""


@dataclass
class TrainingRun:
    """What a training did and left behind.

    Attributes:
        trainer: The trainer.
        session: The session that was open.
        parameters: The trained parameters, by name.
        metrics: All that was logged, without what is measured.
        generations: How often the model was asked to generate.
        rewards: How often the reward function was called.
    """

    trainer: Any
    session: Any
    parameters: dict[str, torch.Tensor]
    metrics: list[dict[str, Any]]
    generations: int
    rewards: int

    def is_equal(self, other: TrainingRun) -> bool:
        """Tell whether parameters, and every logged metric, are equal to the bit."""
        return self.metrics == other.metrics and all(
            torch.equal(value, other.parameters[name]) for name, value in self.parameters.items()
        )


class Training:
    """Makes trainers and trains them.

    Args:
        directory: Where model, data and outputs go.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.assets = make_assets(directory / "assets")
        transformers.utils.logging.disable_progress_bar()

    def __call__(
        self, session: Any = None, trainer: Any = "GRPO", *, resume: Any = None, **options: Any
    ) -> TrainingRun:
        """Train, with a session open around `train()`, and return what came of it.

        Args:
            session: The session; None for none.
            trainer: "GRPO", "RLOO", or a class made from one of the two.
            resume: The checkpoint to go on from.
            **options: As for :meth:`make`.
        """
        made = self.make(trainer, **options)
        calls = counted(made)
        with one_thread(), session or nullcontext() as opened:
            made.train(resume_from_checkpoint=resume)
        return finished(made, opened, calls)

    def make(
        self, trainer: Any = "GRPO", *, questions: int = 32, dropout: float = 0.1, **config: Any
    ) -> Any:
        """Return a trainer: 6 steps of 2 prompts, with evaluation, dropout and a reference model.

        Args:
            trainer: As for a call.
            questions: How many questions to draw from.
            dropout: The dropout of the model's attention.
            **config: The trainer's own options.
        """
        cls = trainer if isinstance(trainer, type) else getattr(trl, f"{trainer}Trainer")
        config_cls = trl.RLOOConfig if "RLOO" in cls.__name__ else trl.GRPOConfig
        options = {
            "output_dir": str(self.directory / "out"),
            "max_steps": 6,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "per_device_eval_batch_size": 4,
            "num_generations": 4,
            "max_completion_length": 8,
            "learning_rate": 1e-3,
            "beta": 0.04,
            "eval_strategy": "steps",
            "eval_steps": 3,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "disable_tqdm": True,
        }
        rows = Dataset.from_list(self._rows())
        model = AutoModelForCausalLM.from_pretrained(
            self.assets.model,
            attention_dropout=dropout,
            attn_implementation="eager",
            dtype=torch.float32,
        )
        tokenizer = AutoTokenizer.from_pretrained(self.assets.model)
        tokenizer.model_input_names = ["input_ids", "attention_mask"]  # Qwen2 has no token types
        # One token in five ends a completion: their lengths differ.
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(100, 150)]
        made = cls(
            model=model,
            reward_funcs=digits,
            args=config_cls(**(options | config)),
            train_dataset=rows.select(range(questions)),
            eval_dataset=rows.select(range(30, 32)),
            processing_class=tokenizer,
        )
        for callback in (transformers.PrinterCallback, transformers.ProgressCallback):
            made.remove_callback(callback)
        return made

    def _rows(self) -> list[dict[str, Any]]:
        frame = pd.read_parquet(self.assets.train)
        return [
            {"prompt": [dict(turn) for turn in row["prompt"]], **row["reward_model"]}
            for _, row in frame.iterrows()
        ]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread: with more, those of a busy machine wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def digits(completions: list[Any], ground_truth: list[str], **others: Any) -> list[float]:
    """Reward digits, by sevenths: sums of them are rounded; the right ones more."""
    texts = [turns[0]["content"] for turns in completions]
    return [
        sum(1 + (character in truth) for character in text if character.isdigit()) / 7
        for text, truth in zip(texts, ground_truth, strict=True)
    ]


def finished(trainer: Any, session: Any, calls: dict[str, int]) -> TrainingRun:
    """Return what a training that has ended left behind."""
    return TrainingRun(
        trainer=trainer,
        session=session,
        parameters={n: p.detach().clone() for n, p in trainer.model.named_parameters()},
        metrics=[
            {name: value for name, value in entry.items() if not any(c in name for c in _CLOCK)}
            for entry in trainer.state.log_history
        ],
        generations=calls["generate"],
        rewards=calls["reward"],
    )


def counted(trainer: Any) -> dict[str, int]:
    """Count how often a trainer's model generates, and its reward function is called."""
    calls = {"generate": 0, "reward": 0}

    def counting(name: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return function(*args, **kwargs)

        return call

    trainer.model.generate = counting("generate", trainer.model.generate)
    trainer.reward_funcs = [counting("reward", function) for function in trainer.reward_funcs]
    return calls
