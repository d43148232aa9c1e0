"""An event loop in a thread: where a Ray actor's coroutines would run."""

from __future__ import annotations

import asyncio
import threading


class EventLoopThread:
    """Runs coroutines in the background and waits for those that are asked for."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine):
        """Give the result of a coroutine that runs in the thread."""
        return self.start(coroutine).result()

    def start(self, coroutine):
        """Start a coroutine in the thread, and give a future of its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def make(self, factory, *args):
        """Call a factory in the thread, for objects that look for a running loop."""

        async def call():
            return factory(*args)

        return self.run(call())


class LocalHandle:
    """Stands in for a Ray actor handle: `handle.method.remote(...)` is a plain call.

    Args:
        target: The object whose methods are called.
    """

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        return _RemoteMethod(getattr(self._target, name))


class _RemoteMethod:
    def __init__(self, method):
        self.remote = method


class ThreadHandle:
    """Stands in for a Ray actor handle: methods run in an event loop thread of their own.

    Args:
        loop: The thread.
        target: The object whose methods are called.
    """

    def __init__(self, loop, target):
        self._loop = loop
        self._target = target

    def __getattr__(self, name):
        method = getattr(self._target, name)
        return _RemoteMethod(lambda *args, **kwargs: Reference(self._loop, method(*args, **kwargs)))


class Reference:
    """Stands in for a Ray object reference: it can be awaited, and gives a future.

    Args:
        loop: The thread that the coroutine runs in.
        coroutine: What it refers to the result of.
    """

    def __init__(self, loop, coroutine):
        self._future = loop.start(coroutine)

    def __await__(self):
        return asyncio.wrap_future(self._future).__await__()

    def future(self):
        """Give a future of `concurrent.futures`."""
        return self._future
