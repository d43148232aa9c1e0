"""Adapters: one file for each framework."""

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.function import function
from rollout_cassettes.adapters.registry import register, registered
from rollout_cassettes.adapters.torchrl import TorchrlCollector
from rollout_cassettes.adapters.trl import TrlTrainer
from rollout_cassettes.adapters.verl import VerlFullyAsync, VerlV0, VerlV1
from rollout_cassettes.patching import Call, EntryPoint, Role

for _adapter in (VerlV1(), VerlV0(), VerlFullyAsync(), TrlTrainer(), TorchrlCollector()):
    register(_adapter)

__all__ = [
    "Adapter",
    "Call",
    "EntryPoint",
    "Exchange",
    "Place",
    "Role",
    "TorchrlCollector",
    "TrlTrainer",
    "VerlFullyAsync",
    "VerlV0",
    "VerlV1",
    "function",
    "register",
    "registered",
]
