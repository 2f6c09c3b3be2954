"""The benchmark: which numbered deals results are measured on, and what is proven about each of them."""

from pyramid_env.benchmark.bounds import SHIPPED, Bounds, DealBounds, bounds
from pyramid_env.benchmark.difficulty import Difficulty
from pyramid_env.benchmark.splits import MAX_DEALS, SPLITS, format_deals, may_be_training_deals, parse_deals

__all__ = [
    "MAX_DEALS",
    "SHIPPED",
    "SPLITS",
    "Bounds",
    "DealBounds",
    "Difficulty",
    "bounds",
    "format_deals",
    "may_be_training_deals",
    "parse_deals",
]
