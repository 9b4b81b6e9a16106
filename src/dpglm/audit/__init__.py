"""Audits: lower bounds on the epsilon that is really spent, from what mechanisms and estimators put out.

An audit can refute a claim, never prove it: what it cannot show is in the documentation.
"""

from .auditor import audit, audit_function, audit_outputs, audit_probabilities, examine
from .findings import Claim, Finding, Report
from .registry import audit_registry

__all__ = [
    "Claim",
    "Finding",
    "Report",
    "audit",
    "audit_function",
    "audit_outputs",
    "audit_probabilities",
    "audit_registry",
    "examine",
]
