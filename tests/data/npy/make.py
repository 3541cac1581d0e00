#!/usr/bin/python3
"""Writes the .npy files beside it, except bf16_ml_dtypes.npy, which
numpy.save(ml_dtypes.bfloat16 array [[1, 2.5, -3], [0, inf, 0.001]]) wrote."""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
MATRIX = np.arange(6).reshape(2, 3)


def save(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)


save("f2", (MATRIX / 4).astype("<f2"))
save("f4_fortran", np.asfortranarray(MATRIX.astype("<f4")))
save("f4_version_2", MATRIX.astype("<f4"), version=(2, 0))
save("f4_empty", np.zeros((0, 3), "<f4"))
save("f4_vector", np.array([0.1, np.nan, -np.inf], "<f4"))
save("f8_scalar", np.array(0.1, "<f8"))
save("u2", np.array([0x3F80, 0xC000], "<u2"))
save("void2", np.array([0x3F80, 0xC000], "<u2").view("V2"))
save("big_endian", MATRIX.astype(">f4"))
save("i4", MATRIX.astype("<i4"))
save("structured", np.zeros(2, [("a", "<f4"), ("b", "<f4")]))
save("rank_9", np.zeros((1,) * 9, "<f4"))
