"""The ledger without a server, for stories in virtual time.

Each part is the translation of the part of the same name in ``ledger/``, script by script and rule
by rule; ``tests/ledger`` holds both to the same tests.
"""
