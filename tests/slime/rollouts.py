"""Rollout functions of a user's, and what slime gives them."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from rollout_cassettes.adapters.slime import FRAMEWORKS
from tests.published import published

HERE = Path(__file__).parent

calls: list[Any] = []
"""What the rollout functions were called for."""


@contextmanager
def stand_ins() -> Iterator[SimpleNamespace]:
    """Give slime's types: those of slime where it is installed, else stand-ins."""
    with ExitStack() as stack:
        for name, file in {
            "utils.types": "types.py",
            "rollout.base_types": "base_types.py",
        }.items():
            stack.enter_context(published(f"slime.{name}", HERE / file))
        yield types_of("slime")


def types_of(framework: str) -> SimpleNamespace:
    """Return the types of a framework that is imported."""
    outputs = import_module(f"{framework}.rollout.base_types")
    return SimpleNamespace(
        Sample=import_module(f"{framework}.utils.types").Sample,
        TrainOutput=outputs.RolloutFnTrainOutput,
        EvalOutput=outputs.RolloutFnEvalOutput,
    )


def _types() -> SimpleNamespace:
    return next(types_of(name) for name in FRAMEWORKS if f"{name}.utils.types" in sys.modules)


class Prompts:
    """A source of prompts, which are numbers: a group of two samples for each."""

    def __init__(self, start: int = 0, group: int = 2) -> None:
        self.start, self.group = start, group
        self.offset = 0
        self.buffer: list[Any] = []
        self.lock = threading.Lock()

    def get_samples(self, num_samples: int) -> list[Any]:
        with self.lock:
            groups, self.buffer = self.buffer[:num_samples], self.buffer[num_samples:]
            return groups + [self._fresh() for _ in range(num_samples - len(groups))]

    def add_samples(self, samples: list[Any]) -> None:
        self.buffer += samples

    def __len__(self) -> int:
        return 100

    def _fresh(self) -> list[Any]:
        number, self.offset = self.offset, self.offset + 1
        return [
            _types().Sample(
                group_index=number,
                index=number * self.group + nth,
                prompt=f"prompt {self.start + number}",
                label=str(number),
                metadata={"source": "numbers"},
            )
            for nth in range(self.group)
        ]


def arguments(**options: Any) -> SimpleNamespace:
    """Return slime's arguments, as far as they are looked at."""
    function = f"{__name__}.generate_rollout"
    cassettes = {"rollout_function": function, **options.pop("cassettes", {})}
    return SimpleNamespace(rollout_batch_size=3, cassettes=cassettes, **options)


def _answered(sample: Any) -> Any:
    length = random.randint(1, 4)
    sample.tokens = [1, 2, *(random.randint(3, 99) for _ in range(length))]
    sample.response, sample.response_length = f"answer {length}", length
    sample.rollout_log_probs = [-random.random() for _ in range(length)]
    sample.rollout_routed_experts = torch.randint(0, 8, (length + 1, 2, 2), dtype=torch.int32)
    sample.reward = random.random()
    sample.status = type(sample).Status.COMPLETED
    sample.session_id = str(random.random())
    return sample


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Draw more than needed, drop what is filtered, and put back what is not finished."""
    calls.append((rollout_id, evaluation))
    types = _types()
    if evaluation:
        samples = [_answered(types.Sample(index=k, prompt=f"question {k}")) for k in range(2)]
        scores = {"rewards": [sample.reward for sample in samples], "samples": samples}
        return types.EvalOutput(data={"numbers": scores}, metrics={"mean": random.random()})
    done: list[Any] = []
    while len(done) < args.rollout_batch_size:
        for group in data_source.get_samples(2):
            rewards = [_answered(sample).reward for sample in group]
            if sum(rewards) > 0.5:
                done.append(group)
    unfinished = data_source.get_samples(1)
    for sample in unfinished[0]:
        sample.response, sample.status = "begun", types.Sample.Status.ABORTED
        sample.metadata["start_rollout_id"] = rollout_id
    data_source.add_samples(unfinished)
    return types.TrainOutput(samples=done, metrics={"drawn": random.random()})


def legacy(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Return a list, as slime's first rollout functions did."""
    calls.append((rollout_id, evaluation))
    groups = data_source.get_samples(args.rollout_batch_size)
    return [[_answered(sample) for sample in group] for group in groups]


def scored(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Return samples whose reward is more than a number."""
    groups = legacy(args, rollout_id, data_source, evaluation)
    for sample in itertools.chain(*groups):
        sample.reward = {"score": sample.reward, "acc": sample.reward > 0.5}
    return groups


def backwards(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Return the groups that were drawn last first."""
    return legacy(args, rollout_id, data_source, evaluation)[::-1]


def filtered(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Draw by twos, of which the first is filtered; put back nothing, as slime does by default."""
    if evaluation:
        return generate_rollout(args, rollout_id, data_source, evaluation)
    calls.append((rollout_id, evaluation))
    done = []
    while len(done) < args.rollout_batch_size:
        _, group = data_source.get_samples(2)
        done.append([_answered(sample) for sample in group])
    data_source.add_samples([])
    return _types().TrainOutput(samples=done, metrics={"drawn": 2 * len(done)})


def invented(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Return samples with other prompts than those that were drawn."""
    groups = legacy(args, rollout_id, data_source, evaluation)
    for sample in groups[0]:
        sample.prompt = f"more than {sample.prompt}"
    return groups


def resuming(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Put back what is begun in the first rollout, and put back nothing in the next."""
    if rollout_id == 0:
        return generate_rollout(args, rollout_id, data_source, evaluation)
    return legacy(args, rollout_id, data_source, evaluation)


def failing(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    data_source.get_samples(1)
    raise ConnectionError("no engine")


class Refactored:
    """A rollout function as a class, as miles has them too."""


def in_a_thread(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """Draw in a thread, as a function does that runs its own event loop."""
    found: list[Any] = []
    work = threading.Thread(
        target=lambda: found.append(legacy(args, rollout_id, data_source, evaluation))
    )
    work.start()
    work.join()
    return found[0]


def plain(value: Any) -> Any:
    """Return samples and outputs as values that can be compared."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, Enum):
        return str(value)
    if hasattr(value, "__dataclass_fields__"):
        return {"class": type(value).__qualname__, **plain(vars(value))}
    return value
