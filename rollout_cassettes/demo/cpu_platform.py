"""A CPU as one of verl's platforms; importing this module registers it.

verl imports it in every process, since `VERL_USE_EXTERNAL_MODULES` names it (see `environment`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import verl.utils.distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry, set_platform

__all__ = ["CpuPlatform"]


def _do_nothing(*_: Any, **__: Any) -> None:
    """Stand in for what only an accelerator has to do."""


def _no_bytes(*_: Any, **__: Any) -> int:
    """Report no memory in use."""
    return 0


class _CpuDevice(ModuleType):
    """`torch.cpu`, with what verl calls of `torch.cuda` besides."""

    memory_allocated = memory_reserved = staticmethod(_no_bytes)
    max_memory_allocated = max_memory_reserved = staticmethod(_no_bytes)
    empty_cache = ipc_collect = reset_peak_memory_stats = staticmethod(_do_nothing)
    set_device = synchronize = staticmethod(_do_nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    @staticmethod
    def is_available() -> bool:
        """Deny an accelerator, so that verl's memory reports keep quiet."""
        return False

    @staticmethod
    def mem_get_info(*_: Any) -> tuple[int, int]:
        """Report free and total memory of the accelerator that isn't there."""
        return 0, 0

    @staticmethod
    def get_device_name(*_: Any) -> str:
        """Name the device."""
        return "CPU"

    @staticmethod
    def get_rng_state(*_: Any) -> torch.Tensor:
        """Give the state of the only generator there is."""
        return torch.get_rng_state()

    @staticmethod
    def set_rng_state(state: torch.Tensor, *_: Any) -> None:
        """Set the state of the only generator there is."""
        torch.set_rng_state(state)


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):  # type: ignore[misc] # verl is untyped
    """verl 0.9.1's view of a machine without an accelerator."""

    device_name = vendor_name = "cpu"
    device_module = _CpuDevice("torch_cpu_as_accelerator")

    def is_available(self) -> bool:
        """Say that this platform can be used."""
        return True

    def current_device(self) -> Any:
        """Give what verl hands to `tensor.to`; an index would mean an accelerator."""
        return torch.device("cpu")

    def device_count(self) -> int:
        """Count the devices of this process."""
        return 1

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one device."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: a CPU is never behind."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: the settings are those of a CUDA allocator."""

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def get_device_capability(self, *_: int) -> tuple[int | None, int | None]:
        """Report no compute capability."""
        return None, None

    def communication_backend_name(self) -> str:
        """Name torch's backend for collectives."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """Name the variable that would hide devices."""
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, *_: str) -> Iterator[None]:
        """Mark no range: there is no profiler."""
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no profiler."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no profiler."""

    def ray_resource_name(self) -> str:
        """Name the resource that verl's pools count; Ray is started with one that is made up."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """List what keeps Ray from hiding devices: nothing."""
        return []

    def is_ipc_supported(self) -> bool:
        """Deny sharing tensors between processes."""
        return False

    def cudart(self) -> Any:
        """Give no CUDA runtime."""
        return None


set_platform(CpuPlatform())

# verl 0.9.1 asks for a backend per device, "cpu:gloo,cpu:gloo" here; torch refuses the doublet.
verl.utils.distributed.initialize_global_process_group_ray = functools.partial(
    verl.utils.distributed.initialize_global_process_group_ray, backend="cpu:gloo"
)
