"""Sockets to serve from."""

import socket


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that says it is TCP: asyncio switches Nagle's algorithm off only for
    those, and without that each answer waits 40 ms for the client's delayed acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener
