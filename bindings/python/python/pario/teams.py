"""Teams: processes that use arrays together, each its part.

With mpi4py a communicator is a team (``comm=MPI.COMM_WORLD``); without it processes find each other by a name
(:meth:`Team.join`). Members meet through the service and talk to each other from then on.
"""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _service
from ._dtypes import as_buffer, element_of

if TYPE_CHECKING:
    from .array import Array


class Block:
    """The index that means the rank's part of an array: ``a[pario.block]`` is ``a.mine[...]``."""

    def __repr__(self) -> str:
        return "pario.block"


#: See :class:`Block`.
block = Block()


class Team:
    """Processes that work together. A member has a rank, counted from 0."""

    def __init__(self, native: _native.Team, service: _service.Service) -> None:
        self._native = native
        self.service = service
        self._plans: dict[Any, _native.Redistribution] = {}

    @classmethod
    def join(
        cls,
        name: str,
        size: int,
        rank: int | None = None,
        service: _service.Service | None = None,
    ) -> "Team":
        """Joins all others that come with this name and size; ranks are given as they come unless all say theirs."""
        service = service or _service.connect()
        return cls(_native.Team(service.connection, name, size, rank), service)

    @classmethod
    def alone(cls, service: _service.Service | None = None) -> "Team":
        """A team of one."""
        return cls(_native.Team.alone(), service or _service.connect())

    @classmethod
    def of(cls, comm: Any, service: _service.Service | None = None) -> "Team":
        """The team of a communicator of mpi4py or of a process group of PyTorch; a team is its own."""
        if isinstance(comm, cls):
            return comm
        if type(comm).__module__.startswith("torch."):
            from . import torch as beside

            return beside.team_of(comm, service or _service.connect())
        if not hasattr(comm, "Get_rank"):
            raise TypeError(f"comm: a communicator of mpi4py, a process group of PyTorch or a pario.Team is needed, not {type(comm).__name__}")
        name = comm.bcast(uuid.uuid4().hex if comm.Get_rank() == 0 else None, root=0)
        return cls.join(f"mpi-{name}", comm.Get_size(), comm.Get_rank(), service)

    @property
    def rank(self) -> int:
        """Which member this is."""
        return self._native.rank

    @property
    def size(self) -> int:
        """How many there are."""
        return self._native.size

    def barrier(self) -> None:
        """Returns when all members have called it."""
        self._native.barrier()

    def allgather(self, value: Any) -> list[Any]:
        """What every member gives, by rank; anything that can be pickled."""
        return [pickle.loads(b) for b in self._native.allgather(pickle.dumps(value))]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """What one member gives, to all."""
        given = pickle.dumps(value) if self.rank == root else b""
        return pickle.loads(self._native.allgather(given)[root])

    def alltoall(self, values: list[Any]) -> list[Any]:
        """Gives one value to each member, by rank; what all have given to this one."""
        if len(values) != self.size:
            raise ValueError(f"{len(values)} values for {self.size} members; give one for each")
        return [pickle.loads(b) for b in self._native.exchange([pickle.dumps(v) for v in values])]

    def close(self) -> None:
        """Leaves it."""
        self._plans.clear()
        self._native.close()

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<pario.Team rank {self.rank} of {self.size}>"


class Part:
    """The part of an array that one rank has in a layout. All of it is read or written at once, by a team together."""

    def __init__(self, array: "Array", layout: str, rank: int, team: Team | None) -> None:
        self.array = array
        self.layout = layout
        self.rank = rank
        self.team = team
        self.shape = tuple(_native.part_shape(array._array_text, layout, rank))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def _move(self, memory: np.ndarray[Any, Any], writes: bool) -> None:
        team = None if self.team is None else self.team._native
        if not memory.ndim:
            memory = memory.reshape(1)
        file = self.array._here()
        move = file.write_part if writes else file.read_part
        move(self.array._array_text, self.layout, self.rank, as_buffer(memory), team)

    def read(self, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Reads the part."""
        if out is not None and out.dtype != self.dtype:
            raise ValueError(f"out: type {out.dtype}, but the array has {self.dtype}")
        order: Any = self.array.order
        found: np.ndarray[Any, Any] = np.empty(self.shape, self.dtype, order=order) if out is None else out
        self._move(found, False)
        return found

    def write(self, values: Any) -> None:
        """Writes the part; values are broadcast to its shape."""
        given = np.broadcast_to(self.array._value(values), self.shape)
        ready = given.flags.c_contiguous if self.array.order == "C" else given.flags.f_contiguous
        if not ready:
            given = np.array(given, order=self.array.order, copy=True)  # type: ignore[call-overload]
        self._move(given, True)

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is Ellipsis or key == slice(None):
            self.write(value)
            return
        whole = self.read()
        whole[key] = value
        self.write(whole)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the entries are in a file: an array of them is a copy")
        found = self.read()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<pario.Part {self.layout} [{self.rank}] of {self.array.path} {self.shape} {self.dtype}>"


def redistribute(
    local: np.ndarray[Any, Any],
    source: Any,
    target: Any,
    comm: Any,
    *,
    shape: Any,
    out: np.ndarray[Any, Any] | None = None,
) -> np.ndarray[Any, Any]:
    """Brings an array of a team from one layout into another, from memory to memory, without a file.

    ``local`` is this rank's part in ``source``; what is returned is its part in ``target``. All members call it. What to send to whom
    is worked out once for each pair of layouts and kept with the team.
    """
    team = Team.of(comm)
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    element, _ = element_of(local.dtype)
    text = f"{element}[{','.join(str(int(n)) for n in extents)}]"
    names = [str(layout).format(size=team.size) for layout in (source, target)]
    key = (text, *names)
    plan = team._plans.get(key)
    if plan is None:
        plan = team._plans[key] = _native.Redistribution(team._native, text, *names)
    has, wants = (tuple(_native.part_shape(text, name, team.rank)) for name in names)
    if local.shape != has:
        raise ValueError(f"local: shape {local.shape}, but rank {team.rank} of `{names[0]}` has {has}")
    if out is None:
        out = np.empty(wants, local.dtype)
    elif out.shape != wants or out.dtype != local.dtype or not out.flags.c_contiguous:
        raise ValueError(f"out: a contiguous array of shape {wants} and type {local.dtype} is needed")
    plan.run(as_buffer(np.ascontiguousarray(local)).reshape(-1), as_buffer(out).reshape(-1))
    return out
