"""The policy in this process, called as verl calls its FSDP worker group."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path

import torch
import transfer_queue as tq
from tensordict import TensorDict
from transformers import AutoModelForCausalLM

from tests.verl.actor_batch import ActorBatch, read_rows

CLIP_RATIO = 0.2


class LocalActor:
    """A real model and a real AdamW behind the methods of verl's `ActorRolloutRefWorker`.

    Args:
        config: verl's whole configuration.
    """

    world_size = 1
    workers = ()

    def __init__(self, config):
        actor = config.actor_rollout_ref.actor
        self._dispatch_info = {"actor": [0]}
        self.batches = []
        self.model = AutoModelForCausalLM.from_pretrained(
            config.actor_rollout_ref.model.path, dtype=torch.float32
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=actor.optim.lr)
        self._set_aside = {}

    @property
    def parameters(self):
        """A copy of every parameter by name."""
        return {name: value.detach().clone() for name, value in self.model.named_parameters()}

    @property
    def optimizer_state(self):
        """A copy of AdamW's state by parameter index: step and both moments."""
        return copy.deepcopy(self.optimizer.state_dict()["state"])

    def digest(self):
        """Hash all parameters, bit by bit."""
        digest = hashlib.sha256()
        for name, value in sorted(self.parameters.items()):
            digest.update(name.encode())
            digest.update(value.numpy().tobytes())
        return digest.hexdigest()

    def compute_log_prob(self, batch):
        """Put `log_probs` and `entropy` of every token beside the rows, as verl's worker does."""
        rows = read_rows(batch, "input_ids")["input_ids"]
        with torch.no_grad():
            scored = [self._score(ids) for ids in rows]
        log_probs, entropy = zip(*scored, strict=True)
        fields = {"log_probs": _jagged(log_probs), "entropy": _jagged(entropy)}
        return tq.kv_batch_put(
            keys=batch.keys,
            partition_id=batch.partition_id,
            fields=TensorDict(fields, batch_size=[len(rows)]),
        )

    def update_actor(self, batch):
        """Take one clipped policy-gradient step per mini-batch; remember the batch."""
        fields = read_rows(batch)
        self.batches.append(ActorBatch.of(batch))
        size = batch.extra_info["mini_batch_size"]
        metrics = {"pg_loss": [], "grad_norm": [], "mfu": [0.0], "lr": [self._learning_rate]}
        for start in range(0, len(batch.keys), size):
            rows = slice(start, start + size)
            loss, norm = self._step({name: column[rows] for name, column in fields.items()})
            metrics["pg_loss"].append(loss)
            metrics["grad_norm"].append(norm)
        return {"metrics": metrics}

    def save_checkpoint(self, local_path, *args, **kwargs):
        """Write the model and the optimizer."""
        Path(local_path).mkdir(parents=True, exist_ok=True)
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, Path(local_path) / "actor.pt")

    def load_checkpoint(self, local_path, **kwargs):
        """Read the model and the optimizer."""
        state = torch.load(Path(local_path) / "actor.pt")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def save_model_to_cpu(self, name):
        """Set the weights aside (verl's separate-async trainer)."""
        self._set_aside[name] = self.parameters

    def restore_model_from_cpu(self, name):
        """Take weights that were set aside."""
        self.model.load_state_dict(self._set_aside[name])

    def clear_cpu_model(self, name):
        """Forget weights that were set aside."""
        del self._set_aside[name]

    @property
    def _learning_rate(self):
        return self.optimizer.param_groups[0]["lr"]

    def _score(self, ids):
        """Give each position's log-probability of the next token, and the entropy there."""
        log_probs = torch.log_softmax(self.model(ids[None]).logits[0], dim=-1)
        following = torch.roll(ids, -1)[:, None]
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        return log_probs.gather(-1, following)[:, 0], entropy

    def _step(self, fields):
        names = ("input_ids", "old_log_probs", "advantages", "response_mask")
        tokens = sum(int(mask.sum()) for mask in fields["response_mask"])
        rows = zip(*(fields[name] for name in names), strict=True)
        loss = sum(self._loss(*row) for row in rows) / tokens
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
        self.optimizer.step()
        return loss.item(), norm.item()

    def _loss(self, ids, old_log_probs, advantages, mask):
        # The log-probability of a response token stands one position before it.
        log_probs = self._score(ids)[0][-len(mask) - 1 : -1]
        ratio = (log_probs - old_log_probs).exp()
        clipped = ratio.clamp(1 - CLIP_RATIO, 1 + CLIP_RATIO)
        return -(torch.minimum(advantages * ratio, advantages * clipped) * mask).sum()


def _jagged(rows):
    return torch.nested.as_nested_tensor(list(rows), layout=torch.jagged)
