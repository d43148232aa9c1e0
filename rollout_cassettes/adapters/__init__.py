"""Adapters: one file for each framework."""

from rollout_cassettes.adapters.adapter import Adapter, Exchange, Place
from rollout_cassettes.adapters.function import function
from rollout_cassettes.adapters.registry import register, registered
from rollout_cassettes.adapters.verl_v1 import VerlV1
from rollout_cassettes.patching import Call, EntryPoint, Half

register(VerlV1())

__all__ = [
    "Adapter",
    "Call",
    "EntryPoint",
    "Exchange",
    "Half",
    "Place",
    "VerlV1",
    "function",
    "register",
    "registered",
]
