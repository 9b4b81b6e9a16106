"""The ledger: one budget over all fits, days and colleagues (docs/ledger.md, docs/proofs/ledger.md).

Prices are squares of mu, and slacks: they add up however the next fit was chosen. SQLAlchemy is imported when
a ledger is opened.
"""

from .account import Account
from .address import Address
from .chain import State, Terms
from .default import VARIABLE, resolved
from .entry import Entry
from .export import verify_export
from .extract import extract
from .fits import Reservation, reserve
from .ledger import Ledger
from .left import Left
from .price import Price, price_of_epsilon, price_of_mu, price_of_plan

__all__ = [
    "VARIABLE", "Account", "Address", "Entry", "Ledger", "Left", "Price", "Reservation", "State", "Terms",
    "extract", "price_of_epsilon", "price_of_mu", "price_of_plan", "reserve", "resolved", "verify_export",
]  # fmt: skip
