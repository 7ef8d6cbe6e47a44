"""A file system for fsspec: ``pario:///path`` in pandas, dask, xarray and everything else that opens files by fsspec.

Files of it are files of the service, whether they hold an array or plain bytes. The service is that of ``PARIO_URL``, or of the option
``url``. What is written appears under its name when it is closed, as a whole.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # type: ignore[import-untyped]

from . import _service

#: Bytes copied at a time.
_BLOCK = 8 << 20


class ParioFileSystem(AbstractFileSystem):
    """Files of a service, with the methods of fsspec."""

    protocol = "pario"
    root_marker = "/"

    def __init__(self, url: str | None = None, **options: Any) -> None:
        super().__init__(url=url, **options)
        self._service = _service.connect(url)

    @property
    def service(self) -> _service.Service:
        """The connection below."""
        return self._service

    @property
    def _connection(self) -> Any:
        return self._service.connection

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        text = str(path)
        for prefix in ("pario://", "pario:"):
            if text.startswith(prefix):
                text = text[len(prefix) :]
                break
        return "/" + text.strip("/")

    @staticmethod
    def _facts(path: str, facts: dict[str, Any]) -> dict[str, Any]:
        return {**facts, "name": path, "type": facts["kind"]}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is known of a file or directory."""
        path = self._strip_protocol(path)
        try:
            return self._facts(path, self._connection.stat(path))
        except NotADirectoryError:
            raise FileNotFoundError(path) from None

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a directory; a file is alone."""
        path = self._strip_protocol(path)
        facts = self.info(path)
        if facts["type"] == "file":
            found = [facts]
        else:
            base = path.rstrip("/")
            found = [self._facts(f"{base}/{name}", f) for name, f in self._connection.list(path)]
        return found if detail else [f["name"] for f in found]

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is something of this name."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Makes a directory, which must not be there."""
        path = self._strip_protocol(path)
        if self.exists(path):
            raise FileExistsError(path)
        make = self._connection.make_directories if create_parents else self._connection.make_directory
        make(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Makes a directory with those above it."""
        path = self._strip_protocol(path)
        if not exist_ok and self.exists(path):
            raise FileExistsError(path)
        self._connection.make_directories(path)

    def rmdir(self, path: str) -> None:
        """Removes an empty directory."""
        self._connection.remove_directory(self._strip_protocol(path))

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        self._connection.remove_file(self._strip_protocol(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files, and directories with what is in them."""
        for one in reversed(self.expand_path(path, recursive=recursive, maxdepth=maxdepth)):
            if self.isdir(one):
                self.rmdir(one)
            else:
                self.rm_file(one)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **_: Any) -> None:
        """Gives a file or directory another name, in one step."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(target):
            target = f"{target}/{source.rsplit('/', 1)[-1]}"
        self._connection.rename(source, target)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copies a file; of a directory only its name."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(source):
            self._connection.make_directories(target)
            return
        self._connection.make_directories(self._parent(target))
        file = self._connection.open(source, "r")
        try:
            size, at = file.size(), 0
            with _Writing(self._connection, target) as out:
                while at < size:
                    at += out.write(file.read_bytes(at, min(_BLOCK, size - at)))
        finally:
            file.close()

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Bytes of a file."""
        path = self._strip_protocol(path)
        file = self._connection.open(path, "r")
        try:
            size = file.size()
            first = _place(start, 0, size)
            last = _place(end, size, size)
            return bytes(file.read_bytes(first, max(0, last - first)))
        finally:
            file.close()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Writes a file as a whole."""
        path = self._strip_protocol(path)
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        with _Writing(self._connection, path) as out:
            out.write(value)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Makes an empty file; one that is there is cut, unless that is not wanted."""
        path = self._strip_protocol(path)
        self._connection.make_directories(self._parent(path))
        file = self._connection.open(path, "a")
        if truncate:
            file.resize(0)
        file.close()

    def created(self, path: str) -> datetime:
        """The last change of attributes, which is the best that is known."""
        return _time(self.info(path)["changed_ns"])

    def modified(self, path: str) -> datetime:
        """The last change of bytes."""
        return _time(self.info(path)["modified_ns"])

    def ukey(self, path: str) -> str:
        """Another text when the file has changed."""
        facts = self.info(path)
        return f"{facts['id']}-{facts['modified_ns']}-{facts['size']}"

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, autocommit: bool = True, cache_options: Any = None, **how: Any) -> "ParioFile":
        size = block_size if isinstance(block_size, int) else _BLOCK
        return ParioFile(self, path, mode, size, autocommit, cache_options=cache_options, **how)


class ParioFile(AbstractBufferedFile):
    """An open file of plain bytes."""

    def __init__(self, fs: ParioFileSystem, path: str, mode: str, *args: Any, **how: Any) -> None:
        connection = fs._connection
        self._file: Any = None
        self._out: _Writing | None = None
        if mode == "rb":
            facts = fs.info(path)
            if facts["type"] == "directory":
                raise IsADirectoryError(path)
            self._file = connection.open(path, "r")
            how.setdefault("cache_type", "readahead")
            how["size"] = facts["size"]
        elif mode == "xb" and fs.exists(path):
            raise FileExistsError(path)
        super().__init__(fs, path, mode, *args, **how)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self._file.read_bytes(start, max(0, end - start)))

    def _initiate_upload(self) -> None:
        kept = self.path if self.mode == "ab" and self.fs.exists(self.path) else None
        self._out = _Writing(self.fs._connection, self.path, kept)

    def _upload_chunk(self, final: bool = False) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert self._out is not None
        self._out.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Gives the file its name."""
        if self._out is not None:
            self._out.commit()

    def discard(self) -> None:
        """Gives it up."""
        if self._out is not None:
            self._out.discard()

    def close(self) -> None:
        """Closes it; what was written has its name from now on."""
        try:
            super().close()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None


class _Writing:
    """A file that gets its name when it is whole; one that is appended to goes on under its own."""

    def __init__(self, connection: Any, path: str, kept: str | None = None) -> None:
        self._connection = connection
        self._path = path
        self._apart = None if kept else f"{path.rsplit('/', 1)[0]}/.writing-{uuid.uuid4().hex}"
        parent = path.rsplit("/", 1)[0]
        if parent:
            connection.make_directories(parent)
        if _is_directory(connection, path):
            raise IsADirectoryError(path)
        self._file = connection.open(self._apart or path, "a")
        self._at = self._file.size() if kept else 0

    def write(self, data: Any) -> int:
        """Writes on."""
        count = len(data)
        if count:
            self._file.write_bytes(self._at, data)
        self._at += count
        return count

    def commit(self) -> None:
        """Closes the file and names it."""
        self._file.close()
        if self._apart is not None:
            self._connection.rename(self._apart, self._path)
            self._apart = None

    def discard(self) -> None:
        """Closes the file and removes it."""
        self._file.close()
        if self._apart is not None:
            self._connection.remove_file(self._apart)
            self._apart = None

    def __enter__(self) -> "_Writing":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def _is_directory(connection: Any, path: str) -> bool:
    try:
        return bool(connection.stat(path)["kind"] == "directory")
    except (FileNotFoundError, NotADirectoryError):
        return False


def _place(given: int | None, usual: int, size: int) -> int:
    if given is None:
        return usual
    return max(0, size + given) if given < 0 else min(given, size)


def _time(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc)
