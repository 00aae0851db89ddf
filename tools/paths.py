#!/usr/bin/env python3
"""Reads the statistics pages of the plugin for NCCL (docs/reference/nccl.md has the layout): Python alone, no package.

    python3 tools/paths.py [FOLDER]          the paths of every job on this machine, a line of JSON each
"""
import fcntl
import ipaddress
import json
import os
import stat
import struct
import sys
import time

HEADER = struct.Struct("<8sIIQIIIIQQQ64s")  # as far as it is read here; 2,048 bytes in all
SLOT = struct.Struct("<IIII16sII13Q")
NAMES = ["bytes", "packets", "retransmitted", "answers", "marks", "losses", "moves", "rtt_least_ns", "rtt_mean_ns",
         "rtt_p99_ns", "window_bytes", "used_at_ns"]
SEQUENCE, WISH, ANSWERED, CODE, WISHED, ANSWER, TEXT = 16, 256, 264, 272, 288, 1056, 768


def open_page(path, access=os.O_RDONLY):
    """Opens a page of this user. Other users may create entries of such a name: a FIFO would block, a link point elsewhere."""
    fd = os.open(path, access | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    of = os.fstat(fd)
    if stat.S_ISREG(of.st_mode) and of.st_uid == os.geteuid() and not of.st_mode & 0o077 and 2048 <= of.st_size <= 1 << 24:
        return fd
    os.close(fd)
    raise PermissionError(f"{path} is no statistics page of this user")


def pages(folder="/dev/shm"):
    """Pages of this user's running processes, each of which holds a lock on its page."""
    for name in sorted(os.listdir(folder)):
        if not name.startswith("anabranch-"):
            continue
        path = os.path.join(folder, name)
        try:
            fd = open_page(path)
        except OSError:
            continue  # a process that has ended meanwhile, or none of ours
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield path
        finally:
            os.close(fd)


def read(path):
    """Reads a page: the scheme, and a dictionary for each path of each connection."""
    fd = open_page(path)
    try:
        for _ in range(200):
            before = os.pread(fd, 8, SEQUENCE)
            page = os.pread(fd, os.fstat(fd).st_size, 0)
            # An odd sequence number: the page is being written. A changed one: it was written meanwhile.
            if before == os.pread(fd, 8, SEQUENCE) and before[0] % 2 == 0:
                break
            time.sleep(0.0005)
        else:
            raise TimeoutError(f"{path} stays half-written")
    finally:
        os.close(fd)
    if len(page) < HEADER.size:
        raise ValueError(f"{path} has been cut short")
    magic, version, header, _, size, _, used, pid, written, no_room, _, scheme = HEADER.unpack_from(page)
    if magic != b"ANABPATH" or version != 1 or header + used * size > len(page):
        raise ValueError(f"{path} is no statistics page of version 1")
    slots = []
    for number in range(used):
        state, label, connection, device, address, port, _, *rest = SLOT.unpack_from(page, header + number * size)
        if state == 0:
            continue
        ip = ipaddress.IPv6Address(address)
        slots.append({"pid": pid, "device": device, "connection": connection, "path": label,
                      "state": {1: "open", 2: "failed", 3: "silent", 4: "fragmented"}[state], "peer": str(ip.ipv4_mapped or ip), "port": port,
                      **dict(zip(NAMES, rest))})
    return {"pid": pid, "scheme": scheme.rstrip(b"\0").decode(), "written_at_ns": written,
            "connections_without_room": no_room, "paths": slots}


def wish(path, settings, patience=3.0):
    """Changes parameters of the scheme in the process that writes this page, for example
    "load_balancer.hopper.th_cong=2"; one tuner at a time. Schemes lose their state of paths."""
    text = settings.encode()
    if len(text) >= TEXT:
        raise ValueError("too long")

    def word(at):
        return struct.unpack("<Q", os.pread(fd, 8, at))[0]

    fd = open_page(path, os.O_RDWR)
    try:
        answered = word(ANSWERED)
        number = max(word(WISH), answered) + 1
        os.pwrite(fd, struct.pack("<Q", answered), WISH)  # no request while it is written
        os.pwrite(fd, text.ljust(TEXT, b"\0"), WISHED)
        os.pwrite(fd, struct.pack("<Q", number), WISH)
        until = time.monotonic() + patience
        while word(ANSWERED) != number:
            if time.monotonic() > until:
                raise TimeoutError(f"{path}: no answer")
            time.sleep(0.005)
        answer = os.pread(fd, TEXT, ANSWER).rstrip(b"\0").decode()
        if word(CODE) != 0:
            raise ValueError(answer)
        return answer
    finally:
        os.close(fd)


if __name__ == "__main__":
    for page in pages(*sys.argv[1:2]):
        for of in read(page)["paths"]:
            print(json.dumps(of))
