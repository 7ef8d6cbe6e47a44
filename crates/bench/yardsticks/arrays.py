"""Slices of one array, read and written by Pario and by what people use otherwise, in turns of one process.

    python arrays.py FOLDER [quick]

Prints a line of JSON for each contestant that is absent, and one for each case: `{"case": ..., "bytes": ..., "seconds": {...}}`, the best turn of each. Every
contestant starts with the same random values on the same medium, and every read ends in a numpy array that is filled.
"""

import json
import os
import sys
import time

import numpy as np

SHAPE, CHUNK = (2048, 2048), (256, 256)


def contestants(folder, values):
    """Name, and what is indexed."""
    import pario

    # Points are one request for all of them.
    service = pario.connect(f"dir:{folder}/pario")
    made = service.create("/a", SHAPE, "f8", layout="(block, *) onto 1")
    made[...] = values
    yield "pario", made

    np.save(f"{folder}/a.npy", values)
    yield "memmap", np.load(f"{folder}/a.npy", mmap_mode="r+")

    def absent(name, error):
        print(json.dumps({"absent": name, "reason": str(error)}), flush=True)

    try:
        import zarr

        array = zarr.create_array(f"{folder}/a.zarr", shape=SHAPE, chunks=CHUNK, dtype="f8", compressors=None)
        array[...] = values
        yield "zarr", array
    except ImportError as error:
        absent("zarr", error)
    try:
        import h5py

        file = h5py.File(f"{folder}/a.h5", "w")
        yield "h5py", file.create_dataset("whole", data=values)
        yield "h5py-chunked", file.create_dataset("chunked", data=values, chunks=CHUNK)
    except ImportError as error:
        absent("h5py", error)
    try:
        import tensorstore

        array = tensorstore.open(
            {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": f"{folder}/t.zarr"},
                "metadata": {
                    "shape": list(SHAPE),
                    "data_type": "float64",
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(CHUNK)}},
                },
            },
            create=True,
        ).result()
        array[...] = values
        yield "tensorstore", array
    except ImportError as error:
        absent("tensorstore", error)


def cases():
    """Name, index, and whether it is written too."""
    rng = np.random.default_rng(1)
    yield "element", np.s_[1000, 1000], True
    yield "row", np.s_[1000], True
    yield "rows-256", np.s_[512:768], True
    yield "column", np.s_[:, 1000], True
    yield "columns-256", np.s_[:, 512:768], True
    yield "block-aligned", np.s_[512:1024, 512:1024], True
    yield "block-across", np.s_[500:1013, 500:1013], True
    yield "every-4th-row", np.s_[::4], False
    yield "every-4th-column", np.s_[:, ::4], False
    yield "points-1000", (np.sort(rng.integers(0, SHAPE[0], 1000)), rng.integers(0, SHAPE[1], 1000)), False
    yield "whole", np.s_[:, :], True


def reader(name, array, index):
    if isinstance(index[0] if isinstance(index, tuple) else index, np.ndarray):
        if name.startswith("h5py"):
            return None  # it has no such index
        if name in ("zarr", "tensorstore"):
            return lambda: np.asarray(array.vindex[index])
    if name == "tensorstore":
        return lambda: array[index].read().result()
    if name == "memmap":
        return lambda: np.array(array[index])
    return lambda: np.asarray(array[index])


def writer(name, array, index, values):
    if name == "tensorstore":
        return lambda: array[index].write(values).result()

    def write():
        array[index] = values

    return write


def best(works, turns):
    """The best turn of each, in turns, so that what slows the machine slows all."""
    found = {name: float("inf") for name in works}
    passes = {}
    for name, work in works.items():
        begin = time.perf_counter()
        work()
        passes[name] = max(1, min(200, int(0.01 / max(1e-9, time.perf_counter() - begin))))
    for _ in range(turns):
        for name, work in works.items():
            begin = time.perf_counter()
            for _ in range(passes[name]):
                work()
            found[name] = min(found[name], (time.perf_counter() - begin) / passes[name])
    return found


def main():
    folder, turns = sys.argv[1], 3 if "quick" in sys.argv[2:] else 9
    os.makedirs(folder, exist_ok=True)
    values = np.random.default_rng(0).random(SHAPE)
    arrays = dict(contestants(folder, values))
    for case, index, is_written in cases():
        due = values[index]
        works = {name: reader(name, array, index) for name, array in arrays.items()}
        works = {name: work for name, work in works.items() if work is not None}
        for name, work in works.items():
            assert np.array_equal(work(), due), (name, case)
        facts = {"case": f"read {case}", "bytes": due.nbytes, "seconds": best(works, turns)}
        print(json.dumps(facts), flush=True)
        if is_written:
            works = {name: writer(name, array, index, np.array(due)) for name, array in arrays.items()}
            facts = {"case": f"write {case}", "bytes": due.nbytes, "seconds": best(works, turns)}
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
