"""verl: its V1 trainer, its V0 trainers, and its fully asynchronous training."""

from rollout_cassettes.adapters.verl.fully_async import VerlFullyAsync
from rollout_cassettes.adapters.verl.v0 import VerlV0
from rollout_cassettes.adapters.verl.v1 import VerlV1

__all__ = ["VerlFullyAsync", "VerlV0", "VerlV1"]
