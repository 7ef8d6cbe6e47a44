"""Parallel files for n-dimensional arrays: write rows, read columns, in one process or thousands.

    >>> import numpy as np, pario
    >>> a = pario.create("/matrix", (4096, 4096), "f8", layout="(block, *) onto 4")
    >>> a[:1024] = np.random.rand(1024, 4096)
    >>> column = a[:, 7]
    >>> move = a.relayout("(*, block) onto 4")

No service has to run: without ``PARIO_URL`` the processes that use the directory ``.pario`` serve it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._native import __version__
from ._service import Service, connect
from .array import Array, Relayout
from .attributes import Attributes
from .checkpoint import CheckpointError, Shard, checkpoints, load_checkpoint, save_checkpoint
from .layouts import Layout, layout
from .rechunk import RechunkReport, rechunk
from .teams import Part, Team, block, redistribute


def open(path: str, mode: str = "r+", *, url: Any = None, comm: Any = None) -> Array:
    """Opens an array: ``'r'`` to read, ``'r+'`` to read and write.

    ``url`` names the service as in :func:`connect`. With ``comm``, a communicator of mpi4py or a :class:`Team`, all ranks open it together
    and ``a.mine`` is the part of each.
    """
    return Array._open(connect(url), path, mode, comm=comm)


def create(
    path: str,
    shape: Any,
    dtype: Any = "f8",
    *,
    layout: Any = None,
    order: str = "C",
    overwrite: bool = False,
    exist_ok: bool = False,
    attrs: dict[str, Any] | None = None,
    hints: dict[str, Any] | None = None,
    url: Any = None,
    comm: Any = None,
) -> Array:
    """Creates an array, of zeros, and opens it.

    ``layout`` says how it is cut into parts, such as ``"(block, *) onto 4"``; the service decides without it. An array that
    is there is an error, unless ``overwrite`` removes it or ``exist_ok`` opens it if it has the same shape and type. Directories above
    are made.
    """
    return Array._create(
        connect(url),
        path,
        shape,
        dtype,
        layout=layout,
        order=order,
        overwrite=overwrite,
        exist_ok=exist_ok,
        attrs=attrs,
        hints=hints,
        comm=comm,
    )


def save(path: str, values: Any, *, url: Any = None, **how: Any) -> Array:
    """Creates an array of these values, which replaces one of this name."""
    given = np.asarray(values)
    order = "F" if given.flags.f_contiguous and not given.flags.c_contiguous else "C"
    made = create(path, given.shape, given.dtype, **{"order": order, "overwrite": True, "url": url, **how})
    made[...] = given
    return made


def load(path: str, *, url: Any = None) -> Any:
    """All entries of an array."""
    with open(path, "r", url=url) as array:
        return array[...]


__all__ = [
    "Array",
    "Attributes",
    "CheckpointError",
    "Layout",
    "Part",
    "RechunkReport",
    "Relayout",
    "Service",
    "Shard",
    "Team",
    "__version__",
    "block",
    "checkpoints",
    "connect",
    "create",
    "layout",
    "load",
    "load_checkpoint",
    "open",
    "rechunk",
    "redistribute",
    "save",
    "save_checkpoint",
]
