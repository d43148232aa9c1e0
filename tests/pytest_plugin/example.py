"""A small project, and what pytest makes of it: `record -> replay -> edit -> replay` as a chain."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
HERE = "/project"
"""What outputs call the directory in which the project is."""

ENGINE = '''
"""An engine that answers with a word of the day."""

import rollout_cassettes as rc

WORD = "monday"


@rc.adapters.function(request_of=lambda prompts: prompts)
def generate(prompts):
    return [f"{prompt} {WORD}" for prompt in prompts]
'''

_OTHERS = ("anyio", "asyncio", "cacheprovider", "hydra_pytest", "hypothesispytest", "xdist")
"""Plugins that may be installed here, beside ours."""

_SUMMARY = re.compile(r"(\d+) (passed|failed|error|skipped|deselected|xfailed|xpassed|warning)s?\b")


@dataclass(frozen=True)
class Example:
    """The files of a project, and what the last run of pytest printed.

    Attributes:
        files: Their contents by name; cassettes are among them.
        output: What the last run printed.
    """

    files: Mapping[str, bytes]
    output: str = field(default="", repr=False)

    @classmethod
    def of(cls, test: str = "", **files: str) -> Example:
        """Return a project with the engine and one test module, `test_it.py`.

        Args:
            test: The module, without its imports.
            **files: Further files by name, `__` for `/` and without `.py`.
        """
        module = f"import pytest\nimport rollout_cassettes as rc\nimport engine\n\n{test}\n"
        further = {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
        ini = "[pytest]\nfilterwarnings = error\npythonpath = .\n"
        return cls({}).add(
            {"engine.py": ENGINE, "test_it.py": module, "pytest.ini": ini, **further}
        )

    # ---- editing

    def add(self, files: Mapping[str, str]) -> Example:
        """Return the project with further files, or others in their place."""
        return replace(self, files={**self.files, **{n: t.encode() for n, t in files.items()}})

    def edit(self, old: str, new: str, *, file: str = "test_it.py") -> Example:
        """Return the project with a text in a file replaced."""
        text = self.files[file].decode()
        assert old in text, f"{file} has no {old!r}"
        return self.add({file: text.replace(old, new)})

    def on(self, day: str) -> Example:
        """Return the project with an engine that answers otherwise: who replays doesn't notice."""
        engine = re.sub(r'WORD = "\w+"', f'WORD = "{day}"', self.files["engine.py"].decode())
        return self.add({"engine.py": engine})

    def remove(self, start: str) -> Example:
        """Return the project without the files whose names begin like this."""
        assert any(name.startswith(start) for name in self.files)
        return replace(self, files={n: d for n, d in self.files.items() if not n.startswith(start)})

    # ---- running

    def run_pytest(
        self,
        *args: str,
        outcomes: Mapping[str, int] | None = None,
        changed_files: Iterable[str] | None = None,
        plugins: Iterable[str] = (),
        directory: str = ".",
    ) -> Example:
        """Run pytest in a fresh process and directory, and return the project as it is then.

        Args:
            *args: What pytest is told.
            outcomes: How many tests must pass, fail, …: `{"passed": 2}`.
            changed_files: What must have changed: names of files, and of cassettes (directories).
            plugins: pytest's plugins that are needed; others are switched off, to be faster.
            directory: Where pytest is started.
        """
        with tempfile.TemporaryDirectory() as name:
            root = Path(name).resolve()
            self._write(root)
            done = subprocess.run(
                [sys.executable, "-B", "-m", "pytest", *_choice(plugins), *args],
                cwd=root / directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            output = done.stdout.replace(str(root), HERE)
            after = Example(dict(_read(root)), output)
        assert done.returncode in (0, 1), output
        if outcomes is not None:
            assert after.outcomes() == dict(outcomes), output
            assert bool(done.returncode) == any(outcomes.get(bad) for bad in ("failed", "error"))
        if changed_files is not None:
            assert self.changed(after) == set(changed_files), output
        return after

    def outcomes(self) -> dict[str, int]:
        """Return how many tests passed, failed, … in the last run."""
        last = self.output.rstrip().splitlines()[-1]
        return {word: int(count) for count, word in _SUMMARY.findall(last)}

    def changed(self, other: Example) -> set[str]:
        """Return the names of what differs; of a cassette's files, the cassette's."""
        names = {*self.files, *other.files}
        differing = {n for n in names if self.files.get(n) != other.files.get(n)}
        return {_cassette_of(name) or name for name in differing}

    def cassettes(self) -> dict[str, list[int]]:
        """Return the cassettes that there are, with their steps."""
        found: dict[str, list[int]] = {}
        for name in sorted(self.files):
            cassette = _cassette_of(name)
            if cassette and name.endswith(".msgpack"):
                found.setdefault(cassette, []).append(int(PurePosixPath(name).name[5:11]))
        return found

    def _write(self, root: Path) -> None:
        for name, data in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)


def _read(root: Path) -> Iterable[tuple[str, bytes]]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts):
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _cassette_of(name: str) -> str | None:
    path = PurePosixPath(name)
    return str(path.parent) if path.name.startswith("step-") else None


def _choice(plugins: Iterable[str]) -> Iterable[str]:
    """Give the options that leave out the plugins that a run doesn't need: they take time."""
    for plugin in sorted({*_OTHERS} - {*plugins}):
        yield from ("-p", f"no:{plugin}")
    if not _is_installed():
        yield from ("-p", "rollout_cassettes.pytest_plugin")


def _is_installed() -> bool:
    """Tell whether pytest loads the plugin by itself; an older installation lacks the entry point."""
    return bool(importlib.metadata.entry_points(group="pytest11", name="rollout_cassettes"))


def _environment() -> dict[str, str]:
    theirs = ("PYTEST_", "ROLLOUT_CASSETTES_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
