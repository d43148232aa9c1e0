"""Watching imports while a with-block is open."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import SimpleNamespace

import pytest

import rollout_cassettes as rc
from rollout_cassettes import patching

SOURCE = """
    def generate():
        return "live"
"""


@pytest.fixture
def recording(path):
    """Open a session for a function: `recording(target) -> a session to be entered`."""
    return lambda target: rc.record(path=path, adapters=rc.adapters.function(target))


def test_a_module_imported_inside_the_block_is_patched_before_its_importer_goes_on(
    write_module, recording
):
    name = write_module(SOURCE)
    importer = write_module(f"from {name} import generate\ngenerate()")
    with recording(f"{name}:generate") as session:
        importlib.import_module(importer)
    assert session.recorded == [1]
    assert not hasattr(sys.modules[name].generate, "__wrapped__")


def test_a_submodule_is_patched_and_its_package_too(write_module, path):
    package = write_module("def generate(): return 1", "frame_a.__init__")
    write_module("def generate(): return 2", "frame_a.sub")
    adapters = [rc.adapters.function(f"frame_a{sub}:generate") for sub in ("", ".sub")]
    assert package == "frame_a.__init__"
    with rc.record(path=path, adapters=adapters):
        import frame_a.sub

        assert hasattr(frame_a.generate, "__wrapped__")
        assert hasattr(frame_a.sub.generate, "__wrapped__")
    assert not hasattr(frame_a.generate, "__wrapped__")
    assert not hasattr(frame_a.sub.generate, "__wrapped__")


def test_the_module_looks_as_it_would_without_us(write_module, recording):
    name = write_module(SOURCE)
    with recording(f"{name}:generate"):
        module = importlib.import_module(name)
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__.loader is module.__loader__


def test_looking_for_a_module_without_importing_it_changes_nothing(write_module, recording):
    name = write_module(SOURCE)
    with recording(f"{name}:generate"):
        spec = importlib.util.find_spec(name)
        assert spec.origin.endswith(f"{name}.py")
        assert spec.loader.get_source(name).strip().startswith("def generate")
        assert name not in sys.modules
        assert importlib.util.find_spec(f"{name}_that_is_not_there") is None


def test_an_import_that_fails_may_be_tried_again(write_module, recording, tmp_path):
    name = write_module("raise ImportError('not yet')")
    with recording(f"{name}:generate"):
        with pytest.raises(ImportError, match="not yet"):
            importlib.import_module(name)
        (tmp_path / "project" / f"{name}.py").write_text("def generate(): return 'now, at last'")
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        assert hasattr(module.generate, "__wrapped__")


def test_a_module_without_the_entry_point_can_not_be_imported(write_module, recording):
    name = write_module(SOURCE)
    with recording(f"{name}:generat"):
        for _ in range(2):
            with pytest.raises(rc.EntryPointNotFoundError, match="no function"):
                importlib.import_module(name)
        assert name not in sys.modules


def test_a_reloaded_module_is_patched_again_and_restored(write_module, recording):
    name = write_module(SOURCE)
    module = importlib.import_module(name)
    with recording(f"{name}:generate") as session:
        module.generate()
        importlib.reload(module)
        module.generate()
        reloaded = module.generate.__wrapped__
    assert session.recorded == [1, 2]
    assert module.generate is reloaded


def test_a_module_that_puts_another_in_its_place_is_patched_there(write_module, recording):
    name = write_module("""
        import sys, types
        def generate(): return "live"
        sys.modules[__name__] = types.SimpleNamespace(generate=generate, __name__=__name__)
    """)
    with recording(f"{name}:generate") as session:
        assert importlib.import_module(name).generate() == "live"
    assert session.recorded == [1]


def test_a_function_that_a_module_loads_lazily_is_patched(write_module, recording):
    name = write_module("""
        def __getattr__(name):
            if name != "generate":
                raise AttributeError(name)
            def generate():
                return "live"
            globals()[name] = generate
            return generate
    """)
    with recording(f"{name}:generate") as session:
        importlib.import_module(name).generate()
    assert session.recorded == [1]


def test_a_wrapper_that_a_module_imported_by_name_serves_the_next_session(write_module, path):
    """What was imported inside one block must not go live, unseen, in the next."""
    name = write_module(SOURCE)
    importer = write_module(f"from {name} import generate")
    adapter = rc.adapters.function(f"{name}:generate")
    with rc.record(path=path, adapters=adapter):
        module = importlib.import_module(importer)
        module.generate()
    with rc.replay(path=path, adapters=adapter) as session:
        assert module.generate() == "live"
    assert session.played == [1]
    assert module.generate() == "live"


def test_other_import_hooks_keep_working(write_module, recording, monkeypatch):
    """Here a hook that asks all finders itself, as wrapt's does."""
    name = write_module(SOURCE)
    busy = []

    class Hook:
        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname != name or busy:
                return None
            busy.append(fullname)
            try:
                return importlib.util.find_spec(fullname)
            finally:
                busy.clear()

    monkeypatch.setattr(sys, "meta_path", [Hook, *sys.meta_path])
    with recording(f"{name}:generate") as session:
        module = importlib.import_module(name)
        original = module.generate.__wrapped__
        module.generate()
    assert session.recorded == [1]
    assert module.generate is original
    assert not hasattr(original, "__wrapped__")


# ---- once


def test_it_is_told_of_an_import_once_and_before_the_importer_goes_on(write_module):
    name = write_module("value = 1")
    importer = write_module(f"from {name} import value\nseen = value")
    told = []

    def then(module):
        told.append(module.__name__)
        module.value = 2

    patching.once_imported(name, then)
    assert importlib.import_module(importer).seen == 2
    importlib.reload(sys.modules[name])
    assert told == [name]
    assert sys.modules[name].value == 1


def test_it_is_told_at_once_of_a_module_that_is_imported(write_module):
    module = importlib.import_module(write_module("value = 1"))
    told = []
    patching.once_imported(module.__name__, told.append)
    assert told == [module]


def test_an_import_that_is_refused_is_refused_again(write_module):
    """The one who is told may raise; it is not forgotten by that."""
    name = write_module("value = 1")
    refusals = [ImportError("not today"), ImportError("not now"), None]

    def then(module):
        refusal = refusals.pop(0)
        if refusal is not None:
            raise refusal

    patching.once_imported(name, then)
    for message in ("not today", "not now"):
        with pytest.raises(ImportError, match=message):
            importlib.import_module(name)
    importlib.import_module(name)
    assert refusals == []


def test_a_session_may_watch_the_same_module(write_module, recording):
    """Both are told, and the module is found."""
    name = write_module(SOURCE)
    told = []
    patching.once_imported(name, told.append)
    with recording(f"{name}:generate") as session:
        importlib.import_module(name).generate()
    assert session.recorded == [1]
    assert told == [sys.modules[name]]


@pytest.mark.filterwarnings("ignore:.*find_spec:ImportWarning")
def test_a_finder_of_an_older_kind_is_passed_over(write_module, recording, monkeypatch):
    """Old copies of six put one there, which has no `find_spec`."""
    name = write_module(SOURCE)
    old = SimpleNamespace(find_module=lambda _name, _path=None: None)
    monkeypatch.setattr(sys, "meta_path", [old, *sys.meta_path])
    with recording(f"{name}:generate") as session:
        importlib.import_module(name).generate()
    assert session.recorded == [1]
