"""An attribute that was replaced, and is put back."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)


@dataclass
class Attribute:
    """An attribute that was replaced, and what is needed to put it back."""

    owner: Any
    name: str
    replacement: Any
    had: bool
    before: Any

    @classmethod
    def replace(cls, owner: Any, name: str, replacement: Any) -> Attribute:
        """Put something in an attribute's place."""
        had = name in vars(owner)
        before = vars(owner).get(name)
        setattr(owner, name, replacement)
        return cls(owner, name, replacement, had, before)

    def is_on(self) -> bool:
        """Tell whether the replacement is still in place."""
        return vars(self.owner).get(self.name) is self.replacement

    def restore(self) -> None:
        """Put back what was there before, unless someone else has replaced it since."""
        if not self.is_on():
            logger.warning(
                "%s of %r was patched by another library while a session was open; its patch "
                "stays on, and calls go through it to the original",
                self.name,
                self.owner,
            )
        elif self.had:
            setattr(self.owner, self.name, self.before)
        else:
            delattr(self.owner, self.name)
