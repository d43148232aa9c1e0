"""Patches: on every kind of function, and off again without a trace."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import rollout_cassettes as rc
from rollout_cassettes.patching import EntryPoint, activate, deactivate


class PassThrough:
    """A session that has every call made live, and notes it."""

    def __init__(self):
        self.calls = []

    def handle(self, call):
        self.calls.append(call)
        return (yield)

    def pass_over(self, call):
        pass


class opened:  # noqa: N801
    """Open a session for entry points: `with opened(point, …) as session`."""

    def __init__(self, *points):
        self.points = points

    def __enter__(self):
        self.session = PassThrough()
        activate(self.session, self.points)
        return self.session

    def __exit__(self, *error):
        deactivate(self.session, self.points)


def point(engine, qualname, **options):
    return EntryPoint("test", engine.__name__, qualname, **options)


@pytest.mark.parametrize(
    ("qualname", "call"),
    [
        ("generate", lambda engine: engine.generate(["a"])),
        ("Engine.generate", lambda engine: engine.Engine().generate(["a"])),
        ("Engine.static", lambda engine: engine.Engine.static(["a"])),
        ("Engine.static", lambda engine: engine.Engine().static(["a"])),
        ("Engine.of_class", lambda engine: engine.Engine.of_class(["a"])),
        ("Engine.of_class", lambda engine: engine.FastEngine().of_class(["a"])),
        ("FastEngine.static", lambda engine: engine.FastEngine.static(["a"])),
        ("FastEngine.of_class", lambda engine: engine.FastEngine.of_class(["a"])),
        ("FastEngine.agenerate", lambda engine: asyncio.run(engine.FastEngine().agenerate(["a"]))),
    ],
)
def test_a_call_reaches_the_session_and_every_attribute_comes_back(engine, qualname, call):
    owners = (engine, engine.Engine, engine.FastEngine)
    before = [dict(vars(owner)) for owner in owners]
    with opened(point(engine, qualname)) as session:
        result = call(engine)
    assert [seen.point.qualname for seen in session.calls] == [qualname]
    assert "['a']" in str(result)
    for owner, attributes in zip(owners, before, strict=True):
        assert vars(owner).keys() == attributes.keys()
        assert all(vars(owner)[name] is value for name, value in attributes.items())


def test_an_inherited_method_is_patched_for_its_class_alone(engine):
    with opened(point(engine, "FastEngine.static")) as session:
        engine.Engine.static(["a"])
        engine.FastEngine.static(["b"])
    assert [call.args for call in session.calls] == [(["b"],)]


def test_a_callable_object_in_a_class_still_gets_no_self(write_module):
    module = importlib.import_module(
        write_module("""
            class Callable:
                def __call__(self, *args):
                    return args
            class Engine:
                generate = Callable()
        """)
    )
    with opened(point(module, "Engine.generate")) as session:
        assert module.Engine().generate(1) == (1,)
    assert len(session.calls) == 1


def test_a_method_of_a_module_level_object_is_patched_on_the_object(write_module):
    module = importlib.import_module(
        write_module("""
            class Engine:
                def generate(self, *args):
                    return args
            engine, other = Engine(), Engine()
        """)
    )
    with opened(point(module, "engine.generate")) as session:
        assert module.engine.generate(1) == (1,)
        module.other.generate(2)
    assert [call.args for call in session.calls] == [(1,)]
    assert vars(module.engine) == {}


def test_arguments_are_given_by_the_names_of_the_parameters(engine):
    with opened(point(engine, "generate")) as session:
        engine.generate(["a"])
    assert session.calls[0].arguments == {"prompts": ["a"], "step": None}


# ---- overrides


def test_an_override_that_calls_super_is_one_call(engine):
    with opened(point(engine, "Engine.generate", overrides=True)) as session:
        assert engine.FastEngine().generate(["a"])["fast"] is True
        engine.Engine().generate(["a"])
    assert len(session.calls) == 2


def test_without_overrides_the_call_of_super_is_the_one_that_counts(engine):
    original = engine.FastEngine.generate
    with opened(point(engine, "Engine.generate")) as session:
        assert engine.FastEngine.generate is original
        engine.FastEngine().generate(["a"])
    assert len(session.calls) == 1


def test_overrides_defined_inside_the_block_are_wrapped_and_restored(engine):
    with opened(point(engine, "Engine.generate", overrides=True)) as session:

        class Late(engine.FastEngine):
            def generate(self, prompts):
                return "late"

        class Later(Late):
            pass

        assert Late().generate(["a"]) == "late"
        assert Later().generate(["a"]) == "late"
    assert len(session.calls) == 2
    assert "__wrapped__" not in vars(Late.generate)
    assert "__init_subclass__" not in vars(engine.Engine)


def test_a_class_that_watches_its_subclasses_keeps_doing_so(write_module):
    module = importlib.import_module(
        write_module("""
            class Root:
                def __init_subclass__(cls, **options):
                    cls.root = options.pop("root", None)
                    super().__init_subclass__(**options)
            class Engine(Root):
                seen = []
                def generate(self):
                    return "base"
                def __init_subclass__(cls, tag, **options):
                    cls.seen.append((cls.__name__, tag))
                    super().__init_subclass__(**options)
            class Plain(Root):
                def generate(self):
                    return "plain"
        """)
    )
    hook = vars(module.Engine)["__init_subclass__"]
    points = [point(module, f"{name}.generate", overrides=True) for name in ("Engine", "Plain")]
    with opened(*points) as session:

        class Tagged(module.Engine, tag="t", root="r"):
            def generate(self):
                return "tagged"

        class Plainer(module.Plain, root="p"):
            def generate(self):
                return "plainer"

        assert (Tagged().generate(), Plainer().generate()) == ("tagged", "plainer")
    assert module.Engine.seen == [("Tagged", "t")]
    assert (Tagged.root, Plainer.root) == ("r", "p")
    assert len(session.calls) == 2
    assert vars(module.Engine)["__init_subclass__"] is hook


def test_an_override_reached_on_two_ways_is_wrapped_once(write_module):
    module = importlib.import_module(
        write_module("""
            class Engine:
                def generate(self): ...
            class Left(Engine): ...
            class Right(Engine): ...
            class Both(Left, Right):
                def generate(self): ...
        """)
    )
    with opened(point(module, "Engine.generate", overrides=True)):
        assert not hasattr(module.Both.generate.__wrapped__, "__wrapped__")


# ---- several sessions, several adapters


def test_sessions_share_a_patch_until_the_last_of_them_is_closed(engine):
    original = engine.generate
    first, second = opened(point(engine, "generate")), opened(point(engine, "generate"))
    outer, inner = first.__enter__(), second.__enter__()
    first.__exit__()
    assert engine.generate is not original
    engine.generate(["a"])
    second.__exit__()
    assert engine.generate is original
    assert (len(outer.calls), len(inner.calls)) == (0, 1)


def test_adapters_of_the_same_function_are_asked_from_the_inside_out(engine):
    """Also where sessions of two adapters are opened by turns, and closed in any order."""
    original = engine.generate
    points = [EntryPoint(name, engine.__name__, "generate") for name in ("a", "b", "a")]
    order = []

    class Noting(PassThrough):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def handle(self, call):
            order.append(self.number)
            return (yield)

    sessions = [Noting(number) for number in range(3)]
    for session, each in zip(sessions, points, strict=True):
        activate(session, [each])
    engine.generate(["a"])
    for number in (1, 0, 2):
        deactivate(sessions[number], [points[number]])
    assert order == [2, 1, 0]
    assert engine.generate is original


def test_a_class_below_a_patched_one_can_be_sent_to_another_process(engine):
    """By value, as Ray 2.60 does, with all that it inherits: the hook for later subclasses too."""
    cloudpickle = pytest.importorskip("cloudpickle")
    with opened(point(engine, "Engine.generate", overrides=True)):

        class Late(engine.Engine):
            def generate(self, prompts, step=None):
                return "late", super().generate(prompts, step)

        sent = cloudpickle.dumps((Late, engine.Engine.__init_subclass__))
    receive = "import pickle, sys; cls, hook = pickle.load(sys.stdin.buffer)"
    project, root = Path(engine.__file__).parent, Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", f"{receive}; hook(); print(cls().generate([]))"],
        input=sent,
        env={**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{root}"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"('late', {'prompts': []")


def test_a_second_session_may_ask_for_overrides_as_well(engine):
    plain, all_of_them = (
        opened(point(engine, "Engine.generate", overrides=overrides)) for overrides in (False, True)
    )
    with plain, all_of_them:
        assert hasattr(engine.FastEngine.generate, "__wrapped__")
    assert not hasattr(engine.FastEngine.generate, "__wrapped__")


# ---- other libraries that patch


def test_a_patch_from_before_the_block_is_what_comes_back(engine):
    with mock.patch.object(engine, "generate", return_value="mocked") as mocked:
        with opened(point(engine, "generate")) as session:
            assert engine.generate(["a"]) == "mocked"
        assert engine.generate is mocked
    assert len(session.calls) == 1


def test_a_patch_that_comes_and_goes_inside_the_block_does_no_harm(engine):
    original = engine.generate
    with opened(point(engine, "generate")) as session:
        with mock.patch.object(engine, "generate", return_value="mocked"):
            assert engine.generate(["a"]) == "mocked"
        engine.generate(["b"])
    assert engine.generate is original
    assert [call.args for call in session.calls] == [(["b"],)]


def test_a_patch_that_outlives_the_block_is_left_on_and_reported(engine, caplog):
    with opened(point(engine, "generate")) as session:
        ours = engine.generate
        engine.generate = lambda prompts: ("theirs", ours(prompts))
        theirs = engine.generate
        assert engine.generate(["a"])[0] == "theirs"
    assert engine.generate is theirs
    assert "patched by another library" in caplog.text
    assert len(session.calls) == 1
    assert engine.generate(["b"])[0] == "theirs"
    with opened(point(engine, "generate")) as later:
        engine.generate(["c"])
    assert len(later.calls) == 1, "our old wrapper inside theirs is part of the call"
    assert engine.generate is theirs


# ---- what isn't there


def missing(target, **options):
    module, qualname = target.split(":")
    with (
        pytest.raises(rc.EntryPointNotFoundError) as caught,
        opened(EntryPoint("test", module, qualname, **options)),
    ):
        pass
    return caught.value


def test_a_missing_function_is_named_with_those_that_are_close(engine):
    error = missing(f"{engine.__name__}:Engine.generat")
    assert (error.adapter, error.target) == ("test", f"{engine.__name__}:Engine.generat")
    assert error.version is None
    assert str(error).startswith(f"The module {engine.__name__} has no function")
    assert f"Did you mean {engine.__name__}:Engine.generate" in str(error)


def test_a_missing_function_of_a_framework_is_named_with_its_version():
    error = missing("pytest:no_such_function", framework="pytest")
    assert (error.framework, error.version) == ("pytest", pytest.__version__)
    assert str(error).startswith(f"pytest {pytest.__version__} has no function pytest:no_such")
    assert "Install a release of pytest" in str(error)


def test_the_distribution_of_a_module_is_found():
    error = missing("_pytest.nodes:no_such_function")
    assert (error.framework, error.version) == ("pytest", pytest.__version__)


@pytest.mark.parametrize("qualname", ["Engine", "calls", "Nobody.generate", "Engine.x.y"])
def test_what_is_no_function_is_refused(engine, qualname):
    assert missing(f"{engine.__name__}:{qualname}").target.endswith(qualname)


def test_nothing_is_patched_where_one_entry_point_is_missing(engine):
    original = engine.generate
    points = [point(engine, name) for name in ("generate", "Engine.generate", "nothing")]
    with pytest.raises(rc.EntryPointNotFoundError):
        activate(PassThrough(), points)
    assert engine.generate is original
    assert not hasattr(engine.Engine.generate, "__wrapped__")


def test_a_module_that_is_blocked_counts_as_not_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "blocked_module", None)
    with opened(EntryPoint("test", "blocked_module", "generate")):
        pass


def test_nothing_is_logged_where_all_goes_well(engine, caplog):
    with caplog.at_level(logging.DEBUG), opened(point(engine, "generate")):
        engine.generate(["a"])
    assert caplog.records == []


@pytest.mark.parametrize("since", ["", "1.0"])
def test_what_a_release_should_have_is_missed(engine, since):
    """pytest stands for the framework: it is installed, in a later version."""
    late = point(engine, "absent", framework="pytest", since=since)
    with (
        pytest.raises(rc.EntryPointNotFoundError, match=r"pytest .* has no function"),
        opened(late),
    ):
        pass


def test_an_older_release_may_lack_what_came_later(engine):
    """And what it has is intercepted all the same."""
    late = point(engine, "absent", framework="pytest", since="9999")
    with opened(late, point(engine, "generate")) as session:
        engine.generate(["a"])
    assert len(session.calls) == 1
