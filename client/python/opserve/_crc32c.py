"""CRC32C (Castagnoli) with numpy, for the chunks of resident tensors.

A checksum is linear: that of two neighbouring blocks is that of the left one, moved on by the
length of the right one, plus that of the right one. So neighbours are combined in pairs, all
pairs of a level in one numpy operation.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF

_Words = npt.NDArray[np.uint32]


def crc32c(data: Any) -> int:
    """Of the bytes of a buffer. About a gigabyte per second."""
    octets = np.frombuffer(data, np.uint8)
    size = octets.size
    missing = -size % 4
    if missing:  # zeros in front change nothing
        octets = np.concatenate((np.zeros(missing, np.uint8), octets))
    words: _Words = octets.view("<u4").astype(np.uint32, copy=False)
    level = 2  # 2**level bytes in each word
    while words.size > 1:
        if words.size % 2:
            words = np.concatenate((np.zeros(1, np.uint32), words))
        words = _advance(words[0::2], level) ^ words[1::2]
        level += 1
    # A word is what the checksum takes in; the checksum is that, moved on by its four bytes.
    crc = int(_advance(words, 2)[0]) if words.size else 0
    return crc ^ _advance_by(_ONES, size) ^ _ONES


def _advance(states: _Words, level: int) -> _Words:
    """Moved on by 2**level zero bytes."""
    low, high = _tables(level)
    advanced: _Words = low[states & 0xFFFF] ^ high[states >> 16]
    return advanced


def _advance_by(state: int, size: int) -> int:
    for level in range(size.bit_length()):
        if size >> level & 1:
            state = int(_advance(np.array([state], np.uint32), level)[0])
    return state


@functools.lru_cache(maxsize=None)
def _columns(level: int) -> tuple[int, ...]:
    """What becomes of each single bit when it moves on by 2**level bytes."""
    if level == 0:
        columns = []
        for bit in range(32):
            state = 1 << bit
            for _ in range(8):
                state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
            columns.append(state)
        return tuple(columns)
    half = _columns(level - 1)
    return tuple(_apply(half, column) for column in half)


def _apply(columns: tuple[int, ...], state: int) -> int:
    result = 0
    for bit in range(32):
        if state >> bit & 1:
            result ^= columns[bit]
    return result


@functools.lru_cache(maxsize=None)
def _tables(level: int) -> tuple[_Words, _Words]:
    columns = _columns(level)
    return _table(columns[:16]), _table(columns[16:])


def _table(columns: tuple[int, ...]) -> _Words:
    table = np.zeros(1, np.uint32)
    for column in columns:
        table = np.concatenate((table, table ^ np.uint32(column)))
    return table
