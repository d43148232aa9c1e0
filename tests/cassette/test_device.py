"""The device that a user asks for."""

from __future__ import annotations

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.cassette.device import device_named
from tests.cassette.recording import record

MISSING = f"cuda:{torch.cuda.device_count()}"


@pytest.mark.parametrize("device", [MISSING, "mps:99"])
def test_a_device_that_this_machine_lacks_is_refused(tmp_path, device):
    """When it is asked for: what is recorded is not damaged for it."""
    record(tmp_path / "c", torch.ones(3))
    for ask in (rc.replay, lambda device: rc.open_cassette(tmp_path / "c", device=device)):
        with pytest.raises(ValueError, match=f"{device}.* is not on this machine"):
            ask(device=device)


def test_a_device_that_torch_does_not_know_is_refused():
    with pytest.raises(ValueError, match="one that torch knows"):
        device_named("cdua")


def test_a_device_is_given_as_torch_takes_it():
    assert device_named("cpu") == torch.device("cpu")
    assert device_named(torch.device("meta")).type == "meta"
    assert device_named(None) is None
