"""The arrows between the rooms, checked against every #include: usage architecture_test.py ROOT."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())

# What the files of a room may include, by the start of the path. A room may include itself. Generated
# protocol headers ("opserve/v1/...") count as "proto/".
ALLOWED = {
    "proto/codec": [],
    "proto/status": ["proto/opserve/"],
    "proto/dtypes": ["proto/opserve/v1/tensor.pb.h"],
    "ops/abi": ["acl/", "aclnn/", "aclnn_util.h"],
    "ops/catalog": ["proto/", "acl/", "aclnn/", "aclnnop/"],
    "ops/examples": [],
    "ops/host_cann": ["acl/", "aclnn/", "aclnnop/", "aclnn_util.h", "opserve/host_cann.h",
                      "kernels/cpu/kernel.h", "ops/catalog/"],
    "kernels/cpu": [],
    "kernels/ascendc": [],
    "server/config": ["proto/status/"],
    "server/observability": ["proto/"],
    "server/device": ["proto/", "acl/", "aclnn/", "server/observability/"],
    "server/shared_memory": ["proto/", "server/observability/", "server/device/"],
    "server/execution": ["proto/", "ops/catalog/", "aclnn/", "server/observability/",
                         "server/device/", "server/shared_memory/"],
    "server/diagnosis": ["proto/", "ops/catalog/", "acl/", "server/build_commit.h", "server/config/",
                         "server/device/", "server/execution/"],
    "server/scheduling": ["proto/", "server/config/", "server/observability/",
                          "server/device/", "server/execution/"],
    "server/identity": ["proto/status/", "server/config/", "server/observability/",
                        "server/scheduling/tenant_settings.h"],
    "server/access": ["proto/status/", "server/config/", "server/observability/",
                      "server/identity/"],
    "server/rpc": ["proto/", "ops/catalog/", "server/config/", "server/observability/",
                   "server/device/", "server/shared_memory/", "server/execution/",
                   "server/scheduling/", "server/identity/", "server/access/"],
    "server/telemetry": ["proto/", "server/build_commit.h", "server/config/", "server/observability/", "server/device/",
                         "server/shared_memory/", "server/execution/", "server/scheduling/",
                         "server/identity/", "server/access/", "server/rpc/health_service.h",
                         "server/rpc/idempotency_cache.h"],
    "client/cpp": ["proto/"],
    "client/cli/arrays": ["proto/", "client/cpp/"],
    "client/cli/text": ["proto/", "client/cpp/", "client/cli/arrays/"],
    "client/cli/commands": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/"],
    "client/cli/bench": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/", "client/cli/commands/"],
    "client/cli/top": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/", "client/cli/commands/"],
}
# More includes between the folders of client/cli than these would make them one.
MAX_INCLUDES_ACROSS_CLI = 60
OURS = re.compile(r"^(proto|ops|kernels|server|client|tests|acl|aclnn|aclnnop|opserve)/|^aclnn_util")


def includes(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            yield found.group(1)


class ArchitectureTest(unittest.TestCase):

    def test_rooms_include_only_along_the_arrows(self):
        for room, allowed in ALLOWED.items():
            files = [p for p in (ROOT / room).rglob("*") if p.suffix in (".h", ".cc", ".inc")]
            self.assertTrue(files, f"{room} is empty: is the table out of date?")
            for path in files:
                for include in filter(OURS.match, includes(path)):
                    name = re.sub(r"^opserve/v1/", "proto/opserve/v1/", include)
                    if name.startswith((room + "/", *allowed)):
                        continue
                    self.fail(f"{path.relative_to(ROOT)} includes {include}, which {room} must not")

    def test_every_room_has_its_rule(self):
        for top in ("proto", "ops", "kernels", "server", "client", "client/cli"):
            for folder in (ROOT / top).iterdir():
                room = f"{top}/{folder.name}"
                if folder.is_dir() and any(folder.rglob("*.cc")) and room != "client/cli":  # its folders are rooms
                    self.assertIn(room, ALLOWED)

    def test_few_includes_cross_the_folders_of_the_command_line(self):
        cli = ROOT / "client/cli"
        crossing = [f"{path.name}: {include}" for path in cli.rglob("*") if path.suffix in (".h", ".cc")
                    for include in includes(path)
                    if include.startswith("client/cli/") and not include.startswith(f"client/cli/{path.parent.name}/")]
        self.assertTrue(crossing)
        self.assertLessEqual(len(crossing), MAX_INCLUDES_ACROSS_CLI, crossing)

    def test_the_daemon_has_no_sources_beside_its_rooms(self):
        sources = {path.name for path in (ROOT / "server").glob("*.*") if path.suffix in (".h", ".cc")}
        self.assertEqual(sources, {"main.cc", "daemon.h", "daemon.cc", "build_commit.h"})

    def test_kernels_use_nothing_but_the_standard_library(self):
        for path in (ROOT / "kernels/cpu").rglob("*"):
            if path.suffix in (".h", ".cc"):
                self.assertNotRegex(path.read_text(encoding="utf-8"), r"absl/|grpc|acl/acl")


if __name__ == "__main__":
    unittest.main()
