"""The record in Redis: runs, effects, leases, claims, the epoch, what is due, budgets, deliveries.

Invariant: each key family has one owning class, with its Lua scripts beside it, and every decision
that two processes could take at once is taken inside one script, by the server's clock.
"""
