"""The package as its users meet it."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import subprocess
import sys
import types
from pathlib import Path

import pytest

import rollout_cassettes as rc


def is_installed():
    return any(importlib.metadata.distributions(name="rollout_cassettes"))


def test_every_public_name_is_there():
    assert rc.__all__ == sorted(rc.__all__)
    assert all(hasattr(rc, name) for name in rc.__all__)
    namespace = {}
    exec("from rollout_cassettes import *", namespace)
    assert set(rc.__all__) <= set(namespace)


@pytest.mark.parametrize(
    "name",
    [
        "record",
        "replay",
        "use_cassette",
        "open_cassette",
        "register_codec",
        "CassetteError",
        "CassetteNotFoundError",
        "CassetteCorruptError",
        "CassetteVersionError",
        "StepNotRecordedError",
        "StepExistsError",
        "RequestMismatchError",
        "UnstorableValueError",
        "EntryPointNotFoundError",
    ],
)
def test_a_name_that_users_rely_on_is_public_and_documented(name):
    assert name in rc.__all__
    assert getattr(rc, name).__doc__


def test_the_version_is_that_of_the_project():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{rc.__version__}"\n' in text


@pytest.mark.skipif(not is_installed(), reason="is run from its source")
def test_the_version_is_that_of_the_distribution():
    assert rc.__version__ == importlib.metadata.version("rollout_cassettes")


def test_it_is_typed():
    assert importlib.resources.files("rollout_cassettes").joinpath("py.typed").is_file()


def test_modules_are_not_hidden_by_what_their_package_holds():
    import rollout_cassettes.adapters.adapter as module

    assert isinstance(module, types.ModuleType)


def test_importing_it_imports_no_framework():
    """Nor numpy or torch: an import must not cost seconds, and a cassette can be read without."""
    heavy = ["torch", "numpy", "tensordict", "safetensors", "verl", "ray", "transformers"]
    script = f"""
import sys
import rollout_cassettes as rc
rc.record; rc.replay; rc.use_cassette; rc.adapters.function("a:b")
loaded = [name for name in {heavy} if name in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_it_alone_imports_nothing():
    """The first name that is asked for does: plugins are imported where no cassette is used."""
    script = """
import sys
import rollout_cassettes as rc
loaded = [name for name in sys.modules if name.startswith(("rollout_cassettes.", "msgpack"))]
assert not loaded, loaded
assert set(rc.__all__) <= set(dir(rc))
assert not hasattr(rc, "recrod")
assert "msgpack" not in sys.modules
from rollout_cassettes import record
assert record is rc.record and "msgpack" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_recording_plain_values_needs_no_torch(tmp_path):
    script = f"""
import sys
import rollout_cassettes as rc

@rc.adapters.function(request_of=lambda prompt: prompt)
def generate(prompt):
    return {{"text": prompt.upper(), "scores": [1.0, 2.0]}}

with rc.record(path={str(tmp_path)!r}):
    live = generate("a")
with rc.replay(path={str(tmp_path)!r}):
    assert generate("a") == live
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
