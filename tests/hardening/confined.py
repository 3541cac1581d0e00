"""Runs a command as a container would: a read-only file system, no rights, only the profile's system calls.

usage: confined.py PROFILE WRITABLE_DIRECTORY COMMAND...
       confined.py PROFILE WRITABLE_DIRECTORY --probe   tries what is forbidden, one line for each that worked

The file system is made read-only, and the user changed, only where that is permitted.
"""

import ctypes
import errno
import json
import os
import sys

import seccomp

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534

AT_FDCWD, AT_RECURSIVE = -100, 0x8000
CAP_SYS_ADMIN = 21
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MOUNT_ATTR_RDONLY = 1
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 8, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SYS_MOUNT_SETATTR = 442  # the same on all architectures

ACTIONS = {"SCMP_ACT_ALLOW": seccomp.ALLOW}
OPERATIONS = {"SCMP_CMP_EQ": seccomp.EQ, "SCMP_CMP_MASKED_EQ": seccomp.MASKED_EQ}


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def may_mount():
    """Containers seldom let even root."""
    with open("/proc/self/status") as file:
        rights = next(line for line in file if line.startswith("CapEff:"))
    return int(rights.split()[1], 16) >> CAP_SYS_ADMIN & 1 == 1


def set_read_only(path, is_read_only):
    attributes = MountAttributes()
    setattr(attributes, "set" if is_read_only else "clear", MOUNT_ATTR_RDONLY)
    checked(LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE,
                         ctypes.byref(attributes), ctypes.sizeof(attributes)), f"mount {path}")


def make_read_only(writable):
    checked(LIBC.unshare(CLONE_NEWNS), "unshare")
    checked(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    path = writable.encode()
    checked(LIBC.mount(path, path, None, MS_BIND, None), f"mount {writable}")
    set_read_only("/", True)
    set_read_only(writable, False)


def give_up_rights():
    capability = 0
    while LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def load_profile(path):
    with open(path) as file:
        profile = json.load(file)
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    rules = seccomp.SyscallFilter(seccomp.ERRNO(profile["defaultErrnoRet"]))
    for group in profile["syscalls"]:
        action = (seccomp.ERRNO(group["errnoRet"]) if group["action"] == "SCMP_ACT_ERRNO"
                  else ACTIONS[group["action"]])
        arguments = [seccomp.Arg(a["index"], OPERATIONS[a["op"]], a["value"], a.get("valueTwo", 0))
                     for a in group.get("args", [])]
        for name in group["names"]:
            try:
                rules.add_rule(action, name, *arguments)
            except (RuntimeError, OSError):  # a call of another architecture
                continue
    rules.load()


def probe():
    """What an intruder would try."""
    attempts = {
        "ptrace": lambda: LIBC.ptrace(0, 0, None, None),
        "mount": lambda: LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "unshare": lambda: LIBC.unshare(CLONE_NEWUSER),
        "fork": lambda: LIBC.syscall(57) if os.uname().machine == "x86_64" else forbidden(),
        "setuid": lambda: LIBC.setuid(0),
        "raw packets": lambda: LIBC.socket(17, 3, 0),
        "kill others": lambda: LIBC.kill(1, 0),
        "another process's memory": lambda: LIBC.process_vm_readv(os.getppid(), None, 0, None, 0, 0),
        "keys": lambda: LIBC.syscall(250) if os.uname().machine == "x86_64" else forbidden(),
        "io_uring": lambda: LIBC.syscall(425, 8, None),
        "bpf": lambda: LIBC.syscall(321) if os.uname().machine == "x86_64" else forbidden(),
        "core dumps": lambda: LIBC.prctl(4, 1, 0, 0, 0),
    }

    def forbidden():
        ctypes.set_errno(errno.EPERM)
        return -1

    for name, attempt in attempts.items():
        ctypes.set_errno(0)
        result = attempt()
        if result != -1 or ctypes.get_errno() != errno.EPERM:
            os.write(1, f"{name}: {result}, {os.strerror(ctypes.get_errno())}\n".encode())
    os.write(1, b"probed\n")
    os._exit(0)


def main():
    profile, writable, *command = sys.argv[1:]
    if may_mount():
        make_read_only(writable)
    if os.geteuid() == 0:
        give_up_rights()
    checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    load_profile(profile)
    if command == ["--probe"]:
        probe()
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
