"""Small cassettes made of large ones, for git and for bug reports."""

from rollout_cassettes.shrinking.shrunk import Shrunk, shrink

__all__ = ["Shrunk", "shrink"]
