# SPDX-License-Identifier: Apache-2.0
"""Kernel and first file system of the test machine, made of Debian packages that are unpacked, never installed.

Everything is fetched on first use (80 MB) into a cache folder and kept there. Nothing runs as root for it.
"""

from __future__ import annotations

import glob
import lzma
import os
import platform
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

QEMU = "qemu-system-x86_64"

# Loaded before anything runs, each after those that it depends on.
MODULES = (
    *("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"),  # the machine itself
    *("uhid", "hid-generic", "evdev", "usbhid", "cdc-acm"),  # what a desktop has
    *("libcomposite", "usb_f_hid", "usb_f_acm", "dummy_hcd"),  # USB devices made by software
)
MODULE_OPTIONS = {"dummy_hcd": "num=2"}  # USB ports, for two boards at a time

APPLETS = [
    "sh",
    "mount",
    "umount",
    "insmod",
    "mkdir",
    "cat",
    "chroot",
    "reboot",
    "ifconfig",
    "dmesg",
    "ln",
    "date",
]
# udevd, what it is linked to, and the rules that let the user in front of the screen in.
UDEV_PACKAGES = [
    "udev",
    "systemd",
    "libkmod2",
    "libblkid1",
    "libacl1",
    "libselinux1",
    "libcap2",
    "liblzma5",
    "libzstd1",
    "libpcre2-8-0",
    "libudev1",
]

INIT = r"""#!/bin/sh
# Process 1 of the machine: mounts the host's files read-only under a memory file system, runs the job.
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
while read m; do insmod /m/$m; done < /modules
for p in /sys/class/virtio-ports/*; do ln -s /dev/${p##*/} /ports/$(cat $p/name); done
ifconfig lo 127.0.0.1 up
exec 3<>/ports/ctl
read now job <&3
date -s @$now >/dev/null
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /lower
mount -t tmpfs -o size=50% tmpfs /rw; mkdir /rw/u /rw/w
mount -t overlay -o lowerdir=/lower,upperdir=/rw/u,workdir=/rw/w overlay /new
for d in proc sys dev; do mount -o bind /$d /new/$d; done
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts devpts /new/dev/pts; mount -t tmpfs tmpfs /new/dev/shm; mount -t tmpfs tmpfs /new/run
mount -t configfs none /new/sys/kernel/config
chroot /new /bin/sh $job/cmd </dev/null >/ports/out 2>/ports/err 3>&-
echo exit $? >&3
reboot -f
"""


class ImageError(RuntimeError):
    """The image cannot be made here; the message says why."""


def cache_folder() -> Path:
    """Where kernel and packages are kept; THOCK_VM_CACHE names another place."""
    return Path(os.environ.get("THOCK_VM_CACHE", user_cache_path("thock", appauthor=False) / "vm"))


def why_impossible() -> str:
    """Why no machine can run here; empty if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "the test machine needs Linux on x86-64"
    missing = [tool for tool in (QEMU, "apt-get", "dpkg") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} missing: apt-get install --no-install-recommends qemu-system-x86"
    return ""


def ensure_image() -> Path:
    """The cache folder with `vmlinux`, `initramfs` and `udev/` in it.

    Raises:
        ImageError: the packages cannot be fetched.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):
        if (cache / "initramfs").exists():
            return cache
        with tempfile.TemporaryDirectory(dir=cache) as work:
            _build(Path(work), cache)
    return cache


def _build(work: Path, cache: Path) -> None:
    meta = _run("apt-cache", "depends", "linux-image-amd64")
    found = re.search(r"Depends: (linux-image-\S+)", meta)
    if found is None:
        raise ImageError("apt offers no linux-image-amd64: run apt-get update on Debian")
    options = ("-q", "-o", "APT::Sandbox::User=root")
    _run("apt-get", *options, "download", found[1], "busybox-static", *UDEV_PACKAGES, cwd=work)
    kernel, udev = work / "kernel", work / "udev"
    for package in work.glob("*.deb"):
        own = package.name.startswith(("linux-image", "busybox"))
        _run("dpkg", "-x", str(package), str(kernel if own else udev))
    (work / "vmlinux").write_bytes(_vmlinux(next((kernel / "boot").glob("vmlinuz-*")).read_bytes()))
    (work / "initramfs").write_bytes(_initramfs(kernel))
    shutil.rmtree(cache / "udev", ignore_errors=True)
    for name in ("udev", "vmlinux", "initramfs"):  # the last one says that all are there
        (work / name).rename(cache / name)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise ImageError(f"{command[0]} failed (run apt-get update first?): {last}")
    return done.stdout


def _vmlinux(image: bytes) -> bytes:
    """The ELF kernel in a bzImage. QEMU starts it by its PVH note, which saves the emulated processor
    5 s of decompression (Linux Documentation/arch/x86/boot.rst: setup_sects, payload_offset)."""
    offset, size = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * 512 + offset
    return lzma.LZMADecompressor().decompress(image[start : start + size])


def _initramfs(kernel: Path) -> bytes:
    folder, program, link = 0o40755, 0o100755, 0o120777
    entries = [
        (name, folder, b"")
        for name in ["bin", "m", "dev", "proc", "sys", "lower", "rw", "new", "ports"]
    ]
    entries += [
        ("bin/busybox", program, (kernel / "bin/busybox").read_bytes()),
        ("init", program, INIT.encode()),
    ]
    entries += [(f"bin/{applet}", link, b"busybox") for applet in APPLETS]
    lines = []
    for name, path in _modules(kernel).items():
        entries.append((f"m/{name}.ko", 0o100644, path.read_bytes()))
        lines.append(f"{name}.ko {MODULE_OPTIONS.get(name, '')}".strip())
    entries.append(("modules", 0o100644, ("\n".join(lines) + "\n").encode()))
    return _cpio(entries)


def _modules(kernel: Path) -> dict[str, Path]:
    """The modules by name, each after its dependencies."""
    pattern = str(kernel / "lib/modules/*/kernel/**/*.ko")
    paths = {Path(p).stem.replace("-", "_"): Path(p) for p in glob.glob(pattern, recursive=True)}
    order: dict[str, Path] = {}

    def add(name: str) -> None:
        name = name.replace("-", "_")
        if name in order:
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", paths[name].read_bytes())
        for other in depends[1].decode().split(",") if depends else []:
            if other:
                add(other)
        order[name] = paths[name]

    for name in MODULES:
        add(name)
    return order


def _cpio(entries: list[tuple[str, int, bytes]]) -> bytes:
    """A "newc" archive of (name, mode, content); Linux Documentation/driver-api/early-userspace."""
    archive = bytearray()
    for inode, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        archive += b"070701" + b"".join(b"%08X" % value for value in fields)
        for part in (name.encode() + b"\0", content):
            archive += part + b"\0" * (-(len(archive) + len(part)) % 4)
    return bytes(archive)
