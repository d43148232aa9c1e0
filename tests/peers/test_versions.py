"""The script that reads the newest release of each framework."""

from __future__ import annotations

import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from rollout_cassettes.adapters import EntryPoint, Role, registered
from tests.peers import versions

SOURCES = {
    "toy/__init__.py": "from .rollouts import Engine as Machine\nfrom toy import rollouts\n",
    "toy/base.py": "class Base:\n    async def inherited(self): ...\n",
    "toy/rollouts.py": """
from typing import Generic
from toy.base import Base as Parent
from elsewhere import Foreign

try:
    import fast
except ImportError:
    def generate(): ...

made = fast.wrap(generate)
number: int = 3

class Engine(Parent, Foreign):
    if True:
        def generate(self): ...
    alias = generate
    class Inner:
        def sample(self): ...

class Wide(Generic[Parent]): ...
class Loop(Loop): ...
""",
    "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
}


@pytest.fixture
def site(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "there"),
    {
        "toy.rollouts:generate": True,
        "toy.rollouts:made": True,
        "toy.rollouts:Engine.generate": True,
        "toy.rollouts:Engine.alias": True,
        "toy.rollouts:Engine.Inner.sample": True,
        "toy.rollouts:Engine.inherited": True,
        "toy:Machine.inherited": True,
        "toy.rollouts:Engine": False,
        "toy.rollouts:Engine.gone": False,
        "toy.rollouts:Engine.Inner.gone": False,
        "toy.rollouts:Wide.generate": False,
        "toy.rollouts:Loop.generate": False,
        "toy.rollouts:number": False,
        "toy.rollouts:gone": False,
        "toy.gone:generate": False,
        "toy:gone": False,
    }.items(),
)
def test_functions_are_found_in_source(site, target, there):
    """Of a module or class, inherited, imported by another name, or under a condition."""
    assert versions.Sources(site).has(EntryPoint.to("toy", target)) is there


def test_what_may_be_missing_is_told_apart(site):
    """A function that starts a run may; one that rollouts pass may not."""
    points = [
        EntryPoint.to("toy", "toy.rollouts:generate"),
        EntryPoint.to("toy", "toy.rollouts:gone"),
        EntryPoint.to("toy", "toy.rollouts:Engine.fit", role=Role.START),
    ]
    line = versions.line_of("toy 1.0", "toy", points, versions.Sources(site))
    assert str(line) == (
        "| toy 1.0 | `toy` | 1 of 3 | does not fit | toy.rollouts:gone, "
        "toy.rollouts:Engine.fit (may be missing) |"
    )
    assert versions.line_of("toy 1.0", "toy", points[::2], versions.Sources(site)).missing == []


@pytest.fixture
def toy(site, monkeypatch):
    """An adapter of a framework that pip would install, and what its installation does."""

    def install(requirement, directory):
        if requirement != "toy":
            raise subprocess.CalledProcessError(1, "pip", stderr=f"no {requirement}")
        for name, text in SOURCES.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text)

    adapter = type("Toy", (), {"name": "toy", "entry_points": ()})
    monkeypatch.setattr(versions, "registered", lambda: {"toy": adapter})
    monkeypatch.setattr(versions, "install", install)
    return adapter


@pytest.mark.parametrize(("function", "status"), [("generate", 0), ("gone", 1)])
def test_the_exit_status_says_whether_all_is_there(toy, capsys, function, status):
    """The frameworks are those of the adapters that are registered."""
    toy.entry_points = (EntryPoint("toy", "toy.rollouts", function, framework="toy"),)
    assert versions.main([]) == status
    told = "1 of 1 | fits" if status == 0 else "0 of 1 | does not fit"
    assert f"| toy 1.0 | `toy` | {told} |" in capsys.readouterr().out


def test_what_can_not_be_installed_is_a_failure(toy, capsys):
    """With what pip said."""
    toy.entry_points = (EntryPoint("toy", "toy.rollouts", "generate", framework="toy"),)
    assert versions.main(["toy==9"]) == 1
    assert "no toy==9" in capsys.readouterr().err


def test_a_release_for_another_python_is_read_too(tmp_path):
    """Since it isn't run, a release need not be for the Python that asks."""
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    metadata = "toy-1.0.dist-info/METADATA"
    files = SOURCES | {
        metadata: f"{SOURCES[metadata]}Requires-Python: ==2.7.*\n",
        "toy-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "toy-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    versions.install(str(wheel), tmp_path / "site")
    sources = versions.Sources(tmp_path / "site")
    assert sources.has(EntryPoint.to("toy", "toy.rollouts:generate"))


def test_a_framework_without_an_adapter_is_refused(capsys):
    """With the names of those that have one."""
    with pytest.raises(SystemExit):
        versions.main(["vllm"])
    told = capsys.readouterr().err
    assert f"no adapter is for vllm: there are some for {', '.join(versions.frameworks())}" in told
    assert {"verl", "trl"} <= set(versions.frameworks())


@pytest.mark.parametrize("framework", versions.frameworks())
def test_it_agrees_with_the_releases_that_the_tests_run_with(framework):
    """All that rollouts pass is found in the source of what is installed."""
    module = next(
        point.module.partition(".")[0]
        for adapter in registered().values()
        for point in adapter.entry_points
        if point.framework == framework
    )
    spec = find_spec(module)
    if spec is None:
        pytest.skip(f"needs {framework}")
    found = versions.lines(Path(spec.origin).parents[1], framework)
    assert found
    assert not [line.missing for line in found if line.missing]
