"""Tables that ship with dpglm."""

from .adult import Adult, RawAdult, load_adult, write_adult

__all__ = ["Adult", "RawAdult", "load_adult", "write_adult"]
