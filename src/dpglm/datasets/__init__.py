"""Tables that ship with dpglm."""

from .adult import Adult, load_adult
from .raw_adult import RawAdult, write_adult

__all__ = ["Adult", "RawAdult", "load_adult", "write_adult"]
