"""The outside world on loopback, for the demo and the tests. It imports nothing of ours."""
