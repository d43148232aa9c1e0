"""Adapters: one file for each framework."""

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.excerpt import Excerpt, Group, Skeletons
from rollout_cassettes.adapters.function import function
from rollout_cassettes.adapters.openrlhf import OpenRLHF
from rollout_cassettes.adapters.registry import named, register, registered
from rollout_cassettes.adapters.skyrl import SkyRL
from rollout_cassettes.adapters.slime import Slime
from rollout_cassettes.adapters.torchrl import TorchrlCollector
from rollout_cassettes.adapters.trl import TrlTrainer
from rollout_cassettes.adapters.verl import VerlFullyAsync, VerlV0, VerlV1
from rollout_cassettes.patching import Call, EntryPoint, Role

for _adapter in (
    VerlV1(),
    VerlV0(),
    VerlFullyAsync(),
    TrlTrainer(),
    TrlTrainer(scope="scored"),
    TorchrlCollector(),
    SkyRL(),
    OpenRLHF(),
    Slime(),
):
    register(_adapter)

__all__ = [
    "Adapter",
    "Call",
    "EntryPoint",
    "Excerpt",
    "Exchange",
    "Group",
    "OpenRLHF",
    "Place",
    "Role",
    "Skeletons",
    "SkyRL",
    "Slime",
    "TorchrlCollector",
    "TrlTrainer",
    "VerlFullyAsync",
    "VerlV0",
    "VerlV1",
    "function",
    "named",
    "register",
    "registered",
]
