"""Receives: webhooks, cron, the clock. Verifies, decides what is asked, enqueues.

Invariants: nothing here writes to GitHub or reads from it; nothing here imports ``worker``, whose
jobs are enqueued by name; an answer of 202 means that what was asked is in the queue for good.
"""
