"""The classes under Ray's decorator."""

from __future__ import annotations


def undecorated(actor_class):
    """Give the plain class that Ray 2.60 instantiates inside the actor process."""
    return actor_class.__ray_metadata__.modified_class
