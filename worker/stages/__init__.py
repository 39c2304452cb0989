"""The stages of a run, one module each. None knows the order: the pipeline does."""
