"""Executes the notebooks of docs/; `python -m tests.docs.notebooks` writes what they show into them."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tests.docs.blocks import ROOT
from tests.docs.outputs import matches

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

_TIMEOUT = 600  # seconds, for a cell, for what it shows, and for a kernel's start
_AGE = re.compile(r"\d+ (?:s|min|h|d|y) ago")


def read(path):
    """Return a notebook as it was committed."""
    import nbformat

    return nbformat.read(path, as_version=4)


def execute(path, directory):
    """Return a notebook as it is after all of its cells ran, in a fresh kernel of this Python.

    Args:
        path: The notebook's.
        directory: Where its kernel is started.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as own:
        kernel = AsyncKernelManager(
            kernel_name="python3",
            transport="ipc",  # a port would be open to all users of the machine
            connection_file=str(Path(own, "kernel.json")),
        )
        client = NotebookClient(
            read(path),
            km=kernel,
            timeout=_TIMEOUT,
            iopub_timeout=_TIMEOUT,  # by default 4 seconds, after which outputs are left out
            startup_timeout=_TIMEOUT,
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": str(directory)}},
        )
        # A reader's own settings of IPython are not the notebook's.
        environment = {**os.environ, "IPYTHONDIR": own, "PYTHONPATH": str(ROOT)}
        environment["OMP_NUM_THREADS"] = "1"  # tensors this small gain nothing by more
        return client.execute(env=environment, cleanup_kc=True)


def shown(notebook):
    """Return what each cell of code shows: pairs of a kind and a text."""
    return [
        [pair for output in cell.outputs for pair in _pairs(output)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def same(expected, found):
    """Tell whether two cells show the same, apart from durations, sizes, decimals and ages."""
    if [kind for kind, _ in expected] != [kind for kind, _ in found]:
        return False
    pairs = zip(expected, found, strict=True)
    return all(
        matches(_ageless(old), _ageless(new), amounts_vary=True) for (_, old), (_, new) in pairs
    )


def _pairs(output):
    if output.output_type == "stream":
        return [(output.name, output.text)]
    return sorted(output.data.items())


def _ageless(text):
    return _AGE.sub("0 s ago", text)


def rewrite(path):
    """Execute a notebook, and keep what it shows."""
    import nbformat

    nbformat.write(execute(path, path.parent), path)


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        rewrite(notebook)
