"""Installations of CANN as they are laid out, arranged of the host CANN's libraries."""

import os
import pathlib
import platform
import shutil

CUSTOM = "op_api/lib/libcust_opapi.so"
BUILT_IN = f"built-in/op_impl/ai_core/tbe/op_api/lib/linux/{platform.machine()}/libopapi.so"


class Installation:
    """A directory that becomes one; `host` is where the host CANN's libraries are."""

    def __init__(self, home, host):
        self.home = pathlib.Path(home)
        self.host = pathlib.Path(host)

    def put(self, library, *places):
        """The host CANN's library, under the names that these paths have in the installation."""
        for place in places:
            path = self.home / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.host / library, path)
        return self

    def write(self, place, text):
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self

    def take_away(self, place, *functions):
        """An older library: these functions have other names in it."""
        path = self.home / place
        library = path.read_bytes()
        for function in functions:
            name = b"\0" + function.encode() + b"\0"
            assert library.count(name) >= 1, function
            library = library.replace(name, b"\0x" + name[2:])
        path.write_bytes(library)
        return self

    def kernels(self, place="lib64"):
        """What the operator libraries themselves need."""
        return self.put("libopserve_kernels.so", f"{place}/libopserve_kernels.so")

    def old_runtime(self):
        return (self.put("libascendcl.so", "lib64/libascendcl.so")
                .put("libnnopbase.so", "lib64/libnnopbase.so").kernels())

    def new_runtime(self):
        return (self.put("libascendcl.so", "lib64/libacl_rt.so")
                .put("libnnopbase.so", "lib64/libnnopbase.so").kernels())

    def one_library(self):
        return self.put("libopapi.so", "lib64/libopapi.so")

    def split_libraries(self):
        """libopapi_math.so has what the host CANN has in its custom package."""
        return (self.put("libcust_opapi.so", "lib64/libopapi_math.so")
                .put("libopapi.so", "lib64/libopapi_nn.so"))

    def custom_package(self, vendor="custom_nn", listed=True):
        self.put("libcust_opapi.so", f"opp/vendors/{vendor}/{CUSTOM}")
        if listed:
            self.write("opp/vendors/config.ini", f"load_priority={vendor}\n")
        return self


def environment(**variables):
    """This process's, with no CANN in it but what `variables` say."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND_")}
    return {**clean, "OPSERVE_HOST_DEVICES": "1", **variables}
