"""Run verl's own tests with rollout_cassettes around them.

    python tests/peers/verl_tests.py PATH_TO_VERL_TREE [--file FILE ...]

The tests are those of an unpacked source tree of verl's; what they test is the verl that is
installed. Each file runs by itself and with this library around it, in processes of its own. Prints
a table; the exit status is 1 if a test that passes by itself does not pass with the library around,
and 2 if that could not be found out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

#: Those that concern what the library intercepts, relative to the tree's `tests`.
FILES = (
    "utils/test_utils_skip.py",
    "trainer/ppo/v1/test_replay_buffer_on_cpu.py",
    "trainer/ppo/v1/test_trainer_base_on_cpu.py",
    "trainer/ppo/v1/test_agent_loop_tq_on_cpu.py",
)

WAYS = ("plain", "recorder", "recorder per test", "plugin idle")

TIMEOUT = 900  # seconds, for one file in one way

#: The tests' own configuration is none; this keeps that of this repository away.
CONFIGURATION = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


class InvalidRunError(Exception):
    """A run from which nothing follows."""


@dataclass(frozen=True)
class Run:
    """One file, run in one way.

    Attributes:
        file: The file, relative to the tree's `tests`.
        way: One of WAYS.
        outcomes: By test: "passed", "failed" or "skipped".
        details: By failed test: pytest's account of it.
        patched: How many functions of verl's the session had patched by the end: of those that it
            intercepts, the ones whose modules the tests import.
        version: verl's; None if the tests don't import it.
    """

    file: str
    way: str
    outcomes: dict[str, str]
    details: dict[str, str]
    patched: int
    version: str | None

    def tests(self, outcome: str) -> list[str]:
        """Return the tests that came out so."""
        return [test for test, found in self.outcomes.items() if found == outcome]


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line says, and return the exit status."""
    tree, files, ways = parse(arguments)
    runs: list[Run] = []
    for file in files:
        for way in ways:
            try:
                runs.append(run(tree, file, way))
            except InvalidRunError as error:
                print(f"{file}, {way}: {error}", file=sys.stderr)
                return 2
            print(line(runs[-1]), flush=True)
    worse = regressions(runs)
    print(f"\nverl {runs[0].version}\n\n{table(runs)}")
    for each, test in worse:
        print(f"\n{each.file}{test} passes by itself and not with: {each.way}")
        print(each.details.get(test, "It was not run."))
    return 1 if worse else 0


def parse(arguments: list[str] | None) -> tuple[Path, list[str], list[str]]:
    """Return the tree, the files in its `tests`, and the ways to run them; exit if that's wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path, help="an unpacked source tree of verl's")
    parser.add_argument(
        "--file", action="append", help="a test file, relative to the tree's tests; all by default"
    )
    parser.add_argument(
        "--way", action="append", choices=WAYS[1:], help="what is around them; all by default"
    )
    given = parser.parse_args(arguments)
    tests = given.tree.resolve() / "tests"
    if not tests.is_dir():
        parser.error(f"{given.tree} has no tests: name an unpacked source tree of verl's")
    files = given.file or list(FILES)
    for file in files:
        if not (tests / file).is_file():
            parser.error(f"{tests / file} is not there")
    return tests.parent, files, [WAYS[0], *(given.way or WAYS[1:])]


def run(tree: Path, file: str, way: str) -> Run:
    """Run one file in one way.

    Raises:
        InvalidRunError: If pytest did not come to its end, or the run was not what it was to be.
    """
    with tempfile.TemporaryDirectory() as directory:
        there = Path(directory)
        (there / "pytest.ini").write_text(CONFIGURATION, encoding="utf-8")
        report = there / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "around"]
        command += [f"--around={way}", f"--around-report={report}", "--import-mode=importlib"]
        command += [f"--rootdir={there}", f"-c{there / 'pytest.ini'}", str(tree / "tests" / file)]
        done = subprocess.run(
            command,
            cwd=there,  # so that nothing of the tree is imported in place of what is installed
            env=environment(way),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
        if not report.exists():
            raise InvalidRunError(f"pytest ended with {done.returncode}:\n{done.stdout[-4000:]}")
        facts = json.loads(report.read_text(encoding="utf-8"))
    check(facts, tree, way)
    return Run(
        file,
        way,
        facts["outcomes"],
        facts["details"],
        len(facts["patched"]),
        facts["version"],
    )


def environment(way: str) -> dict[str, str]:
    """Return the environment of a run: the plugins of verl that are loaded, and what is imported."""
    path = [str(HERE), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "VERL_USE_EXTERNAL_PLUGINS": "rollout_cassettes" if way == "plugin idle" else "none",
    }


def check(facts: dict, tree: Path, way: str) -> None:
    """Check that the tests were run, of the installed verl, with around them what was asked for.

    Raises:
        InvalidRunError: If not.
    """
    passed = sum(outcome == "passed" for outcome in facts["outcomes"].values())
    if way == WAYS[0] and not passed:
        raise InvalidRunError("\n".join(["no test passed", *facts["details"].values()]))
    if facts["verl"] is not None and Path(facts["verl"]).is_relative_to(tree):
        raise InvalidRunError(f"the tests imported verl from the tree: {facts['verl']}")
    if way.startswith("recorder") and facts["under_session"] < passed:
        raise InvalidRunError(f"a session was open for {facts['under_session']} of {passed} tests")
    if facts["plugin"] and way != "plugin idle":
        raise InvalidRunError(f"verl {facts['version']} loaded the plugin, which it was not to")
    if not facts["plugin"] and way == "plugin idle":
        raise InvalidRunError(
            f"verl {facts['version']} did not load the plugin: is this package installed, and does "
            "that verl know plugins?"
        )


def regressions(runs: list[Run]) -> list[tuple[Run, str]]:
    """Return each test that passes by itself and not with the library around, with that run."""
    plain = {each.file: each for each in runs if each.way == WAYS[0]}
    return [
        (each, test)
        for each in runs
        for test in plain[each.file].tests("passed")
        if each.outcomes.get(test) != "passed"
    ]


def table(runs: list[Run]) -> str:
    """Return the runs as a table in Markdown."""
    lines = ["| file | around | passed | failed | patched |", "| --- " * 5 + "|"]
    return "\n".join([*lines, *map(line, runs)])


def line(each: Run) -> str:
    """Return a run as a line of the table."""
    counts = [len(each.tests("passed")), len(each.tests("failed")), each.patched]
    cells = [f"`{each.file}`", each.way, *map(str, counts)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
