"""Other chunks for arrays: between Zarr, ``.npy``, HDF5 and arrays of the service, within a bound on memory.

The target is written block by block. A block is made of whole chunks of the target, so no chunk is written twice and none is read back. Where
such blocks would read the chunks of the source again and again, the way is in two steps: whole chunks of the source go into a
plain array of the service, which has no chunks to read again, and blocks of the target come out of it.

What is done stands in a journal beside the target, block by block. The same call after an interruption goes on where the last one stopped.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _service
from .array import Array, _bar
from .teams import Team

Region = tuple[slice, ...]

#: Reading everything so much more than once costs as much as a plain array in between.
_MOST_READ_AGAIN = 2.5
#: Chunks that zarr-python has in memory at a time, unless its configuration says otherwise.
_ZARR_AT_ONCE = 10


@dataclass
class RechunkReport:
    """What :func:`rechunk` did."""

    #: Bytes of the array.
    nbytes: int
    #: Blocks that were written, and those that an earlier call had written.
    blocks: int
    skipped: int
    #: The shape of a block.
    block: tuple[int, ...]
    #: Whether the way went over a plain array in between.
    in_two_steps: bool
    #: How often the source is read, in its own chunks: 1 is once.
    read_again: float


# --- Sides: what is read and written ---


class Side:
    """An array of any kind: its shape, type and chunks, regions of it in and out."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: What is read or written as a whole; nothing if every entry can be had for itself.
    chunks: tuple[int, ...] | None = None
    #: Chunks that a read or a write holds in memory beside the region.
    held_chunks = 0
    #: Whether several threads get anything done at once.
    is_parallel = True
    #: Where the journal is, unless it is said.
    journal: str | None = None

    def read(self, region: Region) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def write(self, region: Region, values: np.ndarray[Any, Any]) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        """Hands everything to the system, so that the end of this process takes nothing with it."""

    def close(self) -> None:
        """Gives back what was opened here."""


class _ParioSide(Side):
    def __init__(self, array: Array, is_ours: bool) -> None:
        self.array, self.is_ours = array, is_ours
        self.shape, self.dtype = array.shape, array.dtype

    def read(self, region: Region) -> np.ndarray[Any, Any]:
        return np.asarray(self.array[(*region, ...)])

    def write(self, region: Region, values: np.ndarray[Any, Any]) -> None:
        self.array[(*region, ...)] = values

    def sync(self) -> None:
        self.array.sync()

    def close(self) -> None:
        if self.is_ours:
            self.array.close()


class _NpySide(Side):
    def __init__(self, memory: np.ndarray[Any, Any], path: str | None) -> None:
        self.memory, self.shape, self.dtype = memory, memory.shape, memory.dtype
        self.journal = None if path is None else f"{path}.rechunk"

    def read(self, region: Region) -> np.ndarray[Any, Any]:
        return np.array(self.memory[region])

    def write(self, region: Region, values: np.ndarray[Any, Any]) -> None:
        self.memory[region if region else ...] = values

    def close(self) -> None:
        if isinstance(self.memory, np.memmap) and self.memory.flags.writeable:
            self.memory.flush()


class _ZarrSide(Side):
    held_chunks = 2 * _ZARR_AT_ONCE

    def __init__(self, array: Any, path: str | None) -> None:
        self.array, self.shape, self.dtype = array, tuple(array.shape), np.dtype(array.dtype)
        # A shard is what is written as a whole.
        self.chunks = tuple(getattr(array, "shards", None) or array.chunks)
        self.journal = None if path is None else f"{path.rstrip('/')}.rechunk"

    def read(self, region: Region) -> np.ndarray[Any, Any]:
        return np.asarray(self.array[(*region, ...)])

    def write(self, region: Region, values: np.ndarray[Any, Any]) -> None:
        self.array[(*region, ...)] = values


class _Hdf5Side(Side):
    held_chunks = 1
    is_parallel = False  # the library has one lock for everything
    _lock = threading.Lock()

    def __init__(self, dataset: Any, file: Any, path: str | None) -> None:
        self.dataset, self.file = dataset, file
        self.shape, self.dtype, self.chunks = tuple(dataset.shape), dataset.dtype, dataset.chunks
        self.journal = None if path is None else f"{path}.rechunk"

    def read(self, region: Region) -> np.ndarray[Any, Any]:
        with self._lock:
            return np.asarray(self.dataset[region if region else ()])

    def write(self, region: Region, values: np.ndarray[Any, Any]) -> None:
        with self._lock:
            self.dataset[region if region else ()] = values

    def sync(self) -> None:
        with self._lock:
            self.dataset.file.flush()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def _needed(package: str, what: str) -> Any:
    """A package that only some formats need."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError:
        raise ModuleNotFoundError(f"{what} needs the package {package}, which is not installed: pip install {package}") from None


def _hdf5_parts(text: str) -> tuple[str, str] | None:
    """File and dataset of ``file.h5:/data/set``."""
    for ending in (".h5", ".hdf5", ".nc", ".he5"):
        head, found, tail = text.partition(ending + ":")
        if found:
            return head + ending, tail.lstrip(":") or "/"
        if text.endswith(ending):
            raise ValueError(f"{text}: an HDF5 file has many datasets; name one, as in {text}:/data")
    return None


def _is_zarr(text: str) -> bool:
    return ".zarr" in text or any(os.path.exists(os.path.join(text, name)) for name in ("zarr.json", ".zarray"))


def _side_of(given: Any, url: Any, mode: str = "r") -> Side:
    """What is there already."""
    if isinstance(given, Array):
        return _ParioSide(given, False)
    if isinstance(given, np.ndarray):
        return _NpySide(given, None)
    module = type(given).__module__.partition(".")[0]
    if module == "h5py":
        return _Hdf5Side(given, None, None)
    if module == "zarr":
        return _ZarrSide(given, None)
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{type(given).__name__} is no array that rechunk knows: give an array of pario, zarr, h5py or numpy, or a path")
    text = os.fspath(given)
    if text.startswith("pario:"):
        return _ParioSide(_service.connect(url).open(_path_of(text), mode), True)
    parts = _hdf5_parts(text)
    if parts is not None:
        file = _needed("h5py", text).File(parts[0], mode)
        return _Hdf5Side(file[parts[1]], file, parts[0])
    if text.endswith(".npy"):
        return _NpySide(np.load(text, mmap_mode="r" if mode == "r" else "r+"), text)
    if _is_zarr(text):
        zarr = _needed("zarr", text)
        return _ZarrSide(zarr.open_array(text, mode=mode), text)
    raise ValueError(f"{text}: neither pario://, .npy, .zarr nor HDF5 as in file.h5:/data; give one of these")


def _path_of(text: str) -> str:
    return "/" + text[len("pario:") :].lstrip("/")


def _create(text: str, source: Side, chunks: tuple[int, ...] | None, url: Any, how: dict[str, Any]) -> None:
    """Makes the target, empty, in place of what is there."""
    if text.startswith("pario:"):
        _service.connect(url).create(_path_of(text), source.shape, source.dtype, overwrite=True, **how).close()
        return
    parts = _hdf5_parts(text)
    if parts is not None:
        with _needed("h5py", text).File(parts[0], "a") as file:
            if parts[1] in file:
                del file[parts[1]]
            file.create_dataset(parts[1], source.shape, source.dtype, chunks=chunks if source.shape else None, **how)
    elif text.endswith(".npy"):
        made = np.lib.format.open_memmap(text, "w+", source.dtype, source.shape, **how)
        del made
    elif _is_zarr(text):
        zarr = _needed("zarr", text)
        zarr.create_array(text, shape=source.shape, dtype=source.dtype, chunks=chunks or "auto", overwrite=True, **how)
    else:
        raise ValueError(f"{text}: neither pario://, .npy, .zarr nor HDF5 as in file.h5:/data; give one of these")


# --- Blocks ---


def _size(text: Any) -> int:
    """Bytes, of a number or a text such as ``"256MiB"``."""
    if isinstance(text, (int, np.integer)):
        return int(text)
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    bare = str(text).strip().lower()
    number = bare.rstrip("bikmg ")
    try:
        return int(float(number) * units[bare[len(number) :].strip()])
    except (KeyError, ValueError):
        raise ValueError(f"max_mem: {text!r} is no size; give bytes, or a text such as '256MiB'") from None


def _block(shape: tuple[int, ...], unit: tuple[int, ...] | None, other: tuple[int, ...] | None, room: int) -> tuple[int, ...]:
    """The largest block of whole units with at most ``room`` entries. It grows first where it cuts chunks of the other side, then from the last
    dimension on."""
    unit = tuple(min(u, n) or 1 for u, n in zip(unit or (1,) * len(shape), shape))
    block = list(unit)

    def grown(d: int, wanted: int) -> None:
        rest = math.prod(block) // block[d]
        most = room // max(1, rest) // unit[d] * unit[d]
        block[d] = max(block[d], min(-(-wanted // unit[d]) * unit[d], most))

    if other is not None:
        for d in range(len(shape)):
            grown(d, min(shape[d], math.lcm(unit[d], min(other[d], shape[d]) or 1)))
    for d in reversed(range(len(shape))):
        grown(d, shape[d])
    return tuple(min(b, n) or 1 for b, n in zip(block, shape))


def _regions(shape: tuple[int, ...], block: tuple[int, ...]) -> Iterator[Region]:
    counts = [-(-n // b) for n, b in zip(shape, block)]
    for at in itertools.product(*map(range, counts)):
        yield tuple(slice(i * b, min((i + 1) * b, n)) for i, b, n in zip(at, block, shape))


def _read_again(shape: tuple[int, ...], block: tuple[int, ...], chunks: tuple[int, ...] | None) -> float:
    """How often the chunks of the source are read when it is read by such blocks."""
    if chunks is None or 0 in shape:
        return 1.0
    again = 1.0
    for n, b, c in zip(shape, block, chunks):
        touched = sum((min(first + b, n) - 1) // c - first // c + 1 for first in range(0, n, b))
        again *= touched / -(-n // c)
    return again


# --- The journal ---


class Journal:
    """Which blocks are done. A line each, so that what was written when the program ended is no more than half a line."""

    def __init__(self, path: str | None, key: dict[str, Any], is_first: bool) -> None:
        self._lock = threading.Lock()
        self.path = path
        self.done: set[int] = set()
        self._file: Any = None
        if path is None:
            return
        head = json.dumps(key, sort_keys=True)
        if is_first:
            lines = _lines(path)
            if not lines or lines[0] != head:
                with open(path, "w") as file:
                    file.write(head + "\n")
        lines = _lines(path)
        self.done = {int(line) for line in lines[1:]}
        self._file = open(path, "a")

    def note(self, number: int) -> None:
        """A block is done, and with the system."""
        with self._lock:
            self.done.add(number)
            if self._file is not None:
                self._file.write(f"{number}\n")
                self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """All is done."""
        self.close()
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path)


def _lines(path: str) -> list[str]:
    """Whole lines only."""
    try:
        with open(path) as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def _knows(path: str | None, key: dict[str, Any]) -> bool:
    lines = [] if path is None else _lines(path)
    return bool(lines) and lines[0] == json.dumps(key, sort_keys=True)


# --- The move ---


def _move(
    source: Side, target: Side, block: tuple[int, ...], journal: Journal, team: Team | None, workers: int, bar: Any
) -> tuple[int, int]:
    """Copies block by block; how many were copied, and how many had been."""
    rank, size = (0, 1) if team is None else (team.rank, team.size)
    copied = skipped = 0

    def one(region: Region) -> int:
        values = source.read(region)
        target.write(region, values)
        return int(values.nbytes)

    running: dict[Future[int], int] = {}

    def reap(enough: int) -> None:
        nonlocal copied
        while len(running) > enough:
            over, _ = wait(running, return_when=FIRST_COMPLETED)
            sizes = [(running.pop(future), future.result()) for future in over]
            target.sync()
            for number, nbytes in sizes:
                journal.note(number)
                copied += 1
                if bar is not None:
                    bar.update(nbytes)

    with ThreadPoolExecutor(workers, "pario-rechunk") as pool:
        try:
            for number, region in enumerate(_regions(source.shape, block)):
                if number % size != rank:
                    continue
                if number in journal.done:
                    skipped += 1
                    if bar is not None:
                        bar.update(math.prod(s.stop - s.start for s in region) * source.dtype.itemsize)
                    continue
                reap(workers - 1)
                running[pool.submit(one, region)] = number
            reap(0)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return copied, skipped


def rechunk(
    source: Any,
    target: Any,
    chunks: Any = None,
    max_mem: Any = "256MiB",
    *,
    workers: int | None = None,
    progress: bool = False,
    resume: bool = True,
    journal: str | None = None,
    between: str | None = None,
    comm: Any = None,
    url: Any = None,
    **how: Any,
) -> RechunkReport:
    """Copies an array into other chunks, or into another format, with at most ``max_mem`` bytes of buffers. What the service holds of the
    array in between, if there is one, is not among them.

    ``source`` and ``target`` are arrays of pario, zarr, h5py or numpy, or names: ``"pario:///path"``, ``"x.npy"``, ``"x.zarr"``,
    ``"x.h5:/data"``. A target that is named is created, with ``chunks`` and with whatever else its format takes (``compressors=``,
    ``compression=``, ``layout=``). ``between`` is a directory for the array in between, if one is needed; it is beside the target otherwise.

    A call that was interrupted goes on when it is made again, unless ``resume`` is false; the journal is beside a target that is a file,
    and where ``journal`` says for any other. An HDF5 file whose writer was killed may be damaged, by that library's own rules. With a team
    all members call it and share the blocks. ``progress`` shows a bar of ``tqdm`` where that is installed.

    >>> report = pario.rechunk(np.arange(12.0).reshape(3, 4), "pario:///rechunked")
    >>> report.in_two_steps, pario.load("/rechunked")[2, 1]
    (False, np.float64(9.0))
    """
    room = _size(max_mem)
    read = _side_of(source, url)
    team = None if comm is None else Team.of(comm, None if url is None else _service.connect(url))
    with contextlib.ExitStack() as ends:
        ends.callback(read.close)
        wanted: tuple[int, ...] | None = None
        if chunks is not None:
            given = (chunks,) * len(read.shape) if isinstance(chunks, (int, np.integer)) else chunks
            wanted = tuple(int(c) for c in given)
            if len(wanted) != len(read.shape) or any(c < 1 for c in wanted):
                raise ValueError(f"chunks: {wanted} does not fit an array of shape {read.shape}; give one length of at least 1 per dimension")
            wanted = tuple(min(c, n) or 1 for c, n in zip(wanted, read.shape))
        name = os.fspath(target) if isinstance(target, (str, os.PathLike)) else None
        key = {
            "rechunk": 1,
            "source": source if isinstance(source, str) else str(getattr(source, "path", type(source).__name__)),
            "shape": list(read.shape),
            "dtype": str(read.dtype),
            "chunks": None if wanted is None else list(wanted),
            "max_mem": room,
        }
        is_first = team is None or team.rank == 0
        journal_path = journal if journal is not None else _journal_beside(name)
        if name is not None and is_first and not (resume and _knows(journal_path, key) and _is_there(name, url)):
            _create(name, read, wanted, url, how)
            if journal_path is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(journal_path)
        if not resume and is_first and journal_path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.remove(journal_path)
        if team is not None:
            team.barrier()
        write = _side_of(target if name is None else name, url, "r+")
        ends.callback(write.close)
        if write.shape != read.shape:
            raise ValueError(f"target: shape {write.shape}, but the source has {read.shape}")
        if team is not None and team.size > 1 and isinstance(write, _Hdf5Side):
            raise ValueError("target: an HDF5 file is written by one process; call rechunk without a team")
        if workers is None:
            workers = min(4, os.cpu_count() or 1) if read.is_parallel and write.is_parallel else 1
        block, workers = _fitting(read, write, write.chunks, read.chunks, room, workers)
        again = _read_again(read.shape, block, read.chunks)
        log = Journal(journal_path, key, is_first)
        ends.callback(log.close)
        bar = _bar(progress, math.prod(read.shape) * read.dtype.itemsize)
        if bar is not None:
            ends.callback(bar.close)
        blocks = math.prod(-(-n // b) for n, b in zip(read.shape, block))
        # What an earlier call has done is not read again.
        in_two_steps = again * (blocks - len(log.done)) > _MOST_READ_AGAIN * blocks
        if in_two_steps:
            middle = ends.enter_context(_between(read, between or _place_of(name), team))
            first, threads = _fitting(read, middle, read.chunks, None, room, workers)
            _move(read, middle, first, Journal(None, {}, True), team, threads, None)
            if team is not None:
                team.barrier()
            copied, skipped = _move(middle, write, block, log, team, workers, bar)
        else:
            copied, skipped = _move(read, write, block, log, team, workers, bar)
        if team is not None:
            team.barrier()
        if is_first:
            log.remove()
        nbytes = math.prod(read.shape) * read.dtype.itemsize
        return RechunkReport(nbytes, copied, skipped, block, in_two_steps, again)


def _journal_beside(name: str | None) -> str | None:
    if name is None or name.startswith("pario:"):
        return None
    parts = _hdf5_parts(name)
    return f"{(parts[0] if parts else name).rstrip('/')}.rechunk"


def _place_of(name: str | None) -> str:
    if name is None or name.startswith("pario:"):
        return tempfile.gettempdir()
    return os.path.dirname(os.path.abspath(name))


def _is_there(name: str, url: Any) -> bool:
    """Whether the target of an earlier call is there and can be opened."""
    try:
        _side_of(name, url, "r+").close()
    except (OSError, ValueError, KeyError):
        return False
    return True


def _fitting(
    read: Side, write: Side, unit: tuple[int, ...] | None, other: tuple[int, ...] | None, room: int, workers: int
) -> tuple[tuple[int, ...], int]:
    """A block, and as many workers as have room for one each."""
    itemsize = max(1, read.dtype.itemsize)

    def held(side: Side) -> int:
        return 0 if side.chunks is None else side.held_chunks * math.prod(side.chunks) * itemsize

    least = math.prod(min(u, n) or 1 for u, n in zip(unit or (1,) * len(read.shape), read.shape)) * itemsize
    while workers > 1 and room // workers - held(read) - held(write) < 2 * least:
        workers -= 1
    # The values, and a copy of them that formats make on their way.
    each = (room // workers - held(read) - held(write)) // 2
    if each < least:
        raise ValueError(
            f"max_mem: {room} bytes are too few; chunks of {least} bytes need at least {2 * least + held(read) + held(write)}"
        )
    return _block(read.shape, unit, other, each // itemsize), workers


@contextlib.contextmanager
def _between(read: Side, place: str, team: Team | None) -> Iterator[Side]:
    """A plain array, in a directory that its users serve themselves, and that goes with the last of them."""
    rank = 0 if team is None else team.rank
    directory = os.path.join(place, f".rechunk-{uuid.uuid4().hex}")
    if team is not None:
        directory = team.broadcast(directory)
    try:
        if rank == 0:
            with _service.Service(f"dir:{directory}") as made:
                made.create("/between", read.shape, read.dtype).close()
        if team is not None:
            team.barrier()
        with _service.Service(f"dir:{directory}") as service:
            side = _ParioSide(service.open("/between"), True)
            try:
                yield side
            finally:
                side.close()
                if team is not None:
                    team.barrier()
    finally:
        if rank == 0:
            shutil.rmtree(directory, ignore_errors=True)


__all__ = ["Journal", "RechunkReport", "rechunk"]
