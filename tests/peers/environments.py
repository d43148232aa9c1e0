"""Tell which adapters fit the frameworks of some environments.

    python tests/peers/environments.py [PYTHON ...] [--replay]

Each PYTHON is an interpreter, or the directory of a virtual environment, that has a framework which an
adapter is for, and what this library needs; without one, it is this interpreter. There, the modules of all entry points are
imported, and a session is opened for each adapter: what is printed is what a user of that version
gets. With --replay, the tests that record and replay with the V0 and the fully asynchronous adapter
are run there too. The exit status is 1 if an environment can't be asked, or a test fails.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

#: They train nothing and start no Ray; of verl they need what those adapters are for.
REPLAY_TESTS = "tests/verl/test_verl_v0.py"

PLUGIN = "rollout_cassettes.verl_plugin"


class Fit(NamedTuple):
    """How an adapter fits a framework.

    Attributes:
        adapter: Its name.
        found: How many of its entry points are there.
        absent: The entry points whose module is not there: a session waits for its import.
        missing: Those that their module lacks.
        tolerated: Those of them without which a session opens, since they only refuse something.
        error: What a session says that uses the adapter; None if it opens.
    """

    adapter: str
    found: int
    absent: list[str]
    missing: list[str]
    tolerated: list[str]
    error: str | None

    def verdict(self, rollouts: list[str]) -> str:
        """Say in a few words what a user gets.

        Args:
            rollouts: The entry points through which the adapter's rollouts pass.
        """
        if self.error is not None:
            return self.error
        return "not in this version" if set(rollouts) & set(self.absent) else "fits"


def main(arguments: list[str] | None = None) -> int:
    """Ask each environment, print what they say, and return the exit status."""
    given = parse(arguments)
    status = 0
    for python in given.python:
        try:
            print(report(ask(python)), flush=True)
        except subprocess.CalledProcessError as error:
            print(f"{python} can't be asked:\n{error.stderr}", file=sys.stderr)
            status = 1
            continue
        if given.replay:
            status |= replay(python)
    return status


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the interpreters and the options; exit if they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", nargs="*", type=Path, help="an interpreter or an environment")
    parser.add_argument("--replay", action="store_true", help=f"run {REPLAY_TESTS} there too")
    given = parser.parse_args(arguments)
    # A virtual environment's interpreter is a link: resolved, it would be that of none.
    paths = [each / "bin" / "python" if each.is_dir() else each for each in given.python]
    given.python = [path.absolute() for path in paths] or [Path(sys.executable)]
    for python in given.python:
        if not python.is_file():
            parser.error(f"{python} is no Python interpreter")
    return given


def ask(python: Path) -> dict:
    """Return what `probe` finds in an environment.

    Raises:
        CalledProcessError: If it can't run there, as without a framework.
    """
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import environments; "
    code += "print(environments.probe())"
    done = subprocess.run(
        [python, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def replay(python: Path) -> int:
    """Record and replay in an environment; return the exit status of pytest."""
    command = [python, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    command += ["-o", "filterwarnings=default", "--disable-warnings", REPLAY_TESTS]
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


def environment() -> dict[str, str]:
    """Return the environment variables with which this repository is what gets imported."""
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def report(facts: dict) -> str:
    """Return what an environment said, as Markdown."""
    plugin = "loads plugins" if facts["plugin"] else "loads no plugin"
    heading = ", ".join(f"{name} {found}" for name, found in facts["releases"].items())
    lines = [f"{heading}; verl {plugin}" if "verl" in facts["releases"] else heading, ""]
    lines += ["| adapter | entry points found | a session |", "| --- | --- | --- |"]
    for adapter in facts["adapters"]:
        fit, rollouts = Fit(**adapter["fit"]), adapter["rollouts"]
        total = fit.found + len(fit.absent) + len(fit.missing)
        lines.append(f"| `{fit.adapter}` | {fit.found} of {total} | {fit.verdict(rollouts)} |")
    lines.append(f"| all | | {facts['all'] or 'opens'} |")
    for heading in ("missing", "absent"):
        targets = sorted({each for a in facts["adapters"] for each in a["fit"][heading]})
        tolerated = {each for a in facts["adapters"] for each in a["fit"]["tolerated"]}
        notes = {each: " (tolerated)" if each in tolerated else "" for each in targets}
        lines += ["", f"{heading}:", *(f"- {each}{notes[each]}" for each in targets)] * bool(notes)
    return "\n".join([*lines, ""])


# ---- in the environment that is asked


def probe() -> str:
    """Return what there is in this environment, as JSON."""
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        from rollout_cassettes.adapters import registered

        known = [each for each in registered().values() if framework(each)]
        adapters = [each for each in known if version(framework(each)) is not None]
        if not adapters:
            raise SystemExit("no framework is installed here that an adapter is for")
        for each in {
            point.module.partition(".")[0]: None for a in adapters for point in a.entry_points
        }:
            importlib.import_module(each)
        fits = [
            {"fit": fit(adapter)._asdict(), "rollouts": rollouts(adapter)} for adapter in adapters
        ]
        releases = {framework(each): version(framework(each)) for each in adapters}
        if "verl" in releases:
            releases["TransferQueue"] = version("TransferQueue")
        facts = {
            "releases": releases,
            "plugin": PLUGIN in sys.modules,
            "adapters": fits,
            "all": refusal(None),
        }
    return json.dumps(facts)


def framework(adapter) -> str:
    """Return the distribution that an adapter is for; empty if it intercepts functions of our own."""
    return adapter.entry_points[0].framework


def fit(adapter) -> Fit:
    """Look for the entry points of an adapter, and open a session with it."""
    from rollout_cassettes.errors import EntryPointNotFoundError
    from rollout_cassettes.patching import Role
    from rollout_cassettes.patching.patch import _find

    absent, missing, tolerated = [], [], []
    for point in adapter.entry_points:
        try:
            _find(point, importlib.import_module(point.module))
        except ModuleNotFoundError as error:
            if error.name is None or not point.module.startswith(error.name):
                raise  # something that the framework needs is not installed
            absent.append(point.target)
        except EntryPointNotFoundError:
            missing.append(point.target)
            if point.role is Role.START:
                tolerated.append(point.target)
    found = len(adapter.entry_points) - len(absent) - len(missing)
    return Fit(adapter.name, found, absent, missing, tolerated, refusal(adapter))


def rollouts(adapter) -> list[str]:
    """Return the entry points through which rollouts pass."""
    return [point.target for point in adapter.entry_points if point.claim is not None]


def refusal(adapter) -> str | None:
    """Return the error with which a session does not open, if it does not."""
    import rollout_cassettes as rc

    with tempfile.TemporaryDirectory() as directory:
        session = rc.record(path=Path(directory) / "cassette", adapters=adapter)
        try:
            with session:
                return None
        except rc.EntryPointNotFoundError as error:
            return f"{type(error).__name__}: {error.what}"


def version(distribution: str) -> str | None:
    """Return a distribution's version; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
