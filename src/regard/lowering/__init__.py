"""From parts and facts to a plan: which backend computes them, and why."""

from regard.lowering.plan import BACKENDS, Backend, Plan, Step
from regard.lowering.rules import lower

__all__ = ["BACKENDS", "Backend", "Plan", "Step", "lower"]
