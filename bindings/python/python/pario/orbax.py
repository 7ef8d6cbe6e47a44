"""A handler for Orbax: ``orbax.checkpoint.Checkpointer(pario.orbax.ParioCheckpointHandler())``.

The checkpoint lies in a directory of Pario inside the directory that Orbax names, so Orbax gives it its name, lists it and removes it as any other of
its own. A rank that restores with another sharding reads its own bytes and no others.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import orbax.checkpoint as ocp

from . import _service
from .checkpoint import CheckpointError, load_checkpoint, save_checkpoint

_INSIDE = "pario"
_STATE = "/state"


class ParioCheckpointHandler(ocp.CheckpointHandler):
    """Saves a tree of dictionaries, lists, tuples, arrays of JAX or numpy, numbers and texts.

    With ``comm``, a communicator of mpi4py or a :class:`pario.Team`, all processes call it, each with its shards.
    """

    def __init__(self, *, comm: Any = None, verify: bool = True) -> None:
        self.comm = comm
        self.verify = verify

    def save(self, directory: Any, *, args: "ParioSave") -> None:
        url = f"dir:{os.fspath(directory)}/{_INSIDE}"
        # Orbax renames the directory next: nothing of it may stay open.
        with _service.connect(url):
            save_checkpoint(_STATE, args.item, 0, comm=self.comm, url=url)

    def restore(self, directory: Any, *, args: "ParioRestore | None" = None) -> Any:
        place = f"{os.fspath(directory)}/{_INSIDE}"
        if not os.path.isdir(place):
            raise CheckpointError(f"{directory} was not saved by pario.orbax; restore it with the handler that saved it")
        url = f"dir:{place}"
        with _service.connect(url):
            like = None if args is None else args.item
            return load_checkpoint(_STATE, 0, like=like, comm=self.comm, verify=self.verify, url=url)


@ocp.args.register_with_handler(ParioCheckpointHandler, for_save=True)
@dataclasses.dataclass
class ParioSave(ocp.args.CheckpointArgs):  # type: ignore[misc]
    """What is saved."""

    item: Any


@ocp.args.register_with_handler(ParioCheckpointHandler, for_restore=True)
@dataclasses.dataclass
class ParioRestore(ocp.args.CheckpointArgs):  # type: ignore[misc]
    """What is wanted of each array: one of JAX, or a ``jax.ShapeDtypeStruct``, whose sharding the result has. What is left out comes whole."""

    item: Any = None


__all__ = ["ParioCheckpointHandler", "ParioRestore", "ParioSave"]
