"""A distribution with an adapter in it, as pip would leave it in a directory."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

from rollout_cassettes.adapters.discovery import GROUP

ROOT = Path(__file__).parents[2]

FRAMEWORK = """
def generate(prompts):
    return [prompt.upper() for prompt in prompts]
"""

ADAPTER = """
import rollout_cassettes as rc
from rollout_cassettes.adapters import Adapter, EntryPoint, Place


class Shouting(Adapter):
    name = "shouting"
    step_kind = "call"
    entry_points = (EntryPoint("shouting", "shouting_framework", "generate"),)

    def place(self, call):
        return Place(None)

    def request(self, call):
        return list(call.arguments["prompts"])

    def capture(self, call, result, submitted):
        return {"told": result}

    def restore(self, call, recorded, submitted, shift):
        return recorded.response["told"]

    def trajectories(self, recorded):
        pairs = enumerate(zip(recorded.request, recorded.response["told"]))
        return [rc.Trajectory(row, prompt=asked, response=told) for row, (asked, told) in pairs]
"""


class Installation:
    """A directory of distributions that a Python process may have on its path.

    Args:
        directory: The directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def add(self, line: str, distribution: str = "shouting-adapter", **modules: str) -> None:
        """Install a distribution with a line of the entry-point group and modules, by name."""
        metadata = self.directory / f"{distribution.replace('-', '_')}-1.5.dist-info"
        metadata.mkdir()
        files = {
            metadata / "METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n",
            metadata / "entry_points.txt": f"[rollout_cassettes.adapters]\n{line}\n",
            **{self.directory / f"{name}.py": source for name, source in modules.items()},
        }
        for path, text in files.items():
            path.write_text(text)

    def offers(self) -> list[EntryPoint]:
        """Return the lines of the group, as `importlib.metadata` reads them."""
        found = distributions(path=[str(self.directory)])
        lines = [line for each in found for line in each.entry_points if line.group == GROUP]
        return sorted(lines, key=lambda line: line.dist.name, reverse=True)

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which it is there."""
        path = os.pathsep.join([str(ROOT), str(self.directory)])
        return {**os.environ, "PYTHONPATH": path}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run `python` with arguments, where it is there."""
        return subprocess.run(
            [sys.executable, *command],
            env=self.environment(),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )

    def printed(self, script: str) -> str:
        """Return what a script prints; it has to end well, and without a warning."""
        done = self.run("-W", "error", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout
