"""A training with torchrl that takes a second on a CPU: a tiny random Qwen2 answers sums."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensordict
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from rollout_cassettes.demo.assets import make_assets

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torchrl's own modules warn of each other
    from torchrl.collectors.llm import LLMCollector, RayLLMCollector
    from torchrl.data import LazyStackStorage, ReplayBuffer, SamplerWithoutReplacement, Unbounded
    from torchrl.envs import Transform
    from torchrl.envs.llm import DatasetChatEnv
    from torchrl.modules.llm import TransformersWrapper
    from torchrl.objectives.llm import MCAdvantage

__all__ = [
    "LLMCollector",
    "RayLLMCollector",
    "Training",
    "TrainingRun",
    "one_thread",
    "parameters",
    "train",
]

GROUP = 2
"""How many dialogs share a prompt."""

SLOTS = 4
"""How many dialogs the environment holds."""


@dataclass
class TrainingRun:
    """What a training did and left behind.

    Attributes:
        collector: The collector.
        session: The session that was open.
        batches: What the collector yielded.
        losses: The loss of each update, as its bits.
        parameters: The trained parameters.
        buffer: The replay buffer.
        generations: How often the model was asked to generate.
    """

    collector: Any
    session: Any
    batches: list[Any]
    losses: list[bytes]
    parameters: list[torch.Tensor]
    buffer: Any
    generations: int

    def is_equal(self, other: TrainingRun) -> bool:
        """Tell whether parameters and losses are equal to the bit."""
        pairs = zip(self.parameters, other.parameters, strict=True)
        return self.losses == other.losses and all(torch.equal(*pair) for pair in pairs)


class Training:
    """Makes collectors and trains with them.

    Args:
        directory: Where the model goes.
    """

    def __init__(self, directory: Path) -> None:
        logging.disable_progress_bar()
        assets = make_assets(directory)
        self.tokenizer = AutoTokenizer.from_pretrained(assets.model)
        self._load = lambda: AutoModelForCausalLM.from_pretrained(
            assets.model, attn_implementation="eager", dtype=torch.float32
        )

    def __call__(
        self, session: Any = None, *, buffered: bool = False, updates: bool = True, **options: Any
    ) -> TrainingRun:
        """Train, with a session open around the loop, and return what came of it.

        Args:
            session: The session; None for none.
            buffered: Whether the collector writes into a replay buffer.
            updates: Whether the model is trained on what was collected.
            **options: As for :meth:`make`.
        """
        with one_thread():
            buffer = self.make_buffer()
            collector = self.make(replay_buffer=buffer if buffered else None, **options)
            with session or nullcontext() as opened:
                batches, losses = train(collector, buffer, updates=updates)
            return TrainingRun(
                collector,
                opened,
                batches,
                losses,
                parameters(collector),
                buffer,
                collector.policy.model.generations,
            )

    def make(
        self,
        collector: Any = LLMCollector,
        *,
        mode: str = "history",
        turns: int = 1,
        slots: int = SLOTS,
        questions: Any = range(16),
        padded: bool = False,
        shuffle: bool = True,
        repeats: int = GROUP,
        **config: Any,
    ) -> Any:
        """Return a collector of 3 batches, with two turns of each of four dialogs in a batch.

        Args:
            collector: Its class.
            mode: What prompts are: "history", "text" or "tokens".
            turns: After how many turns a dialog is done at the latest.
            slots: How many dialogs the environment holds.
            questions: What the data set asks about.
            padded: Whether the policy pads what it gives.
            shuffle: Whether the data set is shuffled.
            repeats: How many dialogs share a prompt.
            **config: The collector's own options.
        """
        torch.manual_seed(0)
        model = self._load()
        model.generations = 0
        generate = model.generate

        def counting(*args: Any, **kwargs: Any) -> Any:
            model.generations += 1
            return generate(*args, **kwargs)

        model.generate = counting
        policy = TransformersWrapper(
            model,
            tokenizer=self.tokenizer,
            input_mode=mode,
            generate=True,
            return_log_probs=True,
            pad_output=padded,
            generate_kwargs={"max_new_tokens": 6, "do_sample": True},
        )
        options = {"dialog_turns_per_batch": 8, "total_dialog_turns": 24}
        env = self.env(mode, turns, slots, questions, shuffle=shuffle, repeats=repeats)
        return collector(env, policy=policy, **(options | config))

    def loop(self) -> tuple[Any, Any]:
        """Return a collector, and a function that trains on what it yields."""
        buffer = self.make_buffer()
        collector = self.make()

        def step(batch: Any) -> None:
            buffer.extend(batch.reshape(-1))
            list(update(collector.policy.model, buffer))

        return collector, step

    def env(
        self, mode: str, turns: int, slots: int, questions: Any, *, shuffle: bool, repeats: int
    ) -> Any:
        """Return an environment that draws prompts from a data set, and rewards replies."""
        rows = [
            {"query": f"What is {n} plus {n + 1}?", "answer": str(2 * n + 1)} for n in questions
        ]
        loader = DataLoader(
            rows,
            batch_size=2,
            shuffle=shuffle,
            collate_fn=lambda items: {name: [each[name] for each in items] for name in items[0]},
            generator=torch.Generator().manual_seed(0),
        )
        env = DatasetChatEnv.from_dataloader(
            loader,
            repeats=repeats,
            batch_size=(slots,),
            tokenizer=self.tokenizer,
            input_mode=mode,
        )
        env.append_transform(Reward(mode, turns))
        return env

    def make_buffer(self) -> Any:
        """Return a replay buffer that computes the advantages of each group."""
        return ReplayBuffer(
            storage=LazyStackStorage(64),
            sampler=SamplerWithoutReplacement(),
            transform=MCAdvantage(grpo_size=GROUP),
            batch_size=4,
        )


class Reward(Transform):
    """Rewards even tokens, by sevenths: sums of them are rounded; counts how often it is called."""

    def __init__(self, mode: str, turns: int) -> None:
        super().__init__()
        self.mode, self.turns, self.calls = mode, turns, 0

    def _step(self, tensordict: Any, next_tensordict: Any) -> Any:
        self.calls += 1
        slots = tensordict.unbind(0)
        replies = [row["tokens"].response for row in slots]
        rewards = [float((reply % 2 == 0).sum()) / 7 for reply in replies]
        told = [row["history"].prompt if self.mode == "history" else "" for row in slots]
        done = torch.tensor([len(each) >= self.turns or self.turns == 1 for each in told])
        next_tensordict["reward"] = torch.tensor(rewards).unsqueeze(-1)
        next_tensordict["done"] = done.unsqueeze(-1)
        next_tensordict["terminated"] = done.unsqueeze(-1)
        return next_tensordict

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        reward_spec["reward"] = Unbounded(shape=(*reward_spec.shape, 1))
        return reward_spec


def train(collector: Any, buffer: Any, *, updates: bool = True) -> tuple[list[Any], list[bytes]]:
    """Go through what a collector yields; return it, and the loss of each update, as its bits.

    Args:
        collector: The collector.
        buffer: The replay buffer, to which batches are added that are yielded.
        updates: Whether the model is trained on what was collected.
    """
    batches: list[Any] = []
    losses: list[bytes] = []
    for batch in collector:
        batches.append(batch)
        if not updates:
            continue
        if batch is not None:
            buffer.extend(batch.reshape(-1))
        losses += update(collector.policy.model, buffer)
    return batches, losses


def parameters(collector: Any) -> list[torch.Tensor]:
    """Return a copy of the parameters of a collector's model."""
    return [each.detach().clone() for each in collector.policy.model.parameters()]


def update(model: Any, buffer: Any) -> Iterator[bytes]:
    """Take two steps with GRPO's loss, of what is in a buffer; yield the losses, as their bits.

    It is written out: with torchrl 0.14.1's `GRPOLoss` the actor makes tokens of the batch's text or
    history again. Of bytes that are no UTF-8, which a random model gives, those are more tokens than
    were sampled, and the loss raises that sizes of tensors don't match.
    """
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for _ in range(2):
        parts = [ratios(model, row) * row["advantage"].mean() for row in buffer.sample().unbind(0)]
        loss = -torch.cat(parts).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach().numpy().tobytes()


def ratios(model: Any, row: Any) -> torch.Tensor:
    """Return how much more likely each token of a reply is by now than when it was sampled."""
    reply = row["tokens"].response
    logits = model(row["tokens"].full[None]).logits[0, -len(reply) - 1 : -1]
    log_probs = logits.log_softmax(-1).gather(-1, reply[:, None])[:, 0]
    return (log_probs - row["log_probs"].response).exp()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread, and tensordict stack lists, as torchrl asks for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tensordict.set_list_to_stack(True):
            yield
    finally:
        torch.set_num_threads(before)
