"""Executes runs: RQ jobs, the pipeline, the agent, GitHub."""
