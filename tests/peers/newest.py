"""Tell whether the adapters still fit the newest release of each framework.

    python tests/peers/newest.py [REQUIREMENT ...]

Each framework of a known adapter, those of installed distributions included, is installed from the
package index into a directory of its own, without what it depends on: the newest release, or what a
REQUIREMENT such as `verl==0.9.0` says. It isn't imported, which would take CUDA and gigabytes; its source
is read for the functions that the adapters intercept. What only running it would make, such as
an attribute that a decorator adds, is not seen: `versions.py` asks an environment where it is installed
as a whole.

It prints a table. Functions with which a run starts may be missing, since nothing is lost with them: they
are inherited from other frameworks, or made by decorators. The exit status is 1 if a release lacks another
one, or can't be installed. To be run on a schedule.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from rollout_cassettes.adapters import EntryPoint, Role, registered  # noqa: E402 - of this checkout


class Line(NamedTuple):
    """How an adapter fits a release.

    Attributes:
        release: The framework and its version.
        adapter: The adapter's name.
        found: The entry points that are there.
        missing: Those that are not, and that rollouts need.
        tolerated: Those that are not, and that only refuse something.
    """

    release: str
    adapter: str
    found: list[str]
    missing: list[str]
    tolerated: list[str]

    def __str__(self) -> str:
        total = len(self.found) + len(self.missing) + len(self.tolerated)
        lacks = [*self.missing, *(f"{each} (may be missing)" for each in self.tolerated)]
        told = "fits" if not self.missing else "does not fit"
        cells = [self.release, f"`{self.adapter}`", f"{len(self.found)} of {total}", told]
        return f"| {' | '.join([*cells, ', '.join(lacks)])} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Install and read each framework, print the table, and return the exit status."""
    wanted = parse(arguments)
    print(
        "| release | adapter | entry points found | | not in its source |\n| --- | --- | --- | --- | --- |"
    )
    status = 0
    for requirement in wanted:
        with tempfile.TemporaryDirectory(prefix="newest-") as directory:
            try:
                install(requirement, Path(directory))
            except subprocess.CalledProcessError as error:
                print(f"{requirement} can't be installed:\n{error.stderr}", file=sys.stderr)
                status = 1
                continue
            for line in lines(Path(directory), Requirement(requirement).name):
                print(line, flush=True)
                status |= bool(line.missing)
    return status


def parse(arguments: Sequence[str] | None) -> list[str]:
    """Return what is to be installed; exit if no adapter is for it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("requirement", nargs="*", help="such as verl or verl==0.9.0")
    given = parser.parse_args(arguments).requirement
    known = frameworks()
    for requirement in given:
        if canonicalize_name(Requirement(requirement).name) not in map(canonicalize_name, known):
            parser.error(f"no adapter is for {requirement}: there are some for {', '.join(known)}")
    return given or known


def frameworks() -> list[str]:
    """Return the distributions that the known adapters are for."""
    points = [point for adapter in registered().values() for point in adapter.entry_points]
    return sorted({point.framework for point in points if point.framework})


def install(requirement: str, directory: Path) -> None:
    """Install a distribution into a directory, alone and uncompiled.

    Raises:
        CalledProcessError: If pip can't.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    command += ["--ignore-requires-python"]  # it isn't run here
    command += ["--disable-pip-version-check", "--upgrade", "--target", str(directory), requirement]
    subprocess.run(command, check=True, capture_output=True, text=True)


def lines(directory: Path, framework: str) -> list[Line]:
    """Return how each adapter fits the framework that is installed in a directory."""
    name = canonicalize_name(framework)
    found = distributions(name=framework, path=[str(directory)])
    release = " ".join([framework, *(each.version for each in found)])
    sources = Sources(directory)
    return [
        line_of(release, adapter.name, points, sources)
        for adapter in registered().values()
        if (points := [p for p in adapter.entry_points if canonicalize_name(p.framework) == name])
    ]


def line_of(release: str, adapter: str, points: list[EntryPoint], sources: Sources) -> Line:
    """Look for an adapter's entry points."""
    line = Line(release, adapter, [], [], [])
    for point in points:
        if sources.has(point):
            line.found.append(point.target)
        elif point.role is Role.START:  # nothing is lost with it: it would only be refused
            line.tolerated.append(point.target)
        else:
            line.missing.append(point.target)
    return line


class Sources:
    """The modules in a directory, read and never imported.

    Args:
        directory: What would be on ``sys.path``.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tree = cache(self._parse)

    def has(self, point: EntryPoint) -> bool:
        """Tell whether the source has a function there: of its own, inherited or imported."""
        return self._has(point.module, tuple(point.qualname.split(".")), frozenset())

    def _has(self, module: str, names: tuple[str, ...], seen: frozenset[object]) -> bool:
        if (module, names) in seen:
            return False
        seen |= {(module, names)}
        for node in _statements(self._tree(module)):
            match node:
                case ast.ImportFrom():
                    found = any(
                        self._has(_origin(node, module, self._is_package(module)), origin, seen)
                        for origin in _imported(node, names)
                    )
                case ast.ClassDef(name=name) if name == names[0] and names[1:]:
                    found = self._is_in_class(node, module, names[1:], seen)
                case _:
                    found = names[1:] == () and names[0] in _defined(node)
            if found:
                return True
        return False

    def _is_in_class(
        self, cls: ast.ClassDef, module: str, names: tuple[str, ...], seen: frozenset[object]
    ) -> bool:
        for node in _statements(cls):
            if names[1:] == () and names[0] in _defined(node):
                return True
            if isinstance(node, ast.ClassDef) and node.name == names[0] and names[1:]:
                return self._is_in_class(node, module, names[1:], seen)
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in cls.bases]
        owners = [base.id for base in bases if isinstance(base, ast.Name)]
        return any(self._has(module, (owner, *names), seen) for owner in owners)

    def _is_package(self, module: str) -> bool:
        return (self._directory / Path(*module.split("."))).is_dir()

    def _parse(self, module: str) -> ast.Module:
        path = self._directory / Path(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return ast.parse(file.read_text(encoding="utf-8"))
        return ast.Module([], [])


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give the statements of a module or class, those under an `if`, `try` or `with` too."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, (ast.If, ast.Try, ast.ExceptHandler, ast.With)):
            yield from _statements(child)


def _defined(node: ast.AST) -> list[str]:
    """Return the names that a statement gives to functions, or to what may be one."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _imported(node: ast.ImportFrom, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what a name is called where it comes from, if this statement imports it."""
    aliases = [alias for alias in node.names if (alias.asname or alias.name) == names[0]]
    return [(alias.name, *names[1:]) for alias in aliases]


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the module that a statement imports from."""
    if not node.level:
        return node.module or ""
    parents = module.split(".")
    kept = parents[: len(parents) - node.level + is_package]
    return ".".join([*kept, *filter(None, [node.module])])


if __name__ == "__main__":
    sys.exit(main())
