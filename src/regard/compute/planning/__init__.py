"""From parts and facts to a plan: which backend computes them, and why."""

from regard.compute.planning.plan import BACKENDS, Backend, Plan, PlanStep
from regard.compute.planning.rules import make_plan

__all__ = ["BACKENDS", "Backend", "Plan", "PlanStep", "make_plan"]
