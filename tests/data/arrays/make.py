#!/usr/bin/python3
"""Writes the files of arrays beside it, except bf16_ml_dtypes.npy, which
numpy.save(ml_dtypes.bfloat16 array [[1, 2.5, -3], [0, inf, 0.001]]) wrote."""
import json
import pathlib
import struct

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

ARRAYS = {"self": MATRIX.astype("<f4"), "target": np.asfortranarray(MATRIX.astype("<f8")),
          "bits": np.array([0x3F80, 0xC000], "<u2")}
np.savez(HERE / "stored.npz", **ARRAYS)
np.savez_compressed(HERE / "compressed.npz", **ARRAYS)
np.savez(HERE / "single.npz", any=np.array(0.5, "<f4"))


def save_tensors(name, tensors, **changes):
    """Writes NAME.safetensors; `changes` replace parts of what the header says of "self"."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for key, (dtype, array) in tensors.items():
        header[key] = {"dtype": dtype, "shape": array.shape,
                       "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    header["self"].update(changes)
    text = json.dumps(header).encode()
    (HERE / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


TENSORS = {"self": ("F32", MATRIX.astype("<f4")), "half": ("F16", MATRIX.astype("<f2")),
           "bf16": ("BF16", np.array([0x3F80, 0xC000], "<u2")), "f8": ("F64", np.array(0.1, "<f8"))}
save_tensors("several", TENSORS)
save_tensors("other_dtype", TENSORS, dtype="I32")
save_tensors("other_shape", TENSORS, shape=[2, 4])
save_tensors("beyond_the_end", {"self": TENSORS["self"]}, data_offsets=[100, 124])
save_tensors("no_place", TENSORS, data_offsets=[24])
