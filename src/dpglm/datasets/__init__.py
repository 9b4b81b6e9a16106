"""Tables shipped with the package."""

from .adult import Adult, load_adult

__all__ = ["Adult", "load_adult"]
