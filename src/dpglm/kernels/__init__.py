"""Compiled code: loops over tables, scores and random words, and the formulas that they share.

Files are imported by those who use them, when they use them: numba is slow to load.
"""
