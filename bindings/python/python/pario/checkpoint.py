"""Checkpoints: the state of a program that is spread over processes, saved as a whole or not at all, loaded by any other number of them.

A state is a tree of dictionaries, lists and tuples with arrays, numbers and texts in it. An array is either whole at every rank, or each rank
has :class:`Shard` values: pieces of it with the indices they have in the whole. Each tensor becomes an array of the service, so a rank
that loads reads the bytes of its own pieces and no others, whatever pieces it was saved in.

A checkpoint is a directory ``step-N``. It is written beside its name and gets it when everything is synced, in one step.
"""

from __future__ import annotations

import json
import threading
import uuid
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _service
from ._dtypes import is_of_torch
from .array import Array
from .teams import Team

_PARTIAL = ".partial-"
#: What a checkpoint is called while another one takes its name. If that never happened, it stands for it.
_REPLACED = ".replaced-"
_MANIFEST = "manifest"


@dataclass
class Shard:
    """A piece of an array: the shape of the whole, the indices of the piece (slices, also with steps), and its values, which are
    not needed for loading."""

    shape: tuple[int, ...]
    index: tuple[slice, ...] | slice
    values: Any = None

    def __post_init__(self) -> None:
        given: Any = self.index
        index: tuple[Any, ...] = given if isinstance(given, tuple) else () if given is Ellipsis else (given,)
        if len(index) > len(self.shape) or not all(isinstance(s, slice) for s in index):
            raise TypeError(f"index: {given} is not a slice for each of at most {len(self.shape)} dimensions")
        self.index = index

    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """First index, end and step in every dimension."""
        assert isinstance(self.index, tuple)
        index = self.index + (slice(None),) * (len(self.shape) - len(self.index))
        return tuple(s.indices(n) for s, n in zip(index, self.shape))


class CheckpointError(OSError):
    """A checkpoint is damaged, or does not fit what is to be loaded from it."""


@dataclass
class _Nothing:
    """A tensor of which this rank has no piece."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _shards_of(leaf: Any) -> list[Shard] | None:
    """The pieces that this rank has, if it does not have the whole."""
    if isinstance(leaf, _Nothing):
        return []
    if isinstance(leaf, Shard):
        return [leaf]
    if isinstance(leaf, (list, tuple)):
        return list(leaf) if leaf and all(isinstance(s, Shard) for s in leaf) else None
    if is_of_torch(leaf):
        from . import torch as beside

        return beside.shards_of(leaf)
    if hasattr(leaf, "addressable_shards"):
        # An array of JAX on a mesh; of replicas the first counts.
        return [Shard(tuple(leaf.shape), s.index, s.data) for s in leaf.addressable_shards if s.replica_id == 0]
    return None


def _values(leaf: Any) -> np.ndarray[Any, Any]:
    if is_of_torch(leaf):
        from . import torch as beside

        return beside.values_of(leaf)
    return np.asarray(leaf)


def _dtype(leaf: Any) -> np.dtype[Any]:
    if is_of_torch(leaf):
        from . import torch as beside

        return beside.type_of(leaf.dtype)
    found: np.dtype[Any] = np.dtype(leaf.dtype)
    return found


def _flatten(tree: Any, tensors: list[Any]) -> Any:
    """The tree as JSON, with numbers in place of its arrays."""
    if _shards_of(tree) is not None or isinstance(tree, (np.ndarray, np.generic, Array)) or hasattr(tree, "__array__"):
        tensors.append(tree)
        return {"tensor": len(tensors) - 1}
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree):
            raise TypeError("the keys of a state are texts")
        return {"dict": {key: _flatten(tree[key], tensors) for key in tree}}
    if isinstance(tree, (list, tuple)):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [_flatten(part, tensors) for part in tree]}
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return {"value": tree}
    raise TypeError(f"a state has arrays, numbers and texts; {type(tree).__name__} is none of that")


def _unflatten(said: Any, tensors: list[Any]) -> Any:
    kind, inside = next(iter(said.items()))
    if kind == "tensor":
        return tensors[inside]
    if kind == "dict":
        return {key: _unflatten(part, tensors) for key, part in inside.items()}
    if kind == "value":
        return inside
    parts = [_unflatten(part, tensors) for part in inside]
    return tuple(parts) if kind == "tuple" else parts


def _wishes(said: Any, like: Any, found: dict[int, Any]) -> None:
    """What ``like`` says about each tensor of a tree."""
    if like is None:
        return
    kind, inside = next(iter(said.items()))
    if kind == "tensor":
        found[inside] = like
    elif kind == "dict":
        for key, part in inside.items():
            _wishes(part, like.get(key), found)
    elif kind != "value":
        if len(like) != len(inside):
            raise CheckpointError(f"like: {len(like)} entries where the checkpoint has {len(inside)}")
        for part, wish in zip(inside, like):
            _wishes(part, wish, found)


def _crc(values: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(values).reshape(-1).view("u1").data)


#: Arrays that a rank has open before it makes them durable.
_TOGETHER = 32


class _Written:
    """Arrays that a rank writes. They are made durable many at a time: a disk that is asked by all at once is done sooner than one after the other."""

    def __init__(self, opened: Callable[[str], Array]) -> None:
        self._opened = opened
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, path: str) -> Array:
        found = self._arrays.get(path)
        if found is None:
            if len(self._arrays) == _TOGETHER:
                self.sync()
            found = self._arrays[path] = self._opened(path)
        return found

    def sync(self) -> None:
        """Makes all of them durable, and closes them."""
        arrays = list(self._arrays.values())
        if len(arrays) > 1:
            with ThreadPoolExecutor(min(8, len(arrays))) as pool:
                list(pool.map(Array.sync, arrays))
        elif arrays:
            arrays[0].sync()
        self.close()

    def close(self) -> None:
        """Closes what is open."""
        while self._arrays:
            self._arrays.popitem()[1].close()


def _directory(path: str) -> str:
    return "/" + path.strip("/")


def checkpoints(path: str, *, url: Any = None) -> list[int]:
    """The steps of all checkpoints below a directory, ascending. Each of them is whole."""
    service = _service.connect(url)
    try:
        names = service.list(_directory(path))
    except FileNotFoundError:
        return []
    steps = {name[5:].partition(_REPLACED)[0] for name in names if name.startswith("step-")}
    return sorted(int(step) for step in steps if step.isdigit())


class Saving:
    """A checkpoint that is being saved beside the program."""

    def __init__(self, work: Any) -> None:
        self._failure: BaseException | None = None

        def run() -> None:
            try:
                work()
            except BaseException as error:  # told by wait
                self._failure = error

        self._thread = threading.Thread(target=run, name="pario-checkpoint")
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it is saved, or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Returns when the checkpoint is there; raises why it is not."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def save_checkpoint(
    path: str,
    state: Any,
    step: int,
    *,
    comm: Any = None,
    keep: int | None = None,
    wait: bool = True,
    url: Any = None,
) -> Saving | None:
    """Saves a state as checkpoint ``step``; with a team all members call it, each with its pieces.

    It is there as a whole or not at all. Of older ones the last ``keep`` stay, this one included. Without ``wait`` the values are copied
    and travel while the program goes on; the team belongs to the saving until that is over.
    """
    service = _service.connect(url)
    team = Team.alone(service) if comm is None else Team.of(comm, service)
    tensors: list[Any] = []
    said = _flatten(state, tensors)
    if not wait:
        tensors = [_copied(leaf) for leaf in tensors]

    def work() -> None:
        _save(service, team, _directory(path), said, tensors, step, keep)

    if wait:
        work()
        return None
    return Saving(work)


def _copied(leaf: Any) -> Any:
    shards = _shards_of(leaf)
    if shards is None:
        return np.array(_values(leaf))
    if not shards:
        return _Nothing(tuple(leaf.shape), _dtype(leaf))
    return [Shard(s.shape, s.index, np.array(s.values)) for s in shards]


def _together(team: Team, work: Any) -> list[Any]:
    """What all members make, or the failure of any of them at all of them."""
    made, failure = None, None
    try:
        made = work()
    except Exception as error:
        failure = error
    all_of_them = team.allgather((made, None if failure is None else f"{type(failure).__name__}: {failure}"))
    if failure is not None:
        raise failure
    for rank, (_, text) in enumerate(all_of_them):
        if text is not None:
            raise CheckpointError(f"rank {rank} failed: {text}")
    return [one for one, _ in all_of_them]


def _save(
    service: _service.Service, team: Team, directory: str, said: Any, tensors: list[Any], step: int, keep: int | None
) -> None:
    partial = team.broadcast(f"{directory}/step-{step}{_PARTIAL}{uuid.uuid4().hex}" if team.rank == 0 else None)
    pieces = [_shards_of(leaf) for leaf in tensors]

    def facts() -> list[Any]:
        found: list[Any] = []
        for leaf, shards in zip(tensors, pieces):
            if shards is None:
                whole = _values(leaf)
                found.append((whole.shape, whole.dtype, None))
            else:
                kinds = {(tuple(s.shape), np.asarray(s.values).dtype) for s in shards}
                if len(kinds) > 1:
                    raise ValueError(f"the pieces of one tensor have several shapes or types: {kinds}")
                shape, dtype = next(iter(kinds)) if kinds else (tuple(leaf.shape), _dtype(leaf))
                found.append((shape, dtype, [s.ranges() for s in shards]))
        return found

    known = _together(team, facts)

    def create() -> None:
        if team.rank != 0:
            return
        if any(len(one) != len(known[0]) for one in known):
            raise ValueError("the ranks have states of different trees")
        service.mkdir(directory)
        for name in service.list(directory):
            if _PARTIAL in name:
                _remove(service, f"{directory}/{name}")
        service.mkdir(partial)
        for number, (shape, dtype, _) in enumerate(known[0]):
            for other in known[1:]:
                if other[number][:2] != (shape, dtype):
                    raise ValueError(f"tensor {number} has another shape or type at another rank: {other[number][:2]} and {(shape, dtype)}")
            service.create(f"{partial}/t{number}", shape, dtype).close()

    _together(team, create)

    def write() -> list[Any]:
        wrote = []
        arrays = _Written(service.open)
        try:
            for number, (leaf, shards) in enumerate(zip(tensors, pieces)):
                if shards is None:
                    if number % team.size != team.rank:
                        continue
                    whole = _values(leaf)
                    shards = [Shard(whole.shape, (), whole)]
                for shard in shards:
                    ranges = shard.ranges()
                    # Several ranks may have the same piece: the first of them writes it.
                    first = next((r for r, one in enumerate(known) if ranges in (one[number][2] or [])), team.rank)
                    if first != team.rank:
                        continue
                    values = np.asarray(shard.values)
                    array = arrays[f"{partial}/t{number}"]
                    array[tuple(slice(*_plain(r)) for r in ranges)] = values
                    wrote.append((number, ranges, _crc(values)))
            arrays.sync()
        finally:
            arrays.close()
        return wrote

    wrote = _together(team, write)

    def commit() -> None:
        if team.rank != 0:
            return
        manifest = {"version": 1, "step": step, "tree": said, "pieces": [p for one in wrote for p in one]}
        _commit(service, partial, f"{directory}/step-{step}", manifest)
        if keep is not None:
            for old in checkpoints(directory, url=service.url)[: -max(1, keep)]:
                gone = f"{directory}/step-{old}{_PARTIAL}{uuid.uuid4().hex}"
                service.rename(_standing(service, f"{directory}/step-{old}"), gone)
                _remove(service, gone)

    _together(team, commit)


def _commit(service: _service.Service, partial: str, target: str, manifest: dict[str, Any]) -> None:
    """Says what a checkpoint holds, and gives it its name."""
    file = service.connection.open(f"{partial}/{_MANIFEST}", "x")
    file.write_bytes(0, json.dumps(manifest).encode())
    file.sync()
    file.close()
    if service.exists(target):
        # A step that is saved again: the old one goes when the new one has its name.
        service.rename(target, f"{target}{_REPLACED}{uuid.uuid4().hex}")
    service.rename(partial, target)
    parent, _, name = target.rpartition("/")
    for old in _replaced(service, parent, name):
        _remove(service, old)


def _replaced(service: _service.Service, parent: str, name: str) -> list[str]:
    begun = f"{name}{_REPLACED}"
    return [f"{parent}/{other}" for other in service.list(parent or "/") if other.startswith(begun)]


def _standing(service: _service.Service, directory: str) -> str:
    """Where a checkpoint is: under its name, or beside it if the program that was to replace it died in between."""
    if not service.exists(directory):
        parent, _, name = directory.rpartition("/")
        if service.exists(parent or "/"):
            return next(iter(_replaced(service, parent, name)), directory)
    return directory


def _manifest_of(service: _service.Service, directory: str) -> dict[str, Any]:
    """What a checkpoint holds, where :func:`_standing` says it is."""
    file = service.connection.open(f"{directory}/{_MANIFEST}", "r")
    manifest: dict[str, Any] = json.loads(file.read_bytes(0, file.size()))
    file.close()
    if manifest["version"] != 1:
        raise CheckpointError(f"{directory}: a newer version wrote it; use a newer package")
    return manifest


def _plain(r: Any) -> tuple[Any, ...]:
    """A range as a slice has it, also one that goes down to the first index."""
    start, stop, step = r
    return (start, None if stop < 0 else stop, step)


def _remove(service: _service.Service, path: str) -> None:
    for below, _ in reversed(list(service.walk(path))):
        service.remove(below)
    service.remove(path)


def load_checkpoint(
    path: str,
    step: int | None = None,
    *,
    like: Any = None,
    comm: Any = None,
    verify: bool = True,
    url: Any = None,
) -> Any:
    """Loads a checkpoint, the last one if no step is said.

    ``like`` is a tree with the pieces that this rank wants in place of arrays: a :class:`Shard`, a list of them, or an array of JAX, whose
    sharding the result has. What it leaves out comes whole. Only the bytes of the pieces are read. Pieces that were saved and are inside
    those that are loaded are compared with their checksums. With a team all members call it; a failure of one is told to all.
    """
    service = _service.connect(url)
    team = Team.alone(service) if comm is None else Team.of(comm, service)
    directory = _directory(path)
    if step is None:
        steps = team.broadcast(checkpoints(directory, url=service.url) if team.rank == 0 else None)
        if not steps:
            raise FileNotFoundError(f"{path}: there is no checkpoint")
        step = steps[-1]
    kept: list[Any] = []
    # Values stay where they were loaded; the ranks tell each other only whether it went well.
    _together(team, lambda: kept.append(_load(service, _standing(service, f"{directory}/step-{step}"), like, verify)))
    return kept[0]


def _load(service: _service.Service, directory: str, like: Any, verify: bool) -> Any:
    manifest = _manifest_of(service, directory)
    wishes: dict[int, Any] = {}
    _wishes(manifest["tree"], like, wishes)
    pieces: dict[int, list[Any]] = {}
    for number, ranges, crc in manifest["pieces"]:
        pieces.setdefault(number, []).append((tuple(map(tuple, ranges)), crc))
    tensors = [
        _load_tensor(service, f"{directory}/t{number}", wishes.get(number), pieces[number] if verify else [])
        for number in range(_count(manifest["tree"]))
    ]
    return _unflatten(manifest["tree"], tensors)


def _count(said: Any) -> int:
    kind, inside = next(iter(said.items()))
    if kind == "tensor":
        return 1
    if kind == "value":
        return 0
    return sum(_count(part) for part in (inside.values() if kind == "dict" else inside))


def _load_tensor(service: _service.Service, path: str, wish: Any, pieces: list[Any]) -> Any:
    array = service.open(path, "r")
    try:
        if is_of_torch(wish):
            from . import torch as beside

            if tuple(wish.shape) != array.shape:
                raise CheckpointError(f"like: shape {tuple(wish.shape)}, but the checkpoint has {array.shape}")
            return beside.like_it(wish, lambda index: _read(array, Shard(array.shape, index).ranges(), pieces))
        if wish is not None and hasattr(wish, "sharding"):
            import jax  # type: ignore[import-not-found]

            if tuple(wish.shape) != array.shape:
                raise CheckpointError(f"like: shape {wish.shape}, but the checkpoint has {array.shape}")
            read = lambda index: _read(array, Shard(array.shape, index).ranges(), pieces)  # noqa: E731
            return jax.make_array_from_callback(array.shape, wish.sharding, read)
        shards = _shards_of(wish) if wish is not None else None
        if shards is None:
            return _read(array, Shard(array.shape, ()).ranges(), pieces)
        for shard in shards:
            if tuple(shard.shape) != array.shape:
                raise CheckpointError(f"like: shape {shard.shape}, but the checkpoint has {array.shape}")
        values = [_read(array, shard.ranges(), pieces) for shard in shards]
        return values[0] if isinstance(wish, Shard) else values
    finally:
        array.close()


def _read(array: Array, ranges: Any, pieces: list[Any]) -> np.ndarray[Any, Any]:
    """A region; what was saved as a piece inside it is compared with its checksum."""
    found = np.asarray(array.get(tuple(slice(*_plain(r)) for r in ranges) if ranges else ...))
    for piece, crc in pieces:
        inside = _inside(piece, ranges)
        if inside is not None and _crc(found[inside] if inside else found) != crc:
            raise CheckpointError(f"{array.path}: the checksum of a piece does not fit; load another step")
    return found


def _inside(piece: Any, ranges: Any) -> tuple[Any, ...] | None:
    """Where a piece lies in a region, if all of it does."""
    index = []
    for wanted, has in zip(piece, ranges):
        inner, outer = range(*wanted), range(*has)
        if not len(inner):
            index.append(slice(0, 0))
            continue
        if inner[0] not in outer or inner[-1] not in outer or wanted[2] % has[2]:
            return None
        step = wanted[2] // has[2]
        first = outer.index(inner[0])
        if step < 1:
            return None
        index.append(slice(first, first + (len(inner) - 1) * step + 1, step))
    return tuple(index)


__all__ = ["CheckpointError", "Saving", "Shard", "checkpoints", "load_checkpoint", "save_checkpoint"]
