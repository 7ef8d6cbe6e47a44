"""Zarr over Pario, in two forms.

:class:`ParioStore` keeps the objects of a hierarchy (``zarr.json``, chunks) as files of the service. :func:`virtual` shows an array of the
service as an uncompressed Zarr array of any chunking, without a copy: its chunks are views.

With this module imported, programs whose regions share chunks or shards, or lie across them, write at the same time and lose nothing:

- Arrays that are neither compressed nor filtered are written *in place* in both forms: only the entries that a program assigns go to the service.
- What is compressed or sharded is read, changed and written chunk by chunk (shard by shard), by one program at a time: the others wait for a lock beside it.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
import uuid
import weakref
from collections.abc import AsyncIterator, Iterable
from typing import Any

import numpy as np
import zarr
import zarr.registry
import zarr.storage
from zarr.abc.codec import ArrayBytesCodecPartialEncodeMixin
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.codecs.bytes import BytesCodec
from zarr.core.buffer import Buffer, BufferPrototype, NDBuffer, default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.config import config as _config
from zarr.storage import StorePath

from . import _service
from ._dtypes import as_buffer
from ._index import Axis, select, select_orthogonal
from ._locks import ChunkLock
from .array import Array
from .filesystem import _Writing


def _window(size: int, byte_range: ByteRequest | None) -> tuple[int, int]:
    """First byte and one past the last that a request names."""
    match byte_range:
        case None:
            return 0, size
        case RangeByteRequest(start, end):
            return min(start, size), min(end, size)
        case OffsetByteRequest(offset):
            return min(offset, size), size
        case SuffixByteRequest(suffix):
            return max(0, size - suffix), size
    raise ValueError(f"Unexpected byte_range, got {byte_range!r}; give one of the requests of zarr.abc.store")


class _SyncStore(Store):
    """The methods that wait, over those that do not."""

    supports_writes: bool = True  # pyright: ignore[reportIncompatibleMethodOverride]
    supports_deletes: bool = True  # pyright: ignore[reportIncompatibleMethodOverride]
    supports_listing: bool = True  # pyright: ignore[reportIncompatibleMethodOverride]

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        raise NotImplementedError

    def set_sync(self, key: str, value: Buffer) -> None:
        raise NotImplementedError

    def write_region(self, key: str, spec: Any, axes: tuple[Axis, ...], values: np.ndarray[Any, Any]) -> None:
        """Writes some entries of a chunk in place."""
        raise NotImplementedError

    def write_points(self, key: str, spec: Any, flat: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        """Writes entries of a chunk in place, at ascending positions in its C order."""
        raise NotImplementedError

    def exists_sync(self, key: str) -> bool:
        raise NotImplementedError

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if not self._is_open:
            await self._open()
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(key, prototype, span) for key, span in key_ranges)))

    async def set(self, key: str, value: Buffer) -> None:
        if not self._is_open:
            await self._open()
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(
                f"{type(self).__name__}.set(): `value` must be a Buffer instance. Got an instance of {type(value)} instead."
            )
        await asyncio.to_thread(self.set_sync, key, value)

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self.exists_sync, key)


class ParioStore(_SyncStore):
    """The objects of a Zarr hierarchy as files below a directory of a service.

    >>> store = pario.zarr.ParioStore("/runs/7.zarr")
    >>> field = zarr.create_array(store, shape=(1000, 1000), chunks=(100, 100), dtype="f8", compressors=None)
    """

    def __init__(self, root: str = "/", *, url: Any = None, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self.root = "/" + root.strip("/")
        self.service = _service.connect(url)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParioStore) and (self.root, self.service.url) == (other.root, other.service.url)

    def __str__(self) -> str:
        return f"pario://{self.root}"

    def __repr__(self) -> str:
        return f"ParioStore({self.root!r}, url={self.service.url!r})"

    def with_read_only(self, read_only: bool = False) -> "ParioStore":
        return type(self)(self.root, url=self.service.url, read_only=read_only)

    def _path(self, key: str) -> str:
        return "/".join(part for part in (self.root.rstrip("/"), key.strip("/")) if part) or "/"

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        made = (prototype or default_buffer_prototype()).buffer
        try:
            file = self.service.connection.open(self._path(key), "r")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        try:
            first, end = _window(file.size(), byte_range)
            return made.from_bytes(file.read_bytes(first, max(0, end - first)))
        finally:
            file.close()

    def set_sync(self, key: str, value: Buffer) -> None:
        self._check_writable()
        with _Writing(self.service.connection, self._path(key)) as out:
            out.write(np.ascontiguousarray(value.as_numpy_array()).view("u1"))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        connection, path = self.service.connection, self._path(key)

        def create() -> None:
            if path.rsplit("/", 1)[0]:
                connection.make_directories(path.rsplit("/", 1)[0])
            try:
                file = connection.open(path, "x")
            except FileExistsError:
                return
            data = value.to_bytes()
            if data:
                file.write_bytes(0, data)
            file.close()

        await asyncio.to_thread(create)

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        path = self._path(key)
        try:
            self.service.connection.remove_file(path)
        except IsADirectoryError:
            self._remove(path)
        except (FileNotFoundError, NotADirectoryError):
            pass

    def _remove(self, path: str) -> None:
        for below, facts in reversed(list(self.service.walk(path))):
            if facts["kind"] == "directory":
                self.service.connection.remove_directory(below)
            else:
                self.service.connection.remove_file(below)
        self.service.connection.remove_directory(path)

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        path = self._path(prefix)

        def remove() -> None:
            if not self.service.exists(path):
                return
            for below, facts in reversed(list(self.service.walk(path))):
                if facts["kind"] == "directory":
                    self.service.connection.remove_directory(below)
                else:
                    self.service.connection.remove_file(below)
            if path not in ("/", self.root):
                self.service.connection.remove_directory(path)

        await asyncio.to_thread(remove)

    async def clear(self) -> None:
        await self.delete_dir("")

    def exists_sync(self, key: str) -> bool:
        try:
            return bool(self.service.connection.stat(self._path(key))["kind"] == "file")
        except (FileNotFoundError, NotADirectoryError):
            return False

    async def getsize(self, key: str) -> int:
        found = await asyncio.to_thread(self.service.connection.stat, self._path(key))
        return int(found["size"])

    def _keys(self, prefix: str) -> list[str]:
        start = len(self.root.rstrip("/")) + 1
        try:
            below = list(self.service.walk(self._path(prefix)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [p[start:] for p, facts in below if facts["kind"] == "file" and "/.writing-" not in p]

    async def list(self) -> AsyncIterator[str]:
        for key in await asyncio.to_thread(self._keys, ""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        whole, _, part = prefix.rpartition("/")
        for key in await asyncio.to_thread(self._keys, whole):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        try:
            names = await asyncio.to_thread(self.service.list, self._path(prefix))
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if not name.startswith(".writing-"):
                yield name

    def write_region(self, key: str, spec: Any, axes: tuple[Axis, ...], values: np.ndarray[Any, Any]) -> None:
        self._write_in_place(key, spec, tuple(spec.shape), axes, values)

    def write_points(self, key: str, spec: Any, flat: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        self._write_in_place(key, spec, (math.prod(spec.shape),), (flat.astype(np.uint64),), values)

    def _write_in_place(
        self, key: str, spec: Any, shape: tuple[int, ...], axes: tuple[Axis, ...], values: np.ndarray[Any, Any]
    ) -> None:
        self._check_writable()
        file = self._chunk(self._path(key), spec, values.dtype)
        try:
            extents = ",".join(map(str, shape))
            file.write_region(f"bytes({values.dtype.itemsize})[{extents}]", axes, as_buffer(values))
        finally:
            file.close()

    def _chunk(self, path: str, spec: Any, dtype: np.dtype[Any]) -> Any:
        """The file of a chunk. It gets its name when it is full of the fill value, and is made by one program only."""
        connection = self.service.connection
        lock: ChunkLock | None = None
        while True:
            try:
                return connection.open(path, "r+")
            except (FileNotFoundError, NotADirectoryError):
                pass
            lock = lock or ChunkLock(self.service, path)
            if not lock.take():
                time.sleep(lock.pause())
                continue
            try:
                if not self.service.exists(path):
                    self._fill(path, spec, dtype)
            finally:
                lock.release()

    def _fill(self, path: str, spec: Any, dtype: np.dtype[Any]) -> None:
        connection = self.service.connection
        parent = path.rpartition("/")[0]
        apart = f"{parent}/.writing-{uuid.uuid4().hex}"
        fill = np.asarray(spec.fill_value, dtype)
        count = math.prod(spec.shape)
        file = connection.open(apart, "x")
        if fill.tobytes().strip(b"\0"):
            file.write_bytes(0, as_buffer(np.full(count, fill, dtype)))
        else:
            # What nobody wrote is zero.
            file.resize(count * dtype.itemsize)
        file.close()
        connection.rename(apart, path)


class ArrayStore(_SyncStore):
    """An array of the service as a Zarr array: keys are ``zarr.json`` and its chunks, which are views of the array."""

    def __init__(self, array: Array, chunks: tuple[int, ...], *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self.array = array
        self.chunks = chunks

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArrayStore)
            and (self.array.path, self.array.service.url, self.chunks)
            == (other.array.path, other.array.service.url, other.chunks)
        )

    def __repr__(self) -> str:
        return f"ArrayStore({self.array!r}, chunks={self.chunks})"

    def with_read_only(self, read_only: bool = False) -> "ArrayStore":
        return type(self)(self.array, self.chunks, read_only=read_only)

    def _metadata(self) -> bytes:
        """What zarr itself writes for such an array."""
        memory: dict[str, Any] = {}
        zarr.create_array(
            zarr.storage.MemoryStore(memory),
            shape=self.array.shape,
            chunks=self.chunks,
            dtype=self.array.dtype,
            compressors=None,
            filters=None,
            attributes=self.array.attrs.asdict(),
        )
        return bytes(memory["zarr.json"].to_bytes())

    def _region(self, key: str) -> tuple[slice, ...] | None:
        """The indices of a chunk, as far as the array has them."""
        parts = key.split("/")
        if parts[0] != "c" or len(parts) != self.array.ndim + 1:
            return None
        try:
            numbers = [int(part) for part in parts[1:]]
        except ValueError:
            return None
        firsts = [n * c for n, c in zip(numbers, self.chunks)]
        if any(not 0 <= f < extent for f, extent in zip(firsts, self.array.shape)):
            return None
        return tuple(slice(f, f + c) for f, c in zip(firsts, self.chunks))

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        made = (prototype or default_buffer_prototype()).buffer
        if key == "zarr.json":
            data = self._metadata()
            first, end = _window(len(data), byte_range)
            return made.from_bytes(data[first:end])
        region = self._region(key)
        if region is None:
            return None
        chunk = np.ascontiguousarray(self.array.get(region))
        if chunk.shape != self.chunks:
            whole = np.zeros(self.chunks, chunk.dtype)
            whole[tuple(slice(n) for n in chunk.shape)] = chunk
            chunk = whole
        flat = as_buffer(chunk).reshape(-1).view("u1")
        first, end = _window(len(flat), byte_range)
        return made.from_array_like(flat[first:end])  # pyright: ignore[reportArgumentType]

    def set_sync(self, key: str, value: Buffer) -> None:
        self._check_writable()
        if key == "zarr.json":
            raise PermissionError("the array says what zarr.json is; change the array, or its attrs")
        region = self._region(key)
        if region is None:
            raise KeyError(f"{key}: the array has no such chunk")
        chunk = value.as_numpy_array().view("u1").view(self.array.dtype).reshape(self.chunks)
        present = tuple(slice(min(s.stop, n) - s.start) for s, n in zip(region, self.array.shape))
        self.array[region] = chunk[present]

    def write_region(self, key: str, spec: Any, axes: tuple[Axis, ...], values: np.ndarray[Any, Any]) -> None:
        self._check_writable()
        region = self._region(key)
        if region is None:
            raise KeyError(f"{key}: the array has no such chunk")
        moved = tuple(
            (a[0] + s.start, a[1], a[2]) if isinstance(a, tuple) else a + np.uint64(s.start)
            for a, s in zip(axes, region)
        )
        given = values.view(self.array.dtype)
        if self.array.order == "F":
            given = np.asfortranarray(given)
        self.array._write(moved, given)

    def write_points(self, key: str, spec: Any, flat: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        self._check_writable()
        region = self._region(key)
        if region is None:
            raise KeyError(f"{key}: the array has no such chunk")
        at = tuple(p + s.start for p, s in zip(np.unravel_index(flat, spec.shape), region))
        self.array.vindex[at] = values.view(self.array.dtype)

    def exists_sync(self, key: str) -> bool:
        return key == "zarr.json" or self._region(key) is not None

    async def delete(self, key: str) -> None:
        self._check_writable()
        region = self._region(key)
        if region is not None:
            await asyncio.to_thread(self.array.set, region, np.zeros((), self.array.dtype))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        if not self.exists_sync(key):
            await self.set(key, value)

    def _keys(self) -> list[str]:
        counts = [-(-n // c) for n, c in zip(self.array.shape, self.chunks)]
        return ["zarr.json", *("/".join(["c", *map(str, at)]) for at in np.ndindex(*counts))]

    async def list(self) -> AsyncIterator[str]:
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        start = prefix.strip("/")
        start = f"{start}/" if start else ""
        for name in sorted({k[len(start) :].split("/")[0] for k in self._keys() if k.startswith(start)}):
            yield name


def virtual(array: Array, chunks: Any = None, *, read_only: bool | None = None) -> Any:
    """An array of the service as a Zarr array of any chunking. Nothing is copied: its chunks are views of the array.

    >>> z = pario.zarr.virtual(pario.open("/runs/7/field"), chunks=(100, 100))
    """
    if chunks is None:
        grid = tuple(min(n, 256) or 1 for n in array.shape)
    else:
        grid = (chunks,) * array.ndim if isinstance(chunks, int) else tuple(int(c) for c in chunks)
    if len(grid) != array.ndim or any(c < 1 for c in grid):
        raise ValueError(f"chunks: {grid} does not fit an array of shape {array.shape}; give one length of at least 1 per dimension")
    fixed = array.mode == "r" if read_only is None else read_only
    return zarr.open_array(ArrayStore(array, grid, read_only=fixed), mode="r" if fixed else "r+")


class RegionBytesCodec(BytesCodec, ArrayBytesCodecPartialEncodeMixin):
    """The codec ``bytes`` of Zarr, which hands a store that can write in place the entries that a program assigns, and nothing else."""

    async def _encode_partial_single(
        self, byte_setter: Any, chunk_array: NDBuffer, selection: Any, chunk_spec: Any
    ) -> None:
        store = byte_setter.store if isinstance(byte_setter, StorePath) else None
        if not isinstance(store, _SyncStore):
            await self._change_whole(byte_setter, chunk_array, selection, chunk_spec)
            return
        stored = chunk_spec.dtype.to_native_dtype()
        if stored.itemsize > 1 and self.endian is not None:
            stored = stored.newbyteorder(self.endian.name)
        if not store._is_open:
            await store._open()
        axes = _axes_of(selection, tuple(chunk_spec.shape))
        if axes is None:
            flat, chosen = _points_of(selection, tuple(chunk_spec.shape), np.asarray(chunk_array.as_ndarray_like()).astype(stored, copy=False))
            await asyncio.to_thread(store.write_points, byte_setter.path, chunk_spec, flat, chosen)
            return
        shape = tuple(axis[1] if isinstance(axis, tuple) else len(axis) for axis in axes)
        given = np.asarray(chunk_array.as_ndarray_like())
        values = given.astype(stored, copy=False)
        values = np.broadcast_to(values.reshape(shape) if values.size == math.prod(shape) else values, shape)
        ready = np.ascontiguousarray(values)
        await asyncio.to_thread(store.write_region, byte_setter.path, chunk_spec, axes, ready)

    async def _change_whole(
        self, byte_setter: Any, chunk_array: NDBuffer, selection: Any, chunk_spec: Any
    ) -> None:
        """As every other store has it: the chunk is read, changed and written."""
        found = await byte_setter.get(prototype=chunk_spec.prototype)
        if found is None:
            chunk = chunk_spec.prototype.nd_buffer.create(
                shape=chunk_spec.shape,
                dtype=chunk_spec.dtype.to_native_dtype(),
                order=chunk_spec.order,
                fill_value=chunk_spec.fill_value,
            )
        else:
            chunk = self._decode_sync(found, chunk_spec)
            chunk = chunk_spec.prototype.nd_buffer.from_ndarray_like(np.array(chunk.as_ndarray_like()))
        chunk[selection] = chunk_array
        if not chunk_spec.config.write_empty_chunks and chunk.all_equal(chunk_spec.fill_value):
            await byte_setter.delete()
            return
        encoded = self._encode_sync(chunk, chunk_spec)
        if encoded is None:
            await byte_setter.delete()
        else:
            await byte_setter.set(encoded)


def _axes_of(selection: Any, shape: tuple[int, ...]) -> tuple[Axis, ...] | None:
    """A selection of Zarr inside a chunk as one choice of indices per dimension; nothing if it chooses points."""
    keys = selection if isinstance(selection, tuple) else (selection,)
    if len(keys) != len(shape):
        return None
    lists = [k for k in keys if isinstance(k, np.ndarray)]
    if lists:
        # An open mesh: every list lies along a dimension of its own.
        for d, key in enumerate(keys):
            if isinstance(key, np.ndarray) and (key.ndim != len(shape) or key.size != key.shape[d]):
                return None
            if isinstance(key, slice):
                return None
        keys = tuple(k.ravel() if isinstance(k, np.ndarray) else k for k in keys)
        if any(isinstance(k, np.ndarray) and (np.diff(k) <= 0).any() for k in keys):
            return None
        found = select_orthogonal(keys, shape)
    else:
        found = select(keys, shape)
    if found.points is not None or found.takes or any(
        isinstance(part, slice) and part.step == -1 for part in found.view
    ):
        return None
    return found.axes


def _points_of(
    selection: Any, shape: tuple[int, ...], values: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Points inside a chunk as ascending positions in its C order, each with its value; of those that are named twice the last one counts."""
    flat = np.arange(math.prod(shape)).reshape(shape)[selection]
    given = np.broadcast_to(values.reshape(flat.shape) if values.size == flat.size else values, flat.shape)
    positions, last = np.unique(flat.ravel()[::-1], return_index=True)
    return positions, np.ascontiguousarray(given.ravel()[::-1][last])


#: Locks of chunks among the tasks of one event loop.
_of_tasks: weakref.WeakValueDictionary[tuple[Any, ...], asyncio.Lock] = weakref.WeakValueDictionary()


class LockingPipeline(BatchedCodecPipeline):
    """The pipeline of zarr-python, in which one program at a time changes a chunk of a :class:`ParioStore` that has to be read for it."""

    async def write_batch(self, batch_info: Any, value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        free: list[Any] = []
        changed: list[Any] = []
        for info in batch_info:
            (changed if self._is_changed(info) else free).append(info)
        work = [self._change(info, value, drop_axes) for info in changed]
        if free:
            work.append(super().write_batch(free, value, drop_axes))
        await asyncio.gather(*work)

    def _is_changed(self, info: Any) -> bool:
        """Whether a part of a chunk is to be replaced, and not in place."""
        setter, is_complete = info[0], info[4] if len(info) > 4 else False
        if is_complete or not isinstance(setter, StorePath) or not isinstance(setter.store, ParioStore):
            return False
        return not (self.supports_partial_encode and isinstance(self.array_bytes_codec, RegionBytesCodec))

    async def _change(self, info: Any, value: NDBuffer, drop_axes: tuple[int, ...]) -> None:
        store = info[0].store
        path = store._path(info[0].path)
        # Tasks of this loop take turns first, so that only one of them asks the service.
        key = (os.getpid(), id(asyncio.get_running_loop()), store.service.url, path)
        turn = _of_tasks.setdefault(key, asyncio.Lock())
        async with turn:
            lock = ChunkLock(store.service, path)
            while not await asyncio.to_thread(lock.take):
                await asyncio.sleep(await asyncio.to_thread(lock.pause))
            try:
                await super().write_batch([info], value, drop_axes)
            finally:
                await asyncio.to_thread(lock.release)


zarr.registry.register_codec("bytes", RegionBytesCodec, qualname="pario.zarr.RegionBytesCodec")
_config.set({"codecs.bytes": "pario.zarr.RegionBytesCodec"})
zarr.registry.register_pipeline(LockingPipeline)
if _config.get("codec_pipeline.path") == "zarr.core.codec_pipeline.BatchedCodecPipeline":
    # Who chose another one keeps it, and writes what shares chunks with locks of its own.
    _config.set({"codec_pipeline.path": "pario.zarr.LockingPipeline"})
