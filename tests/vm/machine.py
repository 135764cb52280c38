# SPDX-License-Identifier: Apache-2.0
"""One command in a throw-away Debian machine that has real hidraw, USB and CDC-ACM drivers.

QEMU emulates the processor, so no KVM is needed. The command runs as root on the host's files, which
the machine sees read-only (9p) under a file system in memory: what it writes is lost with it.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from tests.vm.image import QEMU, ensure_image

# quiet: only errors and panics. notests: the crypto self-tests cost 0.7 s of emulation.
_KERNEL_LINE = (
    "console=ttyS0 quiet panic=-1 reboot=t mitigations=off tsc=reliable cryptomgr.notests=1 "
    "rcupdate.rcu_expedited=1 audit=0 lsm= init_on_alloc=0 8250.nr_uarts=1"
)
_MEMORY_MIB = 1536


class Machine:
    """Start it with `with`; `lines` gives what the command prints, `finish` how it ended."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self._command = command
        self._folder = folder
        self._environment = environment

    def __enter__(self) -> Machine:
        image = ensure_image()
        self._job = tempfile.TemporaryDirectory(prefix="thock-vm-")
        job = Path(self._job.name)
        job.joinpath("cmd").write_text(self._script(), encoding="utf-8")
        self._control, control = socket.socketpair()
        self._out, far_out = os.pipe()
        ports = {"ctl": control.fileno(), "out": far_out}
        with job.joinpath("qemu").open("wb") as log:
            self._process = subprocess.Popen(
                _arguments(image, job, ports),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=tuple(ports.values()),
            )  # fmt: skip
        control.close()
        os.close(far_out)
        self._control.sendall(f"{time.time():.0f} {job}\n".encode())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        self._control.close()
        self._job.cleanup()

    def lines(self, silence_s: float) -> Iterator[str]:
        """Every line of the command's output until it ends, or until none came for `silence_s`."""
        rest = b""
        while select.select([self._out], [], [], silence_s)[0]:
            data = os.read(self._out, 1 << 16)
            if not data:
                return
            *whole, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
        self._process.kill()

    def finish(self) -> int | None:
        """Wait for the end. The command's exit status, or None if the machine failed; see `messages`."""
        self._process.wait()
        said = b""
        while data := self._control.recv(4096):
            said += data
        found = re.search(rb"exit (\d+)\n", said)
        return int(found[1]) if found else None

    def messages(self) -> str:
        """The ends of what the command, QEMU and the kernel complained about."""
        parts = []
        for name in ("err", "qemu", "console"):
            path = Path(self._job.name, name)
            if path.exists():
                lines = path.read_text(errors="replace").splitlines()[-40:]
                parts += [f"{name}: {line}" for line in lines]
        return "\n".join(parts)

    def _script(self) -> str:
        variables = [shlex.quote(f"{name}={value}") for name, value in self._environment.items()]
        command = " ".join(map(shlex.quote, self._command))
        folder = shlex.quote(str(self._folder))
        return f"ulimit -n 4096\ncd {folder}\nexec env -i {' '.join(variables)} {command}\n"


def _arguments(image: Path, job: Path, ports: dict[str, int]) -> list[str]:
    return [
        QEMU,
        "-machine", "q35,sata=off,smbus=off,i8042=off,usb=off,vmport=off",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-accel", "tcg,tb-size=256", "-cpu", "max", "-smp", "2", "-m", str(_MEMORY_MIB),
        "-kernel", str(image / "vmlinux"), "-initrd", str(image / "initramfs"),
        "-append", _KERNEL_LINE, "-serial", f"file:{job / 'console'}",
        "-device", "virtio-serial-pci",
        "-chardev", f"socket,id=ctl,fd={ports['ctl']}",
        "-device", "virtserialport,chardev=ctl,name=ctl",
        # append=on: QEMU must not truncate a pipe
        "-add-fd", f"fd={ports['out']},set=1",
        "-chardev", "file,id=out,append=on,path=/dev/fdset/1",
        "-device", "virtserialport,chardev=out,name=out",
        "-chardev", f"file,id=err,path={job / 'err'}",
        "-device", "virtserialport,chardev=err,name=err",
        "-virtfs", "local,path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on",
    ]  # fmt: skip
