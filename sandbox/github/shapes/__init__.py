"""GitHub's JSON, built from the state. One module per noun; no decisions here."""
