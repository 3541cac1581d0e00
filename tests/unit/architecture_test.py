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
    "proto/session": ["proto/codec/"],
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
    "server/device/acl": ["proto/", "acl/", "aclnn/"],
    "server/device/memory": ["proto/", "acl/", "server/observability/", "server/device/acl/"],
    "server/device": ["proto/", "acl/", "aclnn/", "server/observability/"],
    "server/shared_memory": ["proto/", "server/observability/", "server/device/",
                             "server/net/file_descriptor.h"],
    "server/program": ["proto/", "ops/catalog/", "aclnn/", "server/observability/", "server/device/",
                       "server/shared_memory/"],
    "server/run": ["proto/", "ops/catalog/", "aclnn/", "server/observability/", "server/device/",
                   "server/shared_memory/", "server/program/"],
    "server/diagnosis": ["proto/", "ops/catalog/", "acl/", "server/build_commit.h", "server/config/",
                         "server/device/", "server/program/", "server/run/"],
    "server/schedule/policy": ["proto/status/", "server/observability/", "server/device/memory/pinned_allowance.h"],
    "server/schedule/lanes": ["proto/", "server/config/", "server/observability/", "server/device/", "server/program/",
                              "server/run/", "server/schedule/policy/"],
    "server/identity": ["proto/status/", "server/config/", "server/observability/",
                        "server/schedule/policy/tenant_settings.h"],
    "server/net": ["proto/status/", "server/config/", "server/observability/"],
    "server/request": ["proto/", "server/observability/", "server/device/", "server/shared_memory/", "server/program/",
                       "server/run/", "server/schedule/", "server/identity/"],
    "server/grpc": ["proto/", "server/config/", "server/observability/", "server/device/", "server/run/",
                    "server/identity/", "server/net/", "server/request/"],
    # Protocols. A session carries the native protocol's requests, and a deposit its tensors and programs.
    "server/native": ["proto/", "server/observability/", "server/program/", "server/run/", "server/schedule/",
                      "server/identity/", "server/request/", "server/grpc/"],
    "server/session": ["proto/", "server/observability/", "server/program/", "server/run/", "server/schedule/",
                       "server/request/", "server/grpc/", "server/native/"],
    "server/deposit": ["proto/", "server/config/", "server/observability/", "server/run/", "server/schedule/",
                       "server/identity/", "server/net/", "server/request/", "server/grpc/", "server/native/"],
    "server/kserve": ["proto/codec/", "proto/dtypes/", "proto/status/", "proto/opserve/v1/operator.pb.h",
                      "ops/catalog/", "server/observability/", "server/shared_memory/", "server/program/",
                      "server/run/", "server/schedule/", "server/request/", "server/grpc/"],
    "server/shm": ["proto/", "server/config/", "server/observability/", "server/shared_memory/", "server/identity/",
                   "server/net/", "server/grpc/"],
    "server/admin": ["proto/", "server/config/", "server/observability/", "server/schedule/",
                     "server/identity/audit.h", "server/net/", "server/grpc/"],
    "server/listeners": ["proto/", "ops/catalog/", "server/config/", "server/observability/", "server/program/",
                         "server/run/", "server/schedule/", "server/net/", "server/request/", "server/grpc/",
                         "server/native/", "server/session/", "server/deposit/", "server/kserve/"],
    "server/telemetry/http": ["proto/status/", "server/net/"],
    "server/telemetry/status_page": [],
    "server/telemetry": ["proto/", "server/build_commit.h", "server/config/", "server/observability/", "server/device/",
                         "server/shared_memory/", "server/program/", "server/run/", "server/schedule/",
                         "server/identity/", "server/net/", "server/grpc/health_service.h",
                         "server/native/known_requests.h", "server/request/idempotency_cache.h"],
    "client/cpp": ["proto/"],
    "client/cli/arrays": ["proto/", "client/cpp/"],
    "client/cli/text": ["proto/", "client/cpp/", "client/cli/arrays/"],
    "client/cli/commands": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/"],
    "client/cli/bench": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/", "client/cli/commands/"],
    "client/cli/top": ["proto/", "client/cpp/", "client/cli/arrays/", "client/cli/text/", "client/cli/commands/"],
}
# Rooms that know no protocol: neither gRPC nor a message of the wire, but for the words that all protocols share.
WITHOUT_PROTOCOL = ["server/config", "server/observability", "server/device", "server/shared_memory", "server/program",
                    "server/run", "server/diagnosis", "server/schedule", "server/identity", "server/request"]
SHARED_WORDS = {"opserve/v1/tensor.pb.h", "opserve/v1/operator.pb.h", "opserve/v1/error.pb.h"}
PROTOCOL = re.compile(r"^(grpc|grpcpp|opserve/v1|inference)/")
# More includes between the folders of client/cli than these would make them one.
MAX_INCLUDES_ACROSS_CLI = 60
OURS = re.compile(r"^(proto|ops|kernels|server|client|tests|acl|aclnn|aclnnop|opserve)/|^aclnn_util")


def includes(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            yield found.group(1)


def sources(room):
    return [path for path in (ROOT / room).rglob("*") if path.suffix in (".h", ".cc", ".inc")]


def circles(arrows):
    """What is left when all that leads nowhere is taken away, again and again."""
    while ends := {name for name, to in arrows.items() if not to}:
        arrows = {name: to - ends for name, to in arrows.items() if name not in ends}
    return arrows


class ArchitectureTest(unittest.TestCase):

    def test_rooms_include_only_along_the_arrows(self):
        for room, allowed in ALLOWED.items():
            files = sources(room)
            self.assertTrue(files, f"{room} is empty: is the table out of date?")
            for path in files:
                for include in filter(OURS.match, includes(path)):
                    name = re.sub(r"^opserve/v1/", "proto/opserve/v1/", include)
                    if name.startswith((room + "/", *allowed)):
                        continue
                    self.fail(f"{path.relative_to(ROOT)} includes {include}, which {room} must not")

    def test_nothing_below_a_protocol_knows_it(self):
        for room in WITHOUT_PROTOCOL:
            waiting = sources(room)
            reached = set(waiting)
            while waiting:  # also by the headers that they include
                path = waiting.pop()
                for include in includes(path):
                    self.assertFalse(PROTOCOL.match(include) and include not in SHARED_WORDS,
                                     f"{room} reaches {include} by {path.relative_to(ROOT)}")
                    header = ROOT / include
                    if header.is_file() and header not in reached:
                        reached.add(header)
                        waiting.append(header)

    def test_no_circle_between_rooms(self):
        def room_of(name):
            return max((room for room in ALLOWED if name.startswith(room + "/")), key=len, default=None)
        arrows = {room: {room_of(i) for path in sources(room) for i in includes(path)} - {room, None}
                  for room in ALLOWED}
        self.assertFalse(circles(arrows), "these include one another, or such as do")

    def test_no_circle_between_files(self):
        files = {str(path.relative_to(ROOT)): path for room in ALLOWED for path in sources(room)}
        arrows = {name: {i for i in includes(path) if i in files} for name, path in files.items()}
        self.assertFalse(circles(arrows), "these include one another, or such as do")

    def test_every_room_has_its_rule(self):
        for top in ("proto", "ops", "kernels", "server", "client", "client/cli"):
            for folder in (ROOT / top).iterdir():
                room = f"{top}/{folder.name}"
                if not any(folder.rglob("*.cc")) or room == "client/cli":
                    continue
                rooms = {room}
                if room not in ALLOWED and not any(folder.glob("*.cc")):  # its folders are rooms
                    rooms = {f"{room}/{below.name}" for below in folder.iterdir() if any(below.rglob("*.cc"))}
                self.assertLessEqual(rooms, set(ALLOWED))

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
