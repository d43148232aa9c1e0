"""Functions that several adapters intercept, and calls that an adapter refuses."""

from __future__ import annotations

import importlib

import pytest

import rollout_cassettes as rc
from rollout_cassettes import patching
from rollout_cassettes.adapters import Adapter, EntryPoint, Place, Role

QUEUE = """
    def generate(prompts):
        return [f"{prompt}!" for prompt in prompts]

    def collect():
        return ["collected"]

    def start(elsewhere=False):
        return "started"
"""


class Kind(Adapter):
    """Takes the calls whose first prompt is of its kind."""

    step_kind = "call"

    def __init__(self, module, name, role, others=()):
        self.name = name
        self.entry_points = (
            EntryPoint(name, module, "generate", role=role),
            EntryPoint(name, module, "start", role=Role.START),
            *others,
        )

    def place(self, call):
        own = call.point.role is Role.SAMPLE or call.args[0][0] == self.name
        return Place(1) if own else None

    def request(self, call):
        return list(call.args[0])

    def withhold(self, call, recorded, submitted):
        return "withheld"

    def capture(self, call, result, submitted):
        return result

    def restore(self, call, recorded, submitted, shift):
        return recorded.response

    def start(self, call):
        if call.arguments.get("elsewhere"):
            raise rc.CassetteError(f"{self.name} can't start elsewhere.")
        return ()


@pytest.fixture
def queue(write_module):
    return importlib.import_module(write_module(QUEUE))


@pytest.fixture
def adapters(queue):
    """One takes `generate` for a whole call, the other for a submit."""
    name = queue.__name__
    sample = EntryPoint("second", name, "collect", role=Role.SAMPLE)
    return [
        Kind(name, "first", Role.WHOLE),
        Kind(name, "second", Role.SUBMIT, [sample]),
    ]


def test_each_takes_the_calls_that_are_its_own(queue, adapters, path):
    """They tell by the call; one that is nobody's passes."""

    def run():
        return [queue.generate(["first"]), queue.generate(["second"]), queue.collect()]

    with rc.record(path=path, adapters=adapters):
        live = run()
        assert queue.generate(["third"]) == ["third!"]
    recorded = [each.manifest.adapter for each in rc.open_cassette(path).interactions()]
    assert sorted(recorded) == ["first", "second"]
    with rc.replay(path=path, adapters=adapters, on_unplayed="error"):
        again = run()
    assert live == [["first!"], ["second!"], ["collected"]]
    assert again == [["first!"], "withheld", ["collected"]]


def test_the_function_is_wrapped_once_and_put_back(queue, adapters, path):
    original = queue.generate
    with rc.record(path=path, adapters=adapters):
        assert queue.generate.__wrapped__ is original
    assert queue.generate is original


def test_a_guarded_call_is_refused(queue, adapters, path):
    """Whatever the session, and before it is made; other calls of it pass."""
    with rc.record(path=path, adapters=adapters):
        assert queue.start() == "started"
        with pytest.raises(rc.CassetteError, match="first can't start elsewhere"):
            queue.start(elsewhere=True)
        queue.generate(["first"])
    with (
        rc.replay(path=path, adapters=adapters[0]),
        pytest.raises(rc.CassetteError, match="first can't start elsewhere"),
    ):
        queue.start(elsewhere=True)
    assert queue.start(elsewhere=True) == "started"


class Onlooker:
    """A handler that is no session, such as verl's plugin, and lets all calls pass."""

    def handle(self, call):
        return (yield False)

    def pass_over(self, call):
        pass


def test_a_start_is_one_to_the_session_whatever_it_is_to_others(queue, adapters, path):
    """Who wrapped the function first has a say in nothing: the guard guards, and calls go on."""
    onlooker, point = Onlooker(), EntryPoint("onlooker", queue.__name__, "start")
    patching.activate(onlooker, [point])
    try:
        with rc.record(path=path, adapters=adapters) as session:
            assert queue.start() == "started"
            queue.generate(["first"])
            with pytest.raises(rc.CassetteError, match="first can't start elsewhere"):
                queue.start(elsewhere=True)
    finally:
        patching.deactivate(onlooker, [point])
    assert session.recorded == [1]


def test_a_guard_that_is_not_there_guards_nothing(queue, adapters, path):
    """Another version of a framework may lack what can't go together with a session."""
    del queue.start
    with rc.record(path=path, adapters=adapters) as session:
        queue.generate(["first"])
    assert session.recorded == [1]


def test_two_adapters_may_not_take_a_function_for_the_same(queue, adapters, path):
    twin = Kind(queue.__name__, "twin", Role.WHOLE)
    with pytest.raises(ValueError, match="its own entry point"):
        rc.record(path=path, adapters=[adapters[0], twin])
