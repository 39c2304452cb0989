"""The proof that the promise holds: what ``script/simulate`` runs, and its report."""
