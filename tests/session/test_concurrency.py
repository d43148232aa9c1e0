"""Threads and tasks share a session."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import rollout_cassettes as rc


async def test_hundreds_of_tasks_in_flight_get_their_own_recordings(engine, path):
    adapter = rc.adapters.function(f"{engine.__name__}:agenerate", step_of=lambda *_, **__: 1)
    delays = [random.Random(number).random() / 50 for number in range(200)]

    async def run():
        return await asyncio.gather(
            *(engine.agenerate([f"{n}"], delay=delay) for n, delay in enumerate(delays))
        )

    with rc.record(path=path, adapters=adapter):
        live = await run()
    engine.calls.clear()
    with rc.replay(path=path, adapters=adapter, on_unplayed="error") as session:
        assert await run() == live
    assert engine.calls == []
    assert session.played == [1]


def test_threads_get_the_recordings_of_their_requests(engine, path, generate):
    prompts = [[f"{number}"] for number in range(60)]

    def run(order):
        barrier = threading.Barrier(6)

        def work(each):
            barrier.wait(300)
            return [(prompt[0], engine.generate(prompt, 1)) for prompt in each]

        with ThreadPoolExecutor(6) as pool:
            parts = [order[start::6] for start in range(6)]
            return dict(pair for pairs in pool.map(work, parts) for pair in pairs)

    with rc.record(path=path, adapters=generate) as session:
        live = run(prompts)
    assert len(session.summary().faults) == 0
    engine.calls.clear()
    with rc.replay(path=path, adapters=generate, on_unplayed="error"):
        assert run(prompts[::-1]) == live
    assert engine.calls == []


def test_the_summary_may_be_asked_for_while_threads_record(engine, path, generate):
    with rc.record(path=path, adapters=generate) as session, ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(engine.generate, ["a"], step) for step in range(1, 30)]
        while not all(future.done() for future in futures):
            assert set(session.recorded) <= set(range(1, 30))
            time.sleep(0.001)
    assert session.recorded == list(range(1, 30))
