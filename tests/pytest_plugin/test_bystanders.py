"""Runs that use no cassette: the plugin is loaded in them too, and nobody is to notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.pytest_plugin.example import Example

LOADED = """
def test_nothing_is_loaded(request):
    import sys
    heavy = ["rollout_cassettes.", "torch", "numpy", "msgpack", "zstandard"]
    ours = "rollout_cassettes.pytest_plugin"
    loaded = {name for name in sys.modules if name.startswith(tuple(heavy))}
    assert loaded == {ours}, loaded
    plugins = request.config.pluginmanager
    assert plugins.hasplugin(ours) or plugins.hasplugin("rollout_cassettes")
    assert not plugins.hasplugin("rollout_cassettes_observer")
"""


@pytest.mark.parametrize("off", [(), ("-p", "no:terminal"), ("-p", "no:rollout_cassettes")])
def test_a_run_without_cassettes_imports_nothing_and_warns_of_nothing(off):
    """Warnings are errors in it."""
    example = Example.of().add({"test_it.py": LOADED}).remove("engine.py")
    if off == ("-p", "no:rollout_cassettes"):
        example = example.add({"test_it.py": "def test_it():\n    pass\n"})
    after = example.run_pytest("-W", "error", "--strict-markers", "--strict-config", *off)
    assert after.changed(example) == set()
    if "no:terminal" not in off:
        assert after.outcomes() == {"passed": 1}
        assert "rollout cassettes ===" not in after.output


def test_the_library_may_be_imported_before_pytest_is_called(tmp_path):
    """pytest would warn that it can't rewrite the package of an installed plugin."""
    script = """
import sys
import pytest
import rollout_cassettes

class Installed:
    def pytest_collection(self):
        pytest.register_assert_rewrite("rollout_cassettes")

sys.exit(pytest.main(["-W", "error", "-p", "no:cacheprovider", "-p", "no:asyncio"], [Installed()]))
"""
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 passed" in done.stdout, done.stdout
    assert "warning" not in done.stdout


def test_an_assertion_of_others_is_explained_as_before():
    """Lists, dicts and strings are pytest's own affair, also where the library is in use."""
    example = Example.of("""
@pytest.mark.rollout_cassette
def test_one():
    assert engine.generate(["a"]) == ["b monday"]
""")
    output = example.run_pytest("--rollout-record-mode=once", outcomes={"failed": 1}).output
    assert "At index 0 diff: 'a monday' != 'b monday'" in output


@pytest.mark.parametrize("name", ["rollout_cassette", "rollout_cassette_config"])
def test_the_fixtures_and_the_marker_are_listed(name):
    """With what they are for."""
    assert name in Example.of().run_pytest("--fixtures").output
    assert "@pytest.mark.rollout_cassette(name=None, steps=None" in (
        Example.of().run_pytest("--markers").output
    )
