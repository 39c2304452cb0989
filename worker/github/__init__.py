"""GitHub: the reader and the writer behind ``worker.ports``, over one connection.

Invariant: githubkit signs and connects; nothing here uses its retries, its cache or its models.
"""
