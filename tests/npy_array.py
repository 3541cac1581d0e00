"""Arrays in files, for tests that run the command line."""

import struct


def save_array(path, values):
    """A float32 .npy file of one axis, written by hand: no numpy needed."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}f", *values))
