"""One program at a time changes a chunk of Zarr: a lock is a file beside it.

Invariants
- Who made the file has the lock, until it removes it.
- A lock whose program died on this host is taken away by those who wait; of another host nobody can tell, and waiting ends with an error that names it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import Any

from . import _service

#: Seconds that one program may have a chunk while others wait for it.
_PATIENCE = 10.0
#: Seconds between two looks at who has a lock.
_LOOK = 0.2
#: The named value of a lock that says who has it.
_HOLDER = "pario.holder"


def _place() -> str:
    """The boot of this host, and the numbers of processes that mean the same."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return uuid.uuid4().hex


def _start(pid: int) -> str | None:
    """When a process began, in the words of the kernel; nothing if it is no more."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else fields[18]


def _is_dead(holder: dict[str, Any]) -> bool:
    return bool(holder.get("place") == _place() and _start(holder["pid"]) != holder["start"])


class ChunkLock:
    """The lock of one chunk: :meth:`take` until it says yes, with :meth:`pause` in between, then :meth:`release`."""

    def __init__(self, service: _service.Service, path: str) -> None:
        self._connection = service.connection
        self.path = path
        self._parent, _, name = path.rpartition("/")
        self.file = f"{self._parent}/.writing-lock-{name}"
        self._pause = 0.0005
        self._look = self._seen_at = time.monotonic()
        self._seen: str | None = None

    def take(self) -> bool:
        """Takes it, if nobody has it."""
        pid = os.getpid()
        me = {"place": _place(), "pid": pid, "start": _start(pid), "id": uuid.uuid4().hex}
        return self._made(self.file, json.dumps(me).encode())

    def _made(self, file: str, holder: bytes) -> bool:
        try:
            try:
                self._connection.open(file, "x", values=[(_HOLDER, holder)]).close()
            except (FileNotFoundError, NotADirectoryError):
                if self._parent:
                    self._connection.make_directories(self._parent)
                self._connection.open(file, "x", values=[(_HOLDER, holder)]).close()
        except FileExistsError:
            return False
        return True

    def release(self) -> None:
        """Lets the others have it."""
        self._connection.remove_file(self.file)

    def pause(self) -> float:
        """How long to wait before the next attempt. Looks after who has it now and then."""
        now = time.monotonic()
        if now >= self._look:
            self._look = now + _LOOK
            self._look_after(now)
        pause, self._pause = self._pause, min(2 * self._pause, 0.02)
        return pause

    def _holder(self) -> dict[str, Any] | None:
        try:
            said = dict(self._connection.values(self.file)).get(_HOLDER)
        except FileNotFoundError:
            return None
        return {"id": ""} if said is None else dict(json.loads(said))

    def _look_after(self, now: float) -> None:
        holder = self._holder()
        if holder is None or holder["id"] != self._seen:
            self._seen, self._seen_at = None if holder is None else holder["id"], now
        if holder is not None and _is_dead(holder):
            self._take_away(holder)
        elif now > self._seen_at + _PATIENCE:
            raise TimeoutError(
                f"{self.path}: another program has had this chunk for {_PATIENCE:.0f} s; if it is no more, remove {self.file} and write again"
            )

    def _take_away(self, dead: dict[str, Any]) -> None:
        """Removes the lock of a program that died; one of those who wait does, so that nobody removes the lock of the next one."""
        guard = f"{self.file}.stale"
        if not self._made(guard, b"{}"):
            return
        try:
            holder = self._holder()
            if holder is not None and holder["id"] == dead["id"]:
                self._connection.remove_file(self.file)
        finally:
            self._connection.remove_file(guard)
