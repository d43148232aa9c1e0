"""How a command fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from rollout_cassettes.display.visible import visible
from rollout_cassettes.errors import CassetteError


@contextmanager
def reported(errors: Console) -> Iterator[None]:
    """Print an error of ours, or of the system's files, and exit with status 1.

    Args:
        errors: Where to.
    """
    try:
        yield
    except CassetteError as error:
        errors.print(Text.assemble(("Error:", "red"), f" {visible(str(error))}"), soft_wrap=True)
        raise typer.Exit(1) from error
    except BrokenPipeError:  # who reads the output has seen enough
        raise
    except OSError as error:
        where = "" if error.filename is None else f": {error.filename}"
        told = f" {visible(f'{error.strerror or error}{where}')}"
        errors.print(Text.assemble(("Error:", "red"), told), soft_wrap=True)
        raise typer.Exit(1) from error
