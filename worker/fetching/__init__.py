"""The web behind ``worker.ports.Fetcher``: bounded, public addresses only, robots.txt honoured."""

from worker.fetching.bounds import Bounds
from worker.fetching.fetcher import HttpFetcher
from worker.fetching.network import Network, SystemNetwork

__all__ = ["Bounds", "HttpFetcher", "Network", "SystemNetwork"]
