"""A rollout engine for verl that samples from a tiny model on a CPU; importing registers it.

verl imports this module in every process, since `VERL_USE_EXTERNAL_MODULES` names it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
import torch
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

__all__ = ["ENGINE", "EngineReport", "RequestFailedError", "SamplingEngine", "start_server"]

#: The engine's name in verl's registries.
ENGINE = "hf_cpu"

CONCURRENT_REQUESTS = 64


class RequestFailedError(RuntimeError):
    """A request that the engine was asked to fail."""


@dataclass(frozen=True)
class EngineReport:
    """What an engine has done so far.

    Attributes:
        training: How many requests came from training.
        validation: How many requests came from validation.
        digests: The SHA-256 over all parameters, by weight version (the trainer's step).
    """

    training: int = 0
    validation: int = 0
    digests: dict[int, str] = field(default_factory=dict)


class SamplingEngine:
    """Token-in, token-out generation with the calls of verl's vLLM and SGLang servers.

    A reply follows from the weights, the prompt, and how often these weights were asked it
    before. So it doesn't depend on the order in which prompts arrive.

    Args:
        model_path: The directory of the model to start from.
        response_length: The most tokens of a reply.
        seed: What else replies follow from.
    """

    def __init__(self, model_path: str, response_length: int, seed: int) -> None:
        # Deferred: only the engine's own process needs transformers.
        from transformers import AutoModelForCausalLM  # noqa: PLC0415

        torch.set_num_threads(1)
        self._model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32).eval()
        self._response_length = response_length
        self._seed = seed
        self._version = 0
        self._asked: Counter[tuple[Any, ...]] = Counter()
        self._failing: frozenset[int] = frozenset()
        self._training = 0
        self._validation = 0
        self._digests: dict[int, str] = {}

    async def generate(
        self,
        request_id: str,  # noqa: ARG002 - verl's servers are called so
        prompt_ids: list[int],
        sampling_params: Mapping[str, Any],
        **_: Any,
    ) -> TokenOutput:
        """Sample a reply, giving way to other requests after each token."""
        temperature = sampling_params.get("temperature", 1.0)
        self._count(greedy=temperature == 0)
        generator = self._generator((self._version, tuple(prompt_ids), temperature))
        reply = _Reply(temperature, generator)
        limit = sampling_params.get("max_tokens") or self._response_length
        inputs = torch.tensor([prompt_ids])
        while len(reply.token_ids) < limit and not self._ended(reply):
            inputs = reply.extend(self._model, inputs)
            await asyncio.sleep(0)
        return TokenOutput(
            token_ids=reply.token_ids,
            log_probs=reply.log_probs if sampling_params.get("logprobs") else None,
            stop_reason="completed" if self._ended(reply) else "length",
            extra_fields={"global_steps": self._version},
        )

    async def update_weights(
        self, weights: Mapping[str, torch.Tensor], global_steps: int | None
    ) -> None:
        """Take the trainer's weights, and remember their digest under the trainer's step."""
        self._model.load_state_dict(weights, strict=True)
        self._version = global_steps or 0
        self._digests[self._version] = _digest(self._model.state_dict())

    async def fail_requests(self, ordinals: Collection[int]) -> None:
        """Fail these training requests, counted from 1 in the order of arrival."""
        self._failing = frozenset(ordinals)

    async def report(self) -> EngineReport:
        """Tell what was done since the start or the last reset."""
        return EngineReport(self._training, self._validation, dict(self._digests))

    async def reset(self) -> None:
        """Forget all requests and digests; the weights stay."""
        self._training = self._validation = 0
        self._asked.clear()
        self._digests.clear()
        self._failing = frozenset()

    async def _nothing(self, *_: Any, **__: Any) -> None:
        """Do nothing: no memory to free, no cache, no profiler."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = _nothing
    start_profile = stop_profile = abort_all_requests = resume_generation = _nothing

    def _count(self, *, greedy: bool) -> None:
        """Tell validation from training by its sampling: the demo validates greedily."""
        if greedy:
            self._validation += 1
            return
        self._training += 1
        if self._training in self._failing:
            raise RequestFailedError(f"training request {self._training} was asked to fail")

    def _generator(self, question: tuple[Any, ...]) -> torch.Generator:
        turn = self._asked[question]
        self._asked[question] += 1
        seed = hashlib.sha256(repr((self._seed, question, turn)).encode()).digest()[:7]
        return torch.Generator().manual_seed(int.from_bytes(seed, "big"))

    def _ended(self, reply: _Reply) -> bool:
        return reply.token_ids[-1:] == [self._model.config.eos_token_id]


class _Reply:
    """A reply in the making.

    Args:
        temperature: Of the sampling; 0 takes the likeliest token.
        generator: Draws the tokens.
    """

    def __init__(self, temperature: float, generator: torch.Generator) -> None:
        self.token_ids: list[int] = []
        self.log_probs: list[float] = []
        self._temperature = temperature
        self._generator = generator
        self._cache: Any = None

    @torch.no_grad()
    def extend(self, model: Any, inputs: torch.Tensor) -> torch.Tensor:
        """Sample the next token after what is cached and `inputs`; give it as the next input."""
        output = model(input_ids=inputs, past_key_values=self._cache, use_cache=True)
        self._cache = output.past_key_values
        logits = output.logits[0, -1] / (self._temperature or 1.0)
        log_probs = torch.log_softmax(logits, dim=-1)
        token = self._draw(log_probs)
        self.token_ids.append(token)
        self.log_probs.append(float(log_probs[token]))
        return torch.tensor([[token]])

    def _draw(self, log_probs: torch.Tensor) -> int:
        if self._temperature == 0:
            return int(log_probs.argmax())
        return int(torch.multinomial(log_probs.exp(), 1, generator=self._generator))


def _digest(parameters: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(parameters.items()):
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def start_server(rollout: Any, model: Any, replica_rank: int = 0) -> Any:
    """Start the engine as a Ray actor, unless it is there already; don't wait for it.

    Args:
        rollout: verl's rollout configuration.
        model: verl's model configuration.
        replica_rank: Which of the replicas it serves.

    Returns:
        The actor's handle.
    """
    options = {
        "name": _actor_name(replica_rank),
        "get_if_exists": True,
        "num_cpus": 0,
        "max_concurrency": CONCURRENT_REQUESTS,
    }
    actor = ray.remote(SamplingEngine).options(**options)
    return actor.remote(model.path, rollout.response_length, rollout.seed)


def _actor_name(replica_rank: int) -> str:
    return f"{ENGINE}_server_{replica_rank}"


class SamplingReplica(RolloutReplica):  # type: ignore[misc] # verl is untyped
    """Starts the engine where vLLM's replica would start its servers."""

    async def launch_servers(self) -> None:
        """Start the one server of this replica, and wait until it answers."""
        server = start_server(self.config, self.model_config, self.replica_rank)
        await server.report.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = _actor_name(self.replica_rank)


class WeightSender(BaseRollout):  # type: ignore[misc] # verl is untyped
    """The trainer's side of the engine: lives in the FSDP worker and sends weights over."""

    def __init__(
        self,
        config: Any,
        model_config: Any,
        device_mesh: Any,
        replica_rank: int | None = None,
        **_: Any,
    ) -> None:
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = (
            int(os.environ.get("RANK", "0")) if replica_rank is None else replica_rank
        )
        self.is_leader_rank = True

    async def resume(self, tags: list[str]) -> None:
        """Do nothing: the engine never gave up its memory."""

    async def release(self) -> None:
        """Do nothing: the engine keeps its memory."""

    async def update_weights(
        self, weights: Any, wire_format: str = "named_tensors", **kwargs: Any
    ) -> None:
        """Send all parameters to the engine."""
        if wire_format != "named_tensors":
            raise NotImplementedError(f"{ENGINE} takes named tensors, not {wire_format}")
        state = {
            name: value.detach().clone() async for name, value in ensure_async_iterator(weights)
        }
        server = ray.get_actor(_actor_name(self.replica_rank))
        await server.update_weights.remote(state, kwargs.get("global_steps"))


RolloutReplicaRegistry.register(ENGINE, lambda: SamplingReplica)
_ROLLOUT_REGISTRY[ENGINE, "async"] = f"{WeightSender.__module__}.{WeightSender.__qualname__}"
