"""TRL: its GRPO and RLOO trainers."""

from rollout_cassettes.adapters.trl.trainer import TrlTrainer

__all__ = ["TrlTrainer"]
