"""The pure core: what to decide, never how to do it. No clock, no I/O, no async.

Invariant: everything here is a function of its arguments. Time, ids and randomness come in as
arguments, and what comes out is a value that another package performs.
"""
