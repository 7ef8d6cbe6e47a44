"""Connections: one per URL and process, made when the first file is opened, and made again in a child after a fork."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

_Servers = list[tuple[int, str, bool]]

from . import _native

_lock = threading.RLock()
_connections: dict[str, "Service"] = {}
#: What a child has from its parent is kept and never used: closing it would speak in the parent's name.
_of_parents: list[Any] = []
#: Counts forks, so that whatever was opened before one is known to be of the parent.
generation = 0


def _after_fork() -> None:
    global _lock, generation
    _lock = threading.RLock()
    generation += 1
    _of_parents.append(dict(_connections))
    _connections.clear()


os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    with _lock:
        services = list(_connections.values())
        _connections.clear()
    for service in services:
        service.close()


atexit.register(_at_exit)


def _application() -> str:
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"


def _resolved(url: str | os.PathLike[str] | None) -> str:
    """The URL in a form that means the same in another process: directories with their full path."""
    text = os.fspath(url) if url is not None else os.environ.get("PARIO_URL") or "dir:.pario"
    if text.startswith("dir:"):
        return "dir:" + os.path.abspath(text[4:])
    return text


class Service:
    """A connection to a service, to a directory that the processes using it serve, or to the servers of a job."""

    def __init__(self, url: str | os.PathLike[str] | None = None) -> None:
        self.url = _resolved(url)
        self._generation = generation
        self._open: _native.Connection | None = _native.Connection(self.url, _application())

    @property
    def connection(self) -> _native.Connection:
        """The connection of this process."""
        if self._open is None:
            raise ValueError("the connection is closed; connect again")
        if self._generation != generation:
            # It belongs to the parent of this process.
            _of_parents.append(self._open)
            self._generation = generation
            self._open = _native.Connection(self.url, _application())
        return self._open

    def close(self) -> None:
        """Ends the connection. Arrays that are open keep theirs until they are closed."""
        with _lock:
            if _connections.get(self.url) is self:
                del _connections[self.url]
        if self._open is not None and self._generation == generation:
            self._open.close()
        self._open = None

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"pario.connect({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (connect, (self.url,))

    # --- Arrays ---

    def open(self, path: str, mode: str = "r+", **how: Any) -> Any:
        """Opens an array; see :func:`pario.open`."""
        from .array import Array

        return Array._open(self, path, mode, **how)

    def create(self, path: str, shape: Any, dtype: Any = "f8", **how: Any) -> Any:
        """Creates an array; see :func:`pario.create`."""
        from .array import Array

        return Array._create(self, path, shape, dtype, **how)

    # --- Names ---

    def list(self, path: str = "/") -> list[str]:
        """The names in a directory, ascending."""
        return [name for name, _ in self.connection.list(path)]

    def walk(self, path: str = "/") -> Iterator[tuple[str, dict[str, Any]]]:
        """Everything below a directory: paths, each with what :meth:`stat` tells."""
        for name, facts in self.connection.list(path):
            below = f"{path.rstrip('/')}/{name}"
            yield below, facts
            if facts["kind"] == "directory":
                yield from self.walk(below)

    def stat(self, path: str) -> dict[str, Any]:
        """Kind, size, owner, permissions, times, array and layout of a file or directory."""
        return self.connection.stat(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""
        try:
            self.connection.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def mkdir(self, path: str, parents: bool = True) -> None:
        """Makes a directory, with those above it; one that exists is fine then."""
        make = self.connection.make_directories if parents else self.connection.make_directory
        make(path)

    def remove(self, path: str) -> None:
        """Removes a file or an empty directory."""
        if self.connection.stat(path)["kind"] == "directory":
            self.connection.remove_directory(path)
        else:
            self.connection.remove_file(path)

    def rename(self, source: str, target: str) -> None:
        """Gives a file or directory another name; a file that has it is replaced, in one step."""
        self.connection.rename(source, target)

    def layout(self, path: str) -> dict[str, Any]:
        """How a file is cut, which servers have which part, and why."""
        return self.connection.layout(path)

    def servers(self) -> _Servers:
        """Number and address of every I/O server, and whether it is alive."""
        found: _Servers = self.connection.servers()
        return found

    def statistics(self) -> dict[str, int]:
        """Messages sent, and accesses that went directly to memory of servers of this host."""
        return self.connection.statistics()


def connect(url: str | os.PathLike[str] | None = None) -> Service:
    """Connects to what a URL names, to what ``PARIO_URL`` names without one, and to the directory ``.pario`` if that is not set.

    ``dir:PATH`` needs no service: the processes that use the directory serve it. ``unix:PATH`` and ``tcp:HOST:PORT`` are services,
    ``job:`` the servers of a job. Calls with the same URL get the same connection.
    """
    resolved = _resolved(url)
    with _lock:
        known = _connections.get(resolved)
        if known is None:
            known = _connections[resolved] = Service(resolved)
        return known
