"""Whether verl is installed, with what it needs."""

from __future__ import annotations

from importlib.util import find_spec

from rollout_cassettes.errors import CassetteError


def require_installed(packages: tuple[str, ...], why: str) -> None:
    """Refuse to go on without packages.

    Args:
        packages: What is needed, by the names under which it is imported.
        why: What needs it, as the start of a sentence.

    Raises:
        CassetteError: If one is missing.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise CassetteError(
            f"{why}, and {', '.join(missing)} can't be imported.",
            fixes=["pip install 'rollout_cassettes[verl]'"],
        )
