"""PyTorch: a storage of ``torch.distributed.checkpoint``, tensors and DTensors in checkpoints, datasets for ``DataLoader``.

    >>> import torch.distributed.checkpoint as dcp
    >>> w, b = torch.arange(12.0).reshape(3, 4), torch.zeros(4, dtype=torch.bfloat16)
    >>> _ = dcp.save({"w": w, "b": b}, storage_writer=pario.torch.ParioWriter("/runs/7/state/step-3"))
    >>> found = {"w": torch.empty(3, 4), "b": torch.ones(4, dtype=torch.bfloat16)}
    >>> dcp.load(found, storage_reader=pario.torch.ParioReader("/runs/7/state/step-3"))
    >>> torch.equal(found["w"], w) and torch.equal(found["b"], b)
    True

A checkpoint of the writer is one of :mod:`pario.checkpoint`: each tensor is an array, whatever pieces it was saved in, and a rank reads the bytes of its
own pieces with one access each. It gets its name when all of it is synced.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.utils.data
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from . import _service
from ._dtypes import DTYPE_VALUE, is_small
from .array import Array, _text
from .checkpoint import (
    _PARTIAL,
    CheckpointError,
    Shard,
    _standing,
    _Written,
    _commit,
    _crc,
    _directory,
    _inside,
    _manifest_of,
    _plain,
    _remove,
)
from .teams import Team

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_Ranges = tuple[tuple[int, int, int], ...]


# --- Tensors and numpy ---


def _numpy_type(dtype: torch.dtype) -> np.dtype[Any] | None:
    """What numpy calls a type; nothing if it has no name for it, such as bfloat16."""
    try:
        return torch.empty(0, dtype=dtype).numpy().dtype
    except TypeError:
        return None


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype_named(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise CheckpointError(f"torch {torch.__version__} has no type {name}; use the version that the checkpoint was saved with")
    return found


def _memory(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The memory of a tensor as numpy sees it: its bits, if numpy has no word for its type. Nothing is copied."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor is on {tensor.device}; bring it to the CPU")
    tensor = tensor.resolve_conj().resolve_neg()
    if _numpy_type(tensor.dtype) is None:
        return tensor.view(_BITS[tensor.dtype.itemsize]).numpy()
    return tensor.numpy()


def as_tensor(values: Any) -> torch.Tensor:
    """A tensor over the memory of an array of numpy, also of the types of ``ml_dtypes``.

    >>> pario.torch.as_tensor(np.arange(3))
    tensor([0, 1, 2])
    """
    given = np.asarray(values)
    if is_small(given.dtype) and isinstance(getattr(torch, given.dtype.name, None), torch.dtype):
        return torch.from_numpy(given.view(f"i{given.itemsize}")).view(_dtype_named(given.dtype.name))
    if not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    if any(stride < 0 for stride in given.strides):
        given = given.copy()
    try:
        return torch.from_numpy(given)
    except TypeError:
        raise TypeError(f"torch has no type for entries of {given.dtype}; convert them first, such as with .astype('i8')") from None


# --- DTensors: placements as pieces ---

_Runs = list[tuple[int, int]]


def _cut(runs: _Runs, count: int) -> list[_Runs]:
    """Neighbouring parts of a choice of indices, as ``torch.chunk`` cuts: all but the last ones are equally long, some may be empty.

    >>> _cut([(0, 5)], 4)
    [[(0, 2)], [(2, 4)], [(4, 5)], []]
    """
    length = -(-sum(stop - start for start, stop in runs) // count)
    parts: list[_Runs] = []
    left = list(runs)
    for _ in range(count):
        part: _Runs = []
        room = length
        while room and left:
            start, stop = left.pop(0)
            taken = min(stop, start + room)
            part.append((start, taken))
            room -= taken - start
            if taken < stop:
                left.insert(0, (taken, stop))
        parts.append(part)
    return parts


def _chosen(extent: int, dimension: int, ndim: int, placements: Sequence[Any], mesh: Sequence[int], at: Sequence[int]) -> _Runs:
    """The indices of one dimension that a member of a mesh has, in the order of its local tensor."""
    runs: _Runs = [(0, extent)] if extent else []
    for placement, count, own in zip(placements, mesh, at, strict=True):
        if placement.is_partial():
            raise ValueError(f"{placement}: a DTensor whose values are sums that nobody added up cannot be saved; redistribute it first")
        its = getattr(placement, "dim", None)
        if its is None or its % ndim != dimension:
            continue
        # Shards of shards from the right to the left take turns.
        outer = _cut(runs, int(getattr(placement, "split_factor", 1)))
        runs = [run for part in outer for run in _cut(part, count)[own]]
    joined: _Runs = []
    for start, stop in runs:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        elif start < stop:
            joined.append((start, stop))
    return joined


def _blocks(tensor: Any) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """The pieces of a DTensor that are here: indices in the whole, and in the local tensor."""
    mesh = tensor.device_mesh
    at = mesh.get_coordinate()
    if at is None:
        return
    shape, local = tuple(tensor.shape), tuple(tensor.to_local().shape)
    axes = [_chosen(n, d, len(shape), tensor.placements, tuple(mesh.shape), at) for d, n in enumerate(shape)]
    has = tuple(sum(stop - start for start, stop in runs) for runs in axes)
    if has != local:
        raise ValueError(f"{tensor.placements} of {shape} on {tuple(mesh.shape)}: the local tensor has shape {local}, but {has} was expected")
    lined = []
    for runs in axes:
        ends = itertools.accumulate(stop - start for start, stop in runs)
        lined.append([(slice(a, b), slice(end - (b - a), end)) for (a, b), end in zip(runs, ends)])
    for block in itertools.product(*lined):
        yield tuple(whole for whole, _ in block), tuple(here for _, here in block)


def is_dtensor(leaf: Any) -> bool:
    """Whether it is a tensor of several processes."""
    return hasattr(leaf, "placements") and hasattr(leaf, "device_mesh")


def shards_of(leaf: torch.Tensor) -> list[Shard] | None:
    """The pieces of a DTensor that are here; nothing if it is a plain tensor."""
    if not is_dtensor(leaf):
        return None
    values = values_of(leaf.to_local())  # type: ignore[attr-defined]
    return [Shard(tuple(leaf.shape), whole, values[here]) for whole, here in _blocks(leaf)]


def values_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The entries with the type that numpy has for them, or ``ml_dtypes``."""
    memory = _memory(tensor.detach().cpu())
    return memory.view(type_of(tensor.dtype))


def type_of(dtype: torch.dtype) -> np.dtype[Any]:
    """The type of numpy or ``ml_dtypes``."""
    found = _numpy_type(dtype)
    if found is not None:
        return found
    try:
        import ml_dtypes

        small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _name_of(dtype)))
    except (ImportError, AttributeError):
        raise TypeError(f"numpy has no type for {dtype}; install ml_dtypes, or save by torch.distributed.checkpoint") from None
    return small


def read_into(array: Array, key: Any, out: torch.Tensor) -> None:
    """Reads what an index selects into a tensor: straight into its memory if that is the CPU's and its type that of the array."""
    if out.device.type != "cpu" or out.is_conj() or out.is_neg():
        out.detach().copy_(as_tensor(array.get(key)))
        return
    memory = _memory(out)
    if _numpy_type(out.dtype) is None:
        if array.dtype.name not in (_name_of(out.dtype), f"void{8 * out.dtype.itemsize}"):
            raise ValueError(f"out: type {out.dtype}, but the array has {array.dtype}")
        memory = memory.view(array.dtype)
    array.get(key, memory)


def like_it(wish: torch.Tensor, read: Callable[[tuple[slice, ...]], np.ndarray[Any, Any]]) -> torch.Tensor:
    """A tensor with the type, device and placements of another, of what is read."""
    if not is_dtensor(wish):
        return _tensor_of(read((slice(None),) * wish.ndim), wish.dtype).to(wish.device)
    from torch.distributed.tensor import DTensor

    before = wish.to_local()  # type: ignore[attr-defined]
    local = torch.empty(before.shape, dtype=wish.dtype)
    for whole, here in _blocks(wish):
        local[here] = _tensor_of(read(whole), wish.dtype)
    made: torch.Tensor = DTensor.from_local(
        local.to(before.device),
        wish.device_mesh,  # type: ignore[attr-defined]
        wish.placements,  # type: ignore[attr-defined]
        run_check=False,
        shape=wish.shape,
        stride=wish.stride(),
    )
    return made


def _tensor_of(values: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    if values.dtype.kind == "V" and values.dtype.names is None and values.dtype.name.startswith("void"):
        # A type of ml_dtypes, which is not installed.
        return torch.from_numpy(values.view(f"i{values.itemsize}")).view(dtype)
    return as_tensor(values).to(dtype)


def team_of(group: Any, service: _service.Service) -> Team:
    """The team of a process group."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError("comm: this process is not in the group")
    name = [uuid.uuid4().hex if rank == 0 else None]
    dist.broadcast_object_list(name, src=dist.get_global_rank(group, 0), group=group)
    return Team.join(f"torch-{name[0]}", size, rank, service)


# --- torch.distributed.checkpoint ---


def _state(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path).removeprefix("pario://")
    if not text.strip("/"):
        raise ValueError("path: the root cannot be a checkpoint; name a directory below it")
    return _directory(text)


def _step_of(path: str) -> int:
    name = path.rpartition("/")[2].removeprefix("step-")
    return int(name) if name.isdigit() else 0


@dataclasses.dataclass
class _Orders:
    """What a rank has to know to write its pieces: where, and which array each tensor is."""

    partial: str
    numbers: dict[str, int]


@dataclasses.dataclass
class _Wrote:
    """A piece that was written: its array, its indices, its checksum."""

    number: int
    ranges: _Ranges
    crc: int


def _ranges(offsets: Sequence[int], sizes: Sequence[int]) -> _Ranges:
    return tuple((o, o + n, 1) for o, n in zip(offsets, sizes, strict=True))


class ParioWriter(StorageWriter):
    """Saves for ``torch.distributed.checkpoint.save`` and ``async_save`` into a directory of Pario.

    ``path`` is the checkpoint itself; ``checkpoint_id`` of the call names another. One that is there is replaced when the new one is whole. If its name is
    ``step-N``, :func:`pario.checkpoints` lists it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, url: Any = None) -> None:
        self.url = _service._resolved(url)
        self.path = None if path is None else _state(path)
        self._id = uuid.uuid4().hex

    @property
    def _service(self) -> _service.Service:
        return _service.connect(self.url)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id is not None:
            self.path = _state(checkpoint_id)
        self._id = uuid.uuid4().hex

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise ValueError("use_collectives: all ranks of Pario write one checkpoint together; leave it at True")
        if self.path is None:
            raise ValueError("path: no checkpoint is named; give ParioWriter a path, or save a checkpoint_id")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The coordinator makes the arrays, beside the name of the checkpoint."""
        assert self.path is not None
        service, parent = self._service, self.path.rpartition("/")[0]
        if parent:
            service.mkdir(parent)
        begun = f"{self.path.rpartition('/')[2]}{_PARTIAL}"
        for name in service.list(parent or "/"):
            if name.startswith(begun):
                # What is left of a saving that died.
                _remove(service, f"{parent}/{name}")
        partial = f"{self.path}{_PARTIAL}{self._id}"
        service.mkdir(partial)
        numbers: dict[str, int] = {}
        facts: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
        for item in (item for plan in plans for item in plan.items):
            name = item.index.fqn
            number = numbers.setdefault(name, len(numbers))
            if item.type == WriteItemType.BYTE_IO:
                continue
            assert item.tensor_data is not None
            fact = (tuple(item.tensor_data.size), item.tensor_data.properties.dtype)
            if name not in facts:
                facts[name] = fact
                _create(service, f"{partial}/t{number}", *fact)
            elif facts[name] != fact:
                raise ValueError(f"{name} has another shape or type at another rank: {facts[name]} and {fact}")
        return [
            dataclasses.replace(plan, storage_data=_Orders(partial, {i.index.fqn: numbers[i.index.fqn] for i in plan.items}))
            for plan in plans
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Every rank writes its pieces and syncs them."""
        orders: _Orders = plan.storage_data
        service = self._service
        results = []
        arrays = _Written(service.open)
        try:
            for item in plan.items:
                number = orders.numbers[item.index.fqn]
                path = f"{orders.partial}/t{number}"
                data = planner.resolve_data(item)
                if isinstance(data, io.BytesIO):
                    values = np.frombuffer(data.getbuffer(), "u1")
                    service.create(path, values.shape, "u1").close()
                    ranges = _ranges((0,), values.shape)
                else:
                    assert item.tensor_data is not None
                    chunk = item.tensor_data.chunk
                    ranges = _ranges(chunk.offsets, chunk.sizes)
                    if data.dtype != item.tensor_data.properties.dtype:
                        raise ValueError(f"{item.index.fqn}: the plan says {item.tensor_data.properties.dtype}, but the planner gives {data.dtype}")
                    values = _memory(data.detach().cpu()).view(arrays[path].dtype)
                arrays[path][tuple(slice(*_plain(r)) for r in ranges) or ...] = values
                results.append(WriteResult(item.index, values.nbytes, _Wrote(number, ranges, _crc(values))))
            arrays.sync()
        finally:
            arrays.close()
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """The coordinator writes what the checkpoint holds, and gives it its name."""
        assert self.path is not None
        wrote = [(result.index.fqn, result.storage_data) for one in results for result in one]
        numbers = {fqn: piece.number for fqn, piece in wrote}
        tensors = {}
        for fqn, facts in metadata.state_dict_metadata.items():
            if isinstance(facts, TensorStorageMetadata):
                said = facts.properties
                tensors[fqn] = {"shape": list(facts.size), "dtype": _name_of(said.dtype), "requires_grad": said.requires_grad}
        missing = sorted(set(metadata.state_dict_metadata) - set(numbers))
        if missing:
            raise CheckpointError(f"{self.path}: nobody wrote {', '.join(missing)}; the planner left them out")
        planned = io.BytesIO()
        torch.save(metadata.planner_data, planned)
        manifest = {
            "version": 1,
            "step": _step_of(self.path),
            "tree": {"dict": {fqn: {"tensor": number} for fqn, number in sorted(numbers.items(), key=lambda n: n[1])}},
            "pieces": [(piece.number, piece.ranges, piece.crc) for _, piece in wrote],
            "torch": {"tensors": tensors, "planner": base64.b64encode(planned.getvalue()).decode()},
        }
        _commit(self._service, f"{self.path}{_PARTIAL}{self._id}", self.path, manifest)

    @property
    def checkpoint_id(self) -> str | None:
        """Which checkpoint is saved next."""
        return self.path

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.path, save_id=self._id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return os.fspath(checkpoint_id).startswith("pario://")


def _create(service: _service.Service, path: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """An array of a type that numpy may have no word for."""
    known = _numpy_type(dtype)
    if known is not None:
        service.create(path, shape, known).close()
        return
    if dtype.itemsize not in _BITS:
        raise TypeError(f"{dtype}: tensors of this type cannot be saved")
    text, value = _text(f"bytes({dtype.itemsize})", shape, "C"), f'"{_name_of(dtype)}"'.encode()
    service.connection.open(path, "x", array=text, values=[(DTYPE_VALUE, value)]).close()


class ParioReader(StorageReader):
    """Loads what :class:`ParioWriter` saved, or :func:`pario.save_checkpoint`, for ``torch.distributed.checkpoint.load``.

    What was saved as a piece inside a part that is loaded is compared with its checksum, unless ``verify`` is false.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, url: Any = None, verify: bool = True) -> None:
        self.url = _service._resolved(url)
        self.path = None if path is None else _state(path)
        self.verify = verify
        self._place = ""
        self._manifest: dict[str, Any] | None = None

    @property
    def _service(self) -> _service.Service:
        return _service.connect(self.url)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id is not None:
            self.path = _state(checkpoint_id)
        self._manifest = None

    def _read_manifest(self) -> dict[str, Any]:
        if self.path is None:
            raise ValueError("path: no checkpoint is named; give ParioReader a path, or load a checkpoint_id")
        if self._manifest is None:
            self._place = _standing(self._service, self.path)
            self._manifest = _manifest_of(self._service, self._place)
        return self._manifest

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds. Each tensor is one piece, for so it lies there."""
        self._manifest = None
        manifest = self._read_manifest()
        said = manifest.get("torch", {"tensors": {}, "planner": None})
        facts: dict[str, Any] = {}
        for fqn, number in self._numbers(manifest).items():
            tensor = said["tensors"].get(fqn)
            if tensor is None and "torch" in manifest:
                facts[fqn] = BytesStorageMetadata()
                continue
            if tensor is None:
                with self._service.open(f"{self._place}/t{number}", "r") as array:
                    dtype = as_tensor(np.empty(0, array.dtype)).dtype
                    tensor = {"shape": array.shape, "dtype": _name_of(dtype), "requires_grad": False}
            size = torch.Size(tensor["shape"])
            properties = TensorProperties(dtype=_dtype_named(tensor["dtype"]), requires_grad=tensor["requires_grad"])
            whole = ChunkStorageMetadata(torch.Size([0] * len(size)), size)
            facts[fqn] = TensorStorageMetadata(properties, size, [whole])
        planned = said["planner"]
        data = None if planned is None else torch.load(io.BytesIO(base64.b64decode(planned)), weights_only=True)
        return Metadata(facts, planner_data=data, storage_meta=StorageMeta(checkpoint_id=self.path))

    @staticmethod
    def _numbers(manifest: dict[str, Any]) -> dict[str, int]:
        """The array of every tensor; those of a tree by their names with dots between, as torch joins them."""
        found: dict[str, int] = {}

        def walk(said: Any, name: str) -> None:
            kind, inside = next(iter(said.items()))
            if kind == "tensor":
                found[name] = inside
            elif kind != "value":
                parts = inside.items() if kind == "dict" else enumerate(inside)
                for key, part in parts:
                    walk(part, f"{name}.{key}" if name else str(key))

        walk(manifest["tree"], "")
        return found

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Every rank reads its pieces, straight into its tensors where those are in memory of the CPU."""
        manifest = self._read_manifest()
        numbers, service = self._numbers(manifest), self._service
        pieces: dict[int, list[tuple[_Ranges, int]]] = {}
        for number, ranges, crc in manifest["pieces"] if self.verify else []:
            pieces.setdefault(number, []).append((tuple(map(tuple, ranges)), crc))
        arrays: dict[int, Array] = {}
        try:
            for item in plan.items:
                number = numbers[item.storage_index.fqn]
                if number not in arrays:
                    arrays[number] = service.open(f"{self._place}/t{number}", "r")
                array, known = arrays[number], pieces.get(number, [])
                if item.type == LoadItemType.BYTE_IO:
                    whole = np.asarray(array[...])
                    _compare(array, whole, _ranges((0,), whole.shape), known)
                    planner.load_bytes(item, io.BytesIO(whole.tobytes()))
                    continue
                offset = item.storage_index.offset or (0,) * len(item.lengths)
                first = [o + within for o, within in zip(offset, item.storage_offsets, strict=True)]
                ranges = _ranges(first, item.lengths)
                target = planner.resolve_tensor(item).detach()
                dtype = self._dtype(manifest, item.storage_index.fqn, array)
                is_straight = target.device.type == "cpu" and target.dtype == dtype and not target.is_conj() and not target.is_neg()
                found = target if is_straight else torch.empty(tuple(item.lengths), dtype=dtype)
                memory = _memory(found).view(array.dtype)
                array.get(tuple(slice(*_plain(r)) for r in ranges) or ..., out=memory)
                _compare(array, memory, ranges, known)
                if not is_straight:
                    target.copy_(found)
                planner.commit_tensor(item, target)
        finally:
            for array in arrays.values():
                array.close()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @staticmethod
    def _dtype(manifest: dict[str, Any], fqn: str, array: Array) -> torch.dtype:
        said = manifest.get("torch", {"tensors": {}})["tensors"].get(fqn)
        return as_tensor(np.empty(0, array.dtype)).dtype if said is None else _dtype_named(said["dtype"])

    @property
    def checkpoint_id(self) -> str | None:
        """Which checkpoint is loaded next."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return os.fspath(checkpoint_id).startswith("pario://")


def _compare(array: Array, found: np.ndarray[Any, Any], ranges: _Ranges, pieces: list[tuple[_Ranges, int]]) -> None:
    """What was saved as a piece inside a region is compared with its checksum."""
    for piece, crc in pieces:
        inside = _inside(piece, ranges)
        if inside is not None and _crc(found[inside] if inside else found) != crc:
            raise CheckpointError(f"{array.path}: the checksum of a piece does not fit; load another checkpoint")


# --- Datasets ---


class ArrayDataset(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Samples that are the entries of arrays along their first dimension, for ``DataLoader`` with any number of workers, forked or spawned.

    A batch is one access per array. With several arrays a sample is a tuple; ``transform`` is given each sample.

    >>> x = pario.save("/samples", np.arange(12.0).reshape(6, 2))
    >>> loader = torch.utils.data.DataLoader(pario.torch.ArrayDataset(x), batch_size=4)
    >>> [batch.shape for batch in loader]
    [torch.Size([4, 2]), torch.Size([2, 2])]
    """

    def __init__(self, *arrays: Array | str, transform: Callable[[Any], Any] | None = None, url: Any = None) -> None:
        if not arrays:
            raise ValueError("arrays: give at least one")
        self.arrays = tuple(a if isinstance(a, Array) else _service.connect(url).open(a, "r") for a in arrays)
        self.transform = transform
        lengths = {len(a) for a in self.arrays}
        if len(lengths) > 1:
            raise ValueError(f"arrays: their first dimensions have different extents: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"sample {index} of {n}")
        return self._sample([as_tensor(a[index]) for a in self.arrays])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples of a batch."""
        columns = [as_tensor(a.oindex[list(indices)]) for a in self.arrays]
        return [self._sample([column[i] for column in columns]) for i in range(len(indices))]

    def _sample(self, parts: list[torch.Tensor]) -> Any:
        sample = parts[0] if len(parts) == 1 else tuple(parts)
        return sample if self.transform is None else self.transform(sample)


__all__ = ["ArrayDataset", "ParioReader", "ParioWriter", "as_tensor"]
