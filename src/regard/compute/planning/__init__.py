"""From parts and facts to a plan: which backend computes them, and why."""

from regard.compute.planning.plan import BACKENDS, Backend, Plan, Step
from regard.compute.planning.rules import lower

__all__ = ["BACKENDS", "Backend", "Plan", "Step", "lower"]
