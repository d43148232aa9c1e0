"""Adapters of other distributions: really installed in a directory, used by another process."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import discovery
from tests.adapters.distribution import ADAPTER, FRAMEWORK, Installation
from tests.docs.blocks import Page

LINE = "shouting = shouting_adapter:Shouting"

RECORD = """
import sys
import rollout_cassettes as rc

with rc.record(path="c", adapters={adapters}) as session:
    assert "shouting_adapter" in sys.modules and "shouting_framework" not in sys.modules
    import shouting_framework
    shouting_framework.generate(["a", "b"])
print(session.recorded, rc.open_cassette("c")[1].manifest.adapter)
"""


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path / "site")


@pytest.fixture
def shouting(installation):
    """With the distribution installed whose adapter works."""
    installation.add(LINE, shouting_adapter=ADAPTER, shouting_framework=FRAMEWORK)
    return installation


@pytest.mark.parametrize("adapters", ["None", "'shouting'", "['shouting', 'verl_v1']"])
def test_a_session_finds_it(shouting, adapters):
    """Named or not; the framework is imported by whoever uses it, and not by the session."""
    assert shouting.printed(RECORD.format(adapters=adapters)) == "[1] shouting\n"


def test_an_import_and_another_session_import_no_adapter(shouting):
    """Only what is named is imported, where adapters are named."""
    shouting.printed("""
import sys
import rollout_cassettes as rc
rc.record, rc.adapters.function("a:b")
with rc.record(path="c", adapters="verl_v0"):
    pass
assert "shouting_adapter" not in sys.modules
assert rc.adapters.named("shouting") is rc.adapters.registered()["shouting"]
""")


def test_what_it_recorded_is_read_its_way(shouting):
    """By the command line too. The cassette says a name; what is imported, the installation says."""
    shouting.printed(RECORD.format(adapters="None"))
    reading = """
import sys
from rollout_cassettes.adapters import registered
import rollout_cassettes as rc
rows = rc.open_cassette("c", numpy=True)[1].trajectories
assert "shouting_framework" not in sys.modules
print([(row.prompt, row.response) for row in rows])
"""
    assert shouting.printed(reading) == "[('a', 'A'), ('b', 'B')]\n"
    shown = shouting.run("-m", "rollout_cassettes", "show", "c", "--step", "1", "--row", "1")
    assert shown.returncode == 0, shown.stderr
    assert "B" in shown.stdout.split()
    (shouting.directory / "shouting_adapter-1.5.dist-info" / "entry_points.txt").unlink()
    assert shouting.printed(reading) == "[]\n"


def test_one_that_is_broken_does_not_hide_a_recording(shouting):
    """It is read by the names of its columns, with one warning."""
    shouting.printed(RECORD.format(adapters="None"))
    (shouting.directory / "shouting_adapter.py").write_text("import no_such_module")
    for command in (["ls", "c"], ["show", "c"]):
        done = shouting.run("-m", "rollout_cassettes", *command)
        assert done.returncode == 0, done.stderr
    assert done.stderr.count("shouting-adapter 1.5 offers the adapter 'shouting'") == 1


def test_the_command_line_and_a_configuration_name_it(shouting):
    """As `--adapters`, which checks the name, and hands it on."""
    script = """
import os
from rollout_cassettes.configuration import Configuration
print(Configuration.from_environment().session()._in_use()[0].name)
"""
    run = ["-m", "rollout_cassettes", "run", "--record", "c"]
    wrong = shouting.run(*run, "--adapters", "shoutin", "--", sys.executable, "-c", script)
    assert wrong.returncode == 2
    assert "did you mean 'shouting'" in " ".join(wrong.stderr.replace("│", " ").split())
    configured = {
        **shouting.environment(),
        "ROLLOUT_CASSETTES_RUN": '{"mode": "record", "path": "c", "adapters": ["shouting"]}',
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=configured, capture_output=True, text=True, check=True)
    assert done.stdout == "shouting\n"


# ---- what is wrong is told


BROKEN = {
    "a module that can't be imported": ("shouting = no_such:ADAPTER", "ModuleNotFoundError"),
    "an attribute that is not there": ("shouting = shouting_adapter:No", "AttributeError"),
    "no adapter": ("shouting = builtins:dict", "is no adapter: {}"),
    "a module": ("shouting = shouting_adapter", "TypeError"),
    "another name": ("whispering = shouting_adapter:Shouting", "own name is 'shouting'"),
    "a class without parts": ("shouting = shouting_adapter:Mute", "no name and no entry_points"),
    "a script": ("shouting = shouting_script:Shouting", "SystemExit: 2"),
    "a name of ours": ("verl_v1 = shouting_adapter:Shouting", "own name is 'shouting'"),
}


MUTE = """

class Mute(Adapter):
    step_kind = "call"
    place = request = capture = restore = None
"""


@pytest.mark.parametrize(("line", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_told(installation, monkeypatch, line, why):
    """With the distribution, and where it says that the adapter is."""
    modules = {"shouting_adapter": ADAPTER + MUTE, "shouting_script": "raise SystemExit(2)"}
    installation.add(line, **modules)
    monkeypatch.syspath_prepend(installation.directory)
    monkeypatch.delitem(sys.modules, "shouting_adapter", raising=False)
    with pytest.raises(rc.AdapterLoadError, match=re.escape(why)) as caught:
        discovery.load(installation.offers())
    error, (name, target) = caught.value, line.split(" = ")
    assert (error.distribution, error.adapter) == ("shouting-adapter 1.5", name)
    assert error.target == target
    assert "Upgrade, mend or uninstall shouting-adapter." in error.fixes


def test_one_that_was_interrupted_is_looked_for_again(installation):
    """Else the next session would do without it, and say nothing."""
    installation.add(LINE, shouting_adapter="raise KeyboardInterrupt")
    assert (
        installation.printed("""
import rollout_cassettes as rc
for _ in range(2):
    try:
        with rc.record(path="c"):
            pass
    except KeyboardInterrupt:
        print("interrupted")
""").split()
        == ["interrupted"] * 2
    )


def test_a_session_that_would_use_a_broken_one_does_not_open(installation):
    """Sessions that name others open, and the import works."""
    installation.add("shouting = no_such:ADAPTER")
    told = installation.printed("""
import rollout_cassettes as rc
with rc.record(path="c", adapters=rc.adapters.function("a:b")):
    pass
for _ in range(2):
    try:
        rc.record(path="c").__enter__()
    except rc.AdapterLoadError as error:
        print(error.distribution)
""")
    assert told == "shouting-adapter 1.5\n" * 2


def test_two_that_offer_one_name_are_both_named(installation):
    """Neither is chosen."""
    installation.add(LINE)
    installation.add(LINE, distribution="another")
    with pytest.raises(rc.AdapterLoadError, match=r"shouting-adapter 1\.5") as caught:
        discovery.load(installation.offers())
    assert "another 1.5" in str(caught.value)


def test_an_entry_point_of_another_adapter_is_refused(installation):
    """Unless its own `by_default` is off: then it is used where it is named."""
    theirs = ADAPTER.replace('"shouting_framework", "generate"', '"json", "dumps"')
    ours = "\nrc.adapters.register(rc.adapters.function('json:dumps'))\n"
    installation.add(LINE, shouting_adapter=theirs + ours)
    script = """
import rollout_cassettes as rc
try:
    with rc.record(path="c"): pass
except rc.AdapterLoadError as error:
    print("intercepts ['json:dumps'] already" in str(error))
"""
    assert installation.printed(script) == "True\n"
    module = installation.directory / "shouting_adapter.py"
    module.write_text(theirs.replace("step_kind", "by_default = False\n    step_kind") + ours)
    assert installation.printed(script) == ""


def test_what_code_registers_under_the_name_is_used(shouting):
    """With a warning, where it is another class."""
    done = shouting.run(
        "-c",
        """
import rollout_cassettes as rc
mine = rc.adapters.function("shouting_framework:generate", name="shouting")
rc.adapters.register(mine)
assert rc.adapters.registered()["shouting"] is mine
rc.adapters.registered()
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("shouting-adapter 1.5 offers the adapter 'shouting'") == 1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("setuptools") is None, reason="builds with setuptools")
def test_pip_installs_what_the_documentation_shows(tmp_path):
    """The project of the page on adapters, with its lines of the entry-point group."""
    page = Page.read(Path("docs/how-to/write-an-adapter.md"))
    project = tmp_path / "project"
    project.mkdir()
    for block in page.blocks:
        if block.note("file:"):
            (project / block.note("file:")).write_text(block.text)
    installation = Installation(tmp_path / "site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", installation.directory, project]
    subprocess.run(command, check=True, capture_output=True)
    told = installation.printed("""
import sys
import rollout_cassettes as rc
with rc.record(path="c") as session:
    assert "little_adapter" in sys.modules and "little_trainer" not in sys.modules
    from little_trainer import Trainer
    Trainer(["a"]).fit()
print(session.recorded, rc.open_cassette("c")[1].manifest.adapter)
""")
    assert told == "[1, 2, 3] little\n"
