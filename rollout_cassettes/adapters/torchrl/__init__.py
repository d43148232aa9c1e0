"""torchrl: its collectors for language models."""

from rollout_cassettes.adapters.torchrl.collector import TorchrlCollector

__all__ = ["TorchrlCollector"]
