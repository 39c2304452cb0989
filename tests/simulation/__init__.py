"""Stories of runs against the sandbox GitHub and a real ledger."""
