"""The ledger: one budget over all fits, days and colleagues (docs/ledger.md, docs/proofs/ledger.md).

Prices are squares of mu, and slacks: they add up however the next fit was chosen. SQLAlchemy is imported when
a ledger is opened.
"""

from .account import Account, Ledger, Reservation, reserve
from .address import VARIABLE, Address, current_account, resolved, suspended
from .extract import extract
from .journal import Entry, State, Terms, verify_export
from .price import Price, Remaining, price_of_epsilon, price_of_mu, price_of_plan

__all__ = [
    "VARIABLE", "Account", "Address", "Entry", "Ledger", "Price", "Remaining", "Reservation", "State",
    "Terms", "current_account", "extract", "price_of_epsilon", "price_of_mu", "price_of_plan", "reserve",
    "resolved", "suspended", "verify_export",
]  # fmt: skip
