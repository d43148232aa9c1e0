"""TransferQueue in one process: its controller and its storage run as threads."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib import resources
from unittest import mock

import torch
import transfer_queue
from omegaconf import OmegaConf
from transfer_queue import client, interface
from transfer_queue.client import TransferQueueClient
from transfer_queue.controller import TransferQueueController
from transfer_queue.sampler import SequentialSampler
from transfer_queue.storage import simple_storage
from transfer_queue.storage.simple_storage import SimpleStorageUnit
from transfer_queue.utils import common

from tests.verl.undecorated import undecorated


class LocalQueue:
    """A whole TransferQueue 0.1.11 without a Ray actor.

    The classes that Ray would run as actors serve ZeroMQ sockets from threads of their own, and
    do so just as well in this process. `tq.kv_*` reaches them while the queue is `installed`.
    """

    def __init__(self):
        defaults = OmegaConf.load(resources.files("transfer_queue") / "config.yaml")
        config = OmegaConf.to_container(defaults.backend.SimpleStorage)
        self._controller = undecorated(TransferQueueController)(sampler=SequentialSampler)
        self._storage = undecorated(SimpleStorageUnit)(config=config)
        config["zmq_info"] = {"storage": self._storage.get_zmq_server_info()}
        self._client = TransferQueueClient("local", self._controller.get_zmq_server_info())
        self._client.initialize_storage_manager("SimpleStorage", config)

    def __repr__(self):
        return f"<LocalQueue holding {sum(map(len, self.keys().values()))} keys>"

    @contextmanager
    def installed(self):
        """Let the `tq.kv_*` functions of this process reach this queue; leave it empty."""
        with (
            mock.patch.object(interface, "_TQ_CLIENT", self._client),
            mock.patch.object(
                interface, "_TQ_CONTROLLER", self._controller
            ),  # checkpoints want one
            # `AgentLoopWorkerTQ` looks for a controller by `init`, which would start a cluster.
            mock.patch.object(transfer_queue, "init", lambda conf=None: conf),
            _one_torch_thread(),
        ):
            try:
                yield self
            finally:
                self.clear()

    def keys(self):
        """List the keys of every partition that holds any."""
        partitions = self._client.kv_list() or {}
        return {name: sorted(tags) for name, tags in partitions.items() if tags}

    def clear(self):
        """Remove every key, and what is known of each partition's fields."""
        for partition, keys in self.keys().items():
            transfer_queue.kv_clear(keys=keys, partition_id=partition)
        # The client's `clear_partition` does nothing for a partition without rows.
        for partition in self._controller.list_partitions():
            self._controller.clear_partition(partition)

    def close(self):
        """Stop the client and the storage; the controller's daemon threads have no way to stop."""
        self._client.close()
        self._storage.shutdown()


@contextmanager
def _one_torch_thread():
    """Keep torch on one thread.

    TransferQueue 0.1.11 changes the process's thread count around each of its operations, here
    also from the storage's threads, in the middle of the trainer's arithmetic.
    """
    before = torch.get_num_threads()
    constants = [
        (client, "TQ_NUM_THREADS"),
        (simple_storage, "TQ_NUM_THREADS"),
        (common, "DEFAULT_TORCH_NUM_THREADS"),
    ]
    with ExitStack() as stack:
        for module, name in constants:
            stack.enter_context(mock.patch.object(module, name, 1))
        torch.set_num_threads(1)
        stack.callback(torch.set_num_threads, before)
        yield
