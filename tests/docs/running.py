"""Runs the blocks of one page, in order, in one directory and one `__main__`."""

from __future__ import annotations

import ast
import inspect
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import rollout_cassettes as rc
from tests.docs.blocks import ROOT, Block, Page
from tests.docs.outputs import matches

Setup = Callable[[], Mapping[str, Any]]

HERE = "/project"
"""What pages call the directory in which their blocks run."""


class PageRun:
    """Runs a page as a reader would, from the top to the bottom.

    Args:
        page: The page.
        main: Whose namespace the blocks share; it is `__main__` while they run.
        setups: What a `setup` note may ask for: functions that give names for the namespace.
    """

    def __init__(self, page: Page, main: ModuleType, setups: Mapping[str, Setup]) -> None:
        self.page = page
        self._main = main
        self._setups = setups
        self._blocks = list(page.blocks)

    def run(self) -> None:
        """Run every block; none is passed over.

        Raises:
            AssertionError: If a block prints something else than the page says, or can't be run.
        """
        if self.page.run_by is not None:
            check_exists(self.page.run_by)
            return
        while self._blocks:
            block = self._blocks.pop(0)
            match block.language:
                case "python" if block.note("signature of"):
                    check_signature(block)
                case "python" | "bash" if block.note("run by"):
                    check_runs_elsewhere(block)
                    self._output_of(block)  # checked by what runs it
                case _ if block.note("file:"):
                    self._write(block)
                case "python":
                    self._expect(block, self._run_python(block))
                case "bash":
                    self._set_up(block)
                    self._expect(block, _run_bash(block))
                case "text" if block.note("illustration") is not None:
                    pass
                case _:
                    raise AssertionError(
                        f"{self._at(block)}: a {block.language or 'nameless'} block that nothing "
                        "runs: text stands behind the block that prints it, or is an illustration"
                    )

    def _run_python(self, block: Block) -> str:
        self._set_up(block)
        source = "\n" * block.line + block.text  # so that tracebacks name the page's lines
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(source, str(self.page.path), "exec"), vars(self._main))
        return printed.getvalue()

    def _set_up(self, block: Block) -> None:
        setup = block.note("setup:")
        if setup is not None:
            vars(self._main).update(self._setups[setup]())

    def _write(self, block: Block) -> None:
        path = Path(block.note("file:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _output_of(self, block: Block) -> Block | None:
        """Return the text block that follows, unless it is an illustration."""
        following = self._blocks[0] if self._blocks else None
        if following is None or following.language != "text":
            return None
        if following.note("illustration") is not None:
            return None
        return self._blocks.pop(0)

    def _expect(self, block: Block, printed: str) -> None:
        output = self._output_of(block)
        printed = printed.replace(str(Path.cwd()), HERE)
        expected = "" if output is None else output.text
        vary = output is not None and output.note("amounts vary") is not None
        assert matches(expected, printed, amounts_vary=vary), (
            f"{self._at(block)} printed\n\n{printed}\nand the page says\n\n{expected}"
        )

    def _at(self, block: Block) -> str:
        return f"{self.page.path}:{block.line}"


def _run_bash(block: Block) -> str:
    """Run commands with this Python first on the path; both kinds of output come as one."""
    environment = {name: v for name, v in os.environ.items() if not _shapes_output(name)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    # A reader may not have this plugin; without a setting of its own it prints a deprecation.
    environment["PYTEST_ADDOPTS"] = "-p no:asyncio"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{block.text}\nended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def _shapes_output(variable: str) -> bool:
    """Tell whether an environment variable changes what pytest, rich or typer print.

    Pages show what a reader sees at a prompt; pytest, for one, shortens its summary unless `CI` or
    `BUILD_NUMBER` is set, and typer colours its output where `GITHUB_ACTIONS` is.
    """
    return variable in _SHAPES_OUTPUT or variable.startswith("PYTEST_")


_SHAPES_OUTPUT = {
    "BUILD_NUMBER",
    "CI",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "NO_COLOR",
    "PY_COLORS",
}


def check_runs_elsewhere(block: Block) -> None:
    """Check that what a `run by` note names is there."""
    runner = block.note("run by")
    if runner == ".ci/run":
        script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        named = any(f"<!-- {note} -->" in script for note in block.notes)
        for command in commands(block):
            assert named or command in script, f".ci/run does not run `{command}`"
        return
    check_exists(runner)


def check_exists(test: str) -> None:
    """Check that a test, `PATH::name`, is there."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert name in functions, f"{path} has no test {name}"


def commands(block: Block) -> list[str]:
    """Return a block's commands, a line each, comments left out."""
    lines = [line.partition("  #")[0].strip() for line in block.text.splitlines()]
    return [command for line in lines for command in line.split(" && ") if command]


def check_signature(block: Block) -> None:
    """Compare a block, `def name(parameter=default, …): ...`, with the real signature.

    Annotations are left to the page: only names, kinds and defaults are compared.
    """
    name = block.note("signature of")
    target: Any = rc
    for part in name.split("."):
        target = getattr(target, part)
    namespace: dict[str, Any] = {}
    exec(compile(f"from __future__ import annotations\n{block.text}", name, "exec"), namespace)
    written = inspect.signature(namespace[name.rpartition(".")[2]])
    assert _shape(written) == _shape(inspect.signature(target)), f"the signature of {name}"


def _shape(signature: inspect.Signature) -> list[tuple[str, Any, Any]]:
    parameters = signature.parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters if each.name != "self"]
