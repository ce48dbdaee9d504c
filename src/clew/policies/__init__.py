"""Context policies: when a view is compacted, and into what."""

from clew.policies.guard import REASONS, Guarded
from clew.policies.registry import Listing, available, linear, pi, policy, qitos

__all__ = ["REASONS", "Guarded", "Listing", "available", "linear", "pi", "policy", "qitos"]
