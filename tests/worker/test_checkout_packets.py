"""Git's protocol: what is asked, and how an answer is taken apart however it arrives."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.checkout.packets import (
    Garbled,
    Mark,
    Packets,
    PackReader,
    RefusedBySide,
    ask_for,
    can_filter,
)

COMMIT = "1" * 40
OFFERED = "version 2", "agent=git/2", "ls-refs", "fetch=shallow filter", "object-format=sha1"
NOT_OURS = f"upload-pack: not our ref {COMMIT}"


def packet(content: bytes) -> bytes:
    return b"%04x" % (len(content) + 4) + content


def offer(*lines: str) -> bytes:
    head = packet(b"# service=git-upload-pack\n") + b"0000"
    return head + b"".join(packet(f"{line}\n".encode()) for line in lines) + b"0000"


def answer(*bands: bytes) -> bytes:
    head = packet(b"shallow-info\n") + packet(f"shallow {COMMIT}".encode()) + b"0001"
    return head + packet(b"packfile\n") + b"".join(map(packet, bands)) + b"0000"


def test_what_is_asked() -> None:
    """One commit without its past, and only blobs that will be written: less than one byte more
    than the largest."""
    assert ask_for(COMMIT, blob_bytes=1000) == (
        b"0012command=fetch\n0017object-format=sha1\n0001"
        b"0010no-progress\n000eofs-delta\n"
        + f"0032want {COMMIT}\n".encode()
        + b"000ddeepen 1\n001bfilter blob:limit=1001\n0009done\n0000"
    )
    assert b"filter" not in ask_for(COMMIT, blob_bytes=None)


@given(
    data=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=30)), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_however_it_is_cut(data: list[tuple[int, bytes]], cuts: list[int]) -> None:
    """The pack is what came in the first band, at whatever byte the network cuts."""
    whole = answer(*(bytes([band]) + text for band, text in data))
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = PackReader()
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    pack = b"".join(reader.feed(piece) for piece in pieces)
    assert pack == b"".join(text for band, text in data if band == 1)
    assert reader.done


@given(end=st.integers(0, len(answer(b"\x01PACK", b"\x02so much")) - 1))
def test_what_ends_early_is_not_done(end: int) -> None:
    """Whole is what ends with the last mark."""
    reader = PackReader()
    reader.feed(answer(b"\x01PACK", b"\x02so much")[:end])
    assert not reader.done


@pytest.mark.parametrize(
    "said", [packet(f"ERR {NOT_OURS}".encode()), answer(b"\x03" + NOT_OURS.encode())]
)
def test_refusals_in_the_protocol(said: bytes) -> None:
    """Before the pack, and in its midst."""
    with pytest.raises(RefusedBySide, match="not our ref"):
        PackReader().feed(said)


@given(st.binary(max_size=60))
def test_noise_is_told(noise: bytes) -> None:
    """Whatever comes, it is packets, or it is told: no other error leaves."""
    try:
        found = list(Packets().feed(noise))
    except Garbled:
        return
    assert all(isinstance(each, (bytes, Mark)) for each in found)


@pytest.mark.parametrize("length", [b"0003", b"zzzz", b"+004", b" 004", b"0x05", b"-001", b"1_00"])
def test_lengths_that_are_none(length: bytes) -> None:
    """Four hex digits, nothing that Python would read as a number besides."""
    with pytest.raises(Garbled):
        list(Packets().feed(length + b"content"))


def test_what_a_server_offers() -> None:
    """Filters where it has them; what cannot be worked with is told by name."""
    assert can_filter(offer(*OFFERED))
    assert can_filter(offer(*OFFERED).partition(b"0000")[2])
    assert not can_filter(offer("version 2", "fetch=shallow"))
    for lines, words in (
        ((f"{COMMIT} HEAD",), "version 2"),
        (("version 2", "fetch=filter"), "single commit"),
        (("version 2", "ls-refs"), "single commit"),
        ((*OFFERED, "object-format=sha256"), "SHA-1"),
    ):
        with pytest.raises(Garbled, match=words):
            can_filter(offer(*lines))
    with pytest.raises(Garbled):
        can_filter(b"<!DOCTYPE html>")
