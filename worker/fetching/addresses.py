"""Which addresses are public.

Invariant: the table is ours. ``ipaddress.is_global`` has changed between releases of Python, calls
some multicast global, and follows an embedded address in some forms only.

Sources: the special-purpose address registries of IANA (RFC 6890 and what came later).
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_V4 = {
    "0.0.0.0/8": "unspecified",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a carrier",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's own",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "a relay of 6to4",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_V6 = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "an embedded IPv4 address",
    "::ffff:0:0/96": "an embedded IPv4 address",
    "64:ff9b::/96": "an embedded IPv4 address",
    "64:ff9b:1::/48": "an embedded IPv4 address",
    "2002::/16": "an embedded IPv4 address",
    "2001::/32": "an embedded IPv4 address",
    "2001::/23": "reserved",
    "2001:db8::/32": "documentation",
    "3fff::/20": "documentation",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "private",
    "ff00::/8": "multicast",
}
_GLOBAL_V6 = IPv6Network("2000::/3")
"""The only part of IPv6 that is given out; what lies outside is reserved."""
LOOPBACK = "loopback"
MALFORMED = "malformed"

_V4_KINDS = tuple((IPv4Network(network), kind) for network, kind in _V4.items())
_V6_KINDS = tuple((IPv6Network(network), kind) for network, kind in _V6.items())


def special(address: str) -> str | None:
    """What kind of address it is where it is not public, None for a public one.

    What is no plain address (a name, a zone, an odd spelling) is ``malformed``.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return MALFORMED
    if isinstance(parsed, IPv4Address):
        return next((kind for network, kind in _V4_KINDS if parsed in network), None)
    return _special_v6(parsed)


def is_address(host: str) -> bool:
    """Is this an address in its plain spelling, and no name?"""
    return special(host) != MALFORMED


def _special_v6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return MALFORMED
    found = next((kind for network, kind in _V6_KINDS if address in network), None)
    return found or (None if address in _GLOBAL_V6 else "reserved")
