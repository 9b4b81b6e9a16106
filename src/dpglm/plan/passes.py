"""How often a plan reads the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PassCount:
    """A number of passes over the table, or about how many and at most how many there will be.

    Attributes
    ----------
    usual : int
        How many there usually are.
    most : int
        There are never more.
    """

    usual: int
    most: int

    @classmethod
    def exactly(cls, count: int) -> PassCount:
        """A number that is known beforehand."""
        return cls(count, count)

    @property
    def is_exact(self) -> bool:
        """Whether the number is known beforehand; if not, it depends on the records."""
        return self.usual == self.most

    def times(self, count: int) -> PassCount:
        """So many times as many passes."""
        return PassCount(self.usual * count, self.most * count)

    def __str__(self) -> str:
        return f"{self.most:,}" if self.is_exact else f"about {self.usual:,}, at most {self.most:,}"
