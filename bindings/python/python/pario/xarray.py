"""xarray over Pario: ``xarray.open_dataset("pario:///runs/7", engine="pario")``, lazily, and datasets into the service.

A dataset is a directory, its variables are arrays in it. The names of dimensions are the attribute ``_ARRAY_DIMENSIONS`` of each array,
where Zarr of version 2 has them too; arrays without it get ``name_0``, ``name_1``. Attributes of the dataset belong to the array
``.dataset``, which has no entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from . import _service
from .array import Array

_DIMENSIONS = "_ARRAY_DIMENSIONS"
_FACTS = ".dataset"


class ParioBackendArray(BackendArray):
    """An array of the service whose entries are read when a program computes with them."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

    def _outer(self, key: tuple[Any, ...]) -> Any:
        return np.asarray(self.array.oindex[key] if self.shape else self.array[...])


def _path(name: Any) -> str:
    text = str(name)
    return "/" + (text[len("pario:") :] if text.startswith("pario:") else text).strip("/")


class ParioBackend(BackendEntrypoint):
    """What xarray calls for ``engine="pario"``, and for names that begin with ``pario:``."""

    description = "Open arrays of Pario"
    url = "https://docs.rs/pario"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "url")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith("pario:")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        url: Any = None,
    ) -> Dataset:
        from xarray.conventions import decode_cf_variables

        service = _service.connect(url)
        path = _path(filename_or_obj)
        left_out = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        if service.stat(path)["kind"] == "directory":
            paths = {name: f"{path.rstrip('/')}/{name}" for name in service.list(path)}
        else:
            paths = {path.rpartition("/")[2]: path}
        variables: dict[str, Variable] = {}
        arrays: list[Array] = []
        facts: Any = {}
        for name, below in paths.items():
            found = service.stat(below)
            if found["kind"] != "file" or found["array"] is None or name in left_out:
                continue
            array = service.open(below, "r")
            arrays.append(array)
            attributes = array.attrs.asdict()
            if name == _FACTS:
                facts = attributes
                continue
            dims = attributes.pop(_DIMENSIONS, None) or [f"{name}_{d}" for d in range(array.ndim)]
            data = indexing.LazilyIndexedArray(ParioBackendArray(array))
            variables[name] = Variable(dims, data, attributes, {"layout": array.layout})
        decoded, facts, coordinates = decode_cf_variables(
            variables,
            facts,
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        dataset = Dataset(decoded, attrs=facts)
        dataset = dataset.set_coords(set(coordinates) & set(decoded))
        dataset.set_close(lambda: [array.close() for array in arrays])  # type: ignore[arg-type, func-returns-value]
        return dataset


def to_pario(dataset: Any, path: str, *, layout: Any = None, url: Any = None) -> None:
    """Writes a dataset, or one array of xarray, into a directory of the service. ``layout`` is a text for all of at least one dimension, or a dictionary
    by name. What is computed by dask is written chunk by chunk."""
    service = _service.connect(url)
    root = _path(path)
    service.mkdir(root)
    whole = dataset if isinstance(dataset, Dataset) else dataset.to_dataset(name=dataset.name or "data")
    coordinates = [str(name) for name in whole.coords if name not in whole.dims]
    facts = dict(whole.attrs) | ({"coordinates": " ".join(coordinates)} if coordinates else {})
    service.create(f"{root}/{_FACTS}", 0, "u1", overwrite=True, attrs=facts).close()
    from xarray.conventions import encode_cf_variable

    for name, variable in whole.variables.items():
        plain = variable if variable.dtype.kind in "mM" else encode_cf_variable(variable)
        if plain.dtype.kind == "O":
            plain = plain.astype("U")
        attributes = {_DIMENSIONS: list(plain.dims)} | {k: v for k, v in plain.attrs.items()}
        chosen = layout.get(name) if isinstance(layout, dict) else (layout if plain.ndim else None)
        with service.create(f"{root}/{name}", plain.shape, plain.dtype, layout=chosen, overwrite=True, attrs=attributes) as array:
            if plain.chunks is not None:
                from .dask import to_pario as compute

                compute(plain.data, array)
            else:
                array[...] = plain.values


__all__ = ["ParioBackend", "ParioBackendArray", "to_pario"]
