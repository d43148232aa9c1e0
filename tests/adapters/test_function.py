"""The adapter for any function: what it intercepts, and what it asks the user's callables."""

from __future__ import annotations

import asyncio
import functools
import importlib

import pytest

import rollout_cassettes as rc


def record_and_replay(path, adapters, run):
    """Return what `run()` gives live and replayed, and the session that replayed it."""
    with rc.record(path=path, adapters=adapters):
        live = run()
    with rc.replay(path=path, adapters=adapters) as session:
        return live, run(), session


@pytest.mark.parametrize(
    ("qualname", "call"),
    [
        ("generate", lambda engine: engine.generate(["a"])),
        ("agenerate", lambda engine: asyncio.run(engine.agenerate(["a"]))),
        ("Engine.generate", lambda engine: engine.Engine().generate(["a"])),
        ("Engine.agenerate", lambda engine: asyncio.run(engine.Engine().agenerate(["a"]))),
        ("Engine.static", lambda engine: engine.Engine.static(["a"])),
        ("Engine.of_class", lambda engine: engine.FastEngine.of_class(["a"])),
        ("FastEngine.generate", lambda engine: engine.FastEngine().generate(["a"])),
    ],
)
def test_every_kind_of_function_is_replayed_without_being_called(engine, path, qualname, call):
    adapter = rc.adapters.function(f"{engine.__name__}:{qualname}")
    live, replayed, session = record_and_replay(path, adapter, lambda: call(engine))
    assert replayed == live
    assert session.played == [1]
    assert len(engine.calls) == 1


def test_the_manifest_names_the_adapter_and_what_its_steps_count(engine, path, counted, generate):
    with rc.record(path=path, adapters=counted):
        engine.generate(["a"])
    manifest = rc.open_cassette(path)[1].manifest
    assert manifest.adapter == manifest.entry_point == f"{engine.__name__}:generate"
    assert manifest.step_kind == "call"
    assert generate.step_kind == "step"


# ---- what the callables get


def step_taken(engine, path, step_of, *args, target="generate", **kwargs):
    adapter = rc.adapters.function(f"{engine.__name__}:{target}", step_of=step_of)
    owner = engine.Engine() if "." in target else engine
    with rc.record(path=path, adapters=adapter, on_unstorable="error") as session:
        getattr(owner, target.rpartition(".")[2])(*args, **kwargs)
    return session.recorded


def test_callables_get_the_arguments_as_the_caller_gave_them(engine, path):
    def step_of(*args, **kwargs):
        assert args == (["a"],)
        return kwargs["step"]

    assert step_taken(engine, path, step_of, ["a"], step=7) == [7]


def test_callables_get_self(engine, path):
    def step_of(self, prompts, step):
        assert type(self) is engine.Engine
        return step

    assert step_taken(engine, path, step_of, ["a"], 7, target="Engine.generate") == [7]


def test_defaults_are_filled_in_for_callables_that_need_them(engine, path):
    assert step_taken(engine, path, lambda prompts, step: 7 if step is None else 8, ["a"]) == [7]


def test_callables_may_be_partial_functions_and_builtins(engine, path):
    step_of = functools.partial(lambda step, prompts: step, 7)
    assert step_taken(engine, path, step_of, prompts=["a"]) == [7]
    assert step_taken(engine, path / "builtin", max, [3, 8]) == [8]


def test_a_callable_that_fits_no_call_is_named_with_both_signatures(engine, path):
    with pytest.raises(rc.CassetteError) as caught:
        step_taken(engine, path, lambda prompts: 1, ["a"], 7)
    assert "step_of= of the adapter" in str(caught.value)
    assert "takes (prompts)" in str(caught.value)
    assert "with (prompts, step=None)" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [(True, "True"), (2.0, "2.0"), ("2", "'2'"), (-1, "-1")],
)
def test_a_step_that_is_none_is_refused(engine, path, step, complaint):
    with pytest.raises(rc.CassetteError, match=f"whole number, 0 or more; got {complaint}"):
        step_taken(engine, path, lambda prompts: step, ["a"])


def test_steps_may_be_numpy_or_torch_numbers(engine, path):
    import numpy as np
    import torch

    assert step_taken(engine, path / "numpy", lambda prompts: np.int64(3), ["a"]) == [3]
    assert step_taken(engine, path / "torch", lambda prompts: torch.tensor(4), ["a"]) == [4]


@pytest.mark.parametrize("phase", ["Train", "", "a b", "rank1", 3, None])
def test_a_phase_that_is_no_lower_case_word_is_refused(engine, path, phase):
    adapter = rc.adapters.function(f"{engine.__name__}:generate", phase_of=lambda prompts: phase)
    with (
        pytest.raises(rc.CassetteError, match="phase is a lower-case word"),
        rc.record(path=path, adapters=adapter, on_unstorable="error"),
    ):
        engine.generate(["a"])


def test_phases_are_filed_and_counted_apart(engine, path):
    adapter = rc.adapters.function(
        f"{engine.__name__}:generate", phase_of=lambda prompts: "val" if "v" in prompts else "train"
    )

    def run():
        return [engine.generate(prompts) for prompts in (["a"], ["v"], ["b"], ["v", "w"])]

    live, replayed, session = record_and_replay(path, adapter, run)
    assert replayed == live
    assert session.played == [1, 2]
    assert [str(key) for key in rc.open_cassette(path).keys] == [
        "step 1",
        "step 1 (val)",
        "step 2",
        "step 2 (val)",
    ]


# ---- the request


def mismatch_of(engine, path, recorded, live, request_of=lambda prompts, step=None: prompts):
    adapter = rc.adapters.function(f"{engine.__name__}:generate", request_of=request_of)
    with rc.record(path=path, adapters=adapter):
        engine.generate(recorded)
    with pytest.raises(rc.RequestMismatchError) as caught, rc.replay(path=path, adapters=adapter):
        engine.generate(live)
    return caught.value


def test_a_changed_prompt_is_named_by_row_field_and_values(engine, path):
    error = mismatch_of(engine, path, ["a", "b"], ["a", "c"])
    assert (error.row, error.field, error.recorded, error.live) == (1, "request", "b", "c")
    assert (error.path, error.step, error.phase) == (path, 1, "train")
    assert "row 1, field 'request' was 'b', and is now 'c'" in str(error)


def test_rows_of_dicts_are_compared_field_by_field(engine, path):
    recorded = [{"prompt": "a", "seed": 1}]
    error = mismatch_of(engine, path, recorded, [{"prompt": "a", "seed": 2}])
    assert (error.row, error.field, error.recorded, error.live) == (0, "seed", 1, 2)


def test_what_is_no_list_is_one_row(engine, path):
    request_of = lambda prompts, step=None: tuple(prompts)  # noqa: E731
    error = mismatch_of(engine, path, ["a", "b"], ["a", "c"], request_of)
    assert (error.row, error.field) == (0, "request")
    assert "field 'request' was ('a', 'b'), and is now ('a', 'c')" in str(error)


def test_without_request_of_nothing_is_compared(engine, path, counted):
    with rc.record(path=path, adapters=counted):
        live = engine.generate(["a"])
    with rc.replay(path=path, adapters=counted):
        assert engine.generate(["quite another"]) == live
    assert rc.open_cassette(path)[1].request is None


def test_the_request_is_recorded_as_it_was_before_the_call(write_module, path):
    import torch

    module = importlib.import_module(
        write_module("""
            def generate(prompts):
                prompts[0].zero_()
                prompts[1].append("changed")
                return len(prompts)
        """)
    )
    adapter = rc.adapters.function(f"{module.__name__}:generate", request_of=lambda p: p)
    _, replayed, _ = record_and_replay(
        path, adapter, lambda: module.generate([torch.ones(2), ["a"]])
    )
    assert replayed == 2
    ids, texts = rc.open_cassette(path)[1].request
    assert torch.equal(ids, torch.ones(2))
    assert texts == ["a"]


def test_recordings_are_found_by_the_name_of_the_adapter(write_module, path):
    """A function may move to another module, if its adapter has a name of its own."""
    old, new = (importlib.import_module(write_module("def generate(): return 1")) for _ in "12")
    adapters = [
        rc.adapters.function(f"{module.__name__}:generate", name="rollout") for module in (old, new)
    ]
    with rc.record(path=path, adapters=adapters[0]):
        old.generate()
    with rc.replay(path=path, adapters=adapters[1]) as session:
        new.generate()
    assert session.played == [1]


# ---- as a decorator


def test_a_marked_function_is_recorded_by_sessions_that_name_no_adapters(path, counted):
    numbers = iter(range(10))

    @rc.adapters.function
    def generate():
        return next(numbers)

    assert generate() == 0
    with rc.record(path=path):
        assert generate() == 1
    with rc.replay(path=path) as session:
        assert generate() == 1
    with rc.record(path=path / "other", adapters=counted) as other:
        assert generate() == 2
    assert session.played == [1]
    assert other.recorded == []
    assert generate.__name__ == "generate"


@pytest.mark.parametrize("named_first", [True, False])
def test_a_marked_function_may_be_named_by_another_session(write_module, tmp_path, named_first):
    """Each records it: one for the mark, and one for the name, whichever was opened first."""
    engine = importlib.import_module(
        write_module(
            """
            import rollout_cassettes as rc

            @rc.adapters.function
            def generate(prompts):
                return prompts
            """
        )
    )
    target = f"{engine.__name__}:generate"
    named = rc.record(path=tmp_path / "named", adapters=rc.adapters.function(target))
    marked = rc.record(path=tmp_path / "marked")
    outer, inner = (named, marked) if named_first else (marked, named)
    with outer, inner:
        engine.generate(["a"])
    assert (named.recorded, marked.recorded) == ([1], [1])


async def test_marked_methods_may_be_static_of_a_class_or_async(path):
    calls = []

    class Engine:
        @rc.adapters.function(step_of=lambda self, step: step)
        async def agenerate(self, step):
            calls.append(self)
            return step

        @rc.adapters.function(step_of=lambda step: step)
        @staticmethod
        def static(step):
            calls.append(step)
            return step

        @classmethod
        @rc.adapters.function(step_of=lambda cls, step: step)
        def of_class(cls, step):
            calls.append(cls)
            return step

    async def run():
        return await Engine().agenerate(1), Engine.static(2), Engine.of_class(3)

    with rc.record(path=path):
        live = await run()
    with rc.replay(path=path) as session:
        assert await run() == live == (1, 2, 3)
    assert session.played == [1, 2, 3]
    assert len(calls) == 3


def test_functions_made_in_a_loop_keep_their_own_callables(path):
    def make(step):
        @rc.adapters.function(step_of=lambda: step)
        def generate():
            return step

        return generate

    functions = [make(step) for step in (3, 5)]
    with rc.record(path=path) as session:
        for each in functions:
            each()
    assert session.recorded == [3, 5]


def test_one_adapter_may_mark_several_functions(path):
    marked = rc.adapters.function()

    @marked
    def one():
        return 1

    @marked
    def other():
        return 2

    with rc.record(path=path):
        one()
        other()
    first, second = rc.open_cassette(path).interactions()
    assert first.manifest.adapter.endswith(".one")
    assert second.manifest.adapter.endswith(".other")
    with rc.replay(path=path):
        assert (other(), one()) == (2, 1)


def test_two_functions_can_not_be_marked_under_one_name():
    marked = rc.adapters.function(name="test_two_functions")

    @marked
    def one(): ...

    with pytest.raises(ValueError, match="another name="):

        @marked
        def other(): ...


@pytest.mark.parametrize("given", [3, int, functools.partial(print)])
def test_only_functions_can_be_marked(given):
    with pytest.raises(TypeError, match="marks functions and methods"):
        rc.adapters.function()(given)


def test_an_adapter_with_a_target_is_no_decorator():
    with pytest.raises(TypeError, match="takes no target"):
        rc.adapters.function("a:b")(print)


# ---- what is refused


@pytest.mark.parametrize("target", ["generate", "a.b.generate", "a:", ":b", "a b:c", "a:b:c", ""])
def test_a_target_that_names_no_function_is_refused(target):
    with pytest.raises(ValueError, match=r"written 'package\.module:Qualified\.name'"):
        rc.adapters.function(target)


@pytest.mark.parametrize("option", ["step_of", "phase_of", "request_of"])
def test_a_callable_that_is_none_is_refused(option):
    with pytest.raises(TypeError, match=f"{option} takes a function"):
        rc.adapters.function("a:b", **{option: 3})
