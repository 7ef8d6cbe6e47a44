"""Zarr: the test classes of its stores, arrays over both forms, and programs that write at the same time."""

import asyncio
import multiprocessing
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import pario

zarr = pytest.importorskip("zarr", minversion="3")

from zarr.core.buffer import cpu  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

import pario._locks  # noqa: E402
import pario.zarr  # noqa: E402

from test_indexing import content, random_index, same, shapes  # noqa: E402


class TestStore(StoreTests[pario.zarr.ParioStore, cpu.Buffer]):
    """zarr-python's own tests of a store. They are coroutines, which run here without a plugin."""

    store_cls = pario.zarr.ParioStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, url, path):
        return {"root": f"{path}.zarr", "url": url}

    @pytest.fixture
    def store(self, open_kwargs):
        return asyncio.run(self.store_cls.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    async def set(self, store, key, value):
        store.service.mkdir(store._path(key).rpartition("/")[0] or "/")
        file = store.service.connection.open(store._path(key), "a")
        file.resize(0)
        data = value.to_bytes()
        if data:
            file.write_bytes(0, data)
        file.close()

    async def get(self, store, key):
        file = store.service.connection.open(store._path(key), "r")
        return self.buffer_cls.from_bytes(file.read_bytes(0, file.size()))

    def test_store_repr(self, store):
        assert repr(store) == f"ParioStore({store.root!r}, url={store.service.url!r})"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.mark.parametrize("form", ["store", "sharded", "compressed", "virtual"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_arrays_are_those_of_numpy(service, path, form, ndim):
    rng = random.Random(ndim)
    for number, dtype in enumerate(["f8", "i2", ">i4", "c8", "?"]):
        shape = tuple(max(1, n) for n in shapes(rng, ndim))
        chunks = tuple(rng.randint(1, n + 1) for n in shape)
        model = content(shape, dtype, number)
        name = f"{path}-{number}"
        if form == "virtual":
            z = pario.zarr.virtual(service.create(name, shape, dtype, order=rng.choice("CF")), chunks)
        else:
            how = {"compressors": None}
            if form == "compressed":
                how = {}
            if form == "sharded":
                how["shards"] = tuple(2 * c for c in chunks)
            store = pario.zarr.ParioStore(name, url=service.url)
            z = zarr.create_array(store, shape=shape, chunks=chunks, dtype=dtype, **how)
        z[...] = model
        assert np.array_equal(z[...], model)
        for i in range(12):
            index = tuple(slice(*sorted(rng.sample(range(n + 1), 2)), rng.choice([None, 1, 2])) for n in shape)
            values = content(model[index].shape, dtype, i)
            z[index] = values
            model[index] = values
            assert np.array_equal(z[index], model[index])
        lists = [sorted(rng.sample(range(n), rng.randint(1, n))) for n in shape]
        z.oindex[tuple(lists)] = 1
        model[np.ix_(*lists)] = 1
        points = tuple(np.array([rng.randrange(n) for _ in range(4)]) for n in shape)
        z.vindex[points] = 0
        model[points] = 0
        assert np.array_equal(z[...], model), (form, dtype, shape, chunks)
        assert np.array_equal(z.oindex[tuple(lists)], model[np.ix_(*lists)])


def test_a_view_is_the_array(service, path):
    a = service.create(path, (10, 7), "f4", layout="(block, *) onto 2", attrs={"unit": "K"})
    a[...] = np.arange(70).reshape(10, 7)
    z = pario.zarr.virtual(a, (4, 3))
    assert (z.shape, z.chunks, z.dtype, dict(z.attrs)) == ((10, 7), (4, 3), np.float32, {"unit": "K"})
    z[3:9, 2:4] = -1
    assert (a[3:9, 2:4] == -1).all() and a[3, 4] == 25
    reading = pario.zarr.virtual(service.open(path, "r"))
    with pytest.raises(ValueError, match="read-only|read only"):
        reading[0] = 1
    with pytest.raises(ValueError, match="chunks"):
        pario.zarr.virtual(a, (4,))


def _write(url, name, form, rank, size, shape):
    """Every process its rows, which lie across the chunks, and its columns of the rest."""
    if form == "virtual":
        z = pario.zarr.virtual(pario.open(name, url=url), (7, 5))
    else:
        z = zarr.open_array(pario.zarr.ParioStore(name, url=url), mode="r+")
    rows = shape[0] // 2
    mine = range(rank, rows, size)
    for row in mine:
        z[row] = np.arange(shape[1]) + row * 1000
    first, end = rank * shape[1] // size, (rank + 1) * shape[1] // size
    z[rows:, first:end] = np.arange(rows, shape[0])[:, None] * 1000 + np.arange(first, end)


@pytest.mark.parametrize("form", ["zero", "filled", "virtual"])
@pytest.mark.parametrize("how", ["threads", "processes"])
def test_writing_at_the_same_time_loses_nothing(service, path, form, how):
    shape, size = (40, 33), 4
    due = np.arange(shape[0])[:, None] * 1000 + np.arange(shape[1])
    for number in range(3):
        name = f"{path}-{number}"
        if form == "virtual":
            service.create(name, shape, "i8")
        else:
            fill = 0 if form == "zero" else 7
            store = pario.zarr.ParioStore(name, url=service.url)
            zarr.create_array(store, shape=shape, chunks=(7, 5), dtype="i8", compressors=None, fill_value=fill)
        arguments = [(service.url, name, form, rank, size, shape) for rank in range(size)]
        if how == "threads":
            workers = [threading.Thread(target=_write, args=a) for a in arguments]
            [w.start() for w in workers]
            [w.join() for w in workers]
        else:
            with multiprocessing.get_context("spawn").Pool(size) as pool:
                pool.starmap(_write, arguments)
        if form == "virtual":
            found = service.open(name)[...]
        else:
            found = zarr.open_array(pario.zarr.ParioStore(name, url=service.url), mode="r")[...]
        assert np.array_equal(found, due)
        if how == "processes":
            break


def _write_blocks(url, name, number, blocks, edge, shape):
    """The blocks of one worker, as dask computes and stores its chunks."""
    z = zarr.open_array(pario.zarr.ParioStore(name, url=url), mode="r+")
    for block in blocks[number::4]:
        index = tuple(slice(b * edge, (b + 1) * edge) for b in block)
        z[index] = np.arange(np.prod(shape)).reshape(shape)[index]


@pytest.mark.parametrize(
    "form, how",
    [("sharded", "threads"), ("sharded, uncompressed", "threads"), ("compressed", "threads"), ("v2", "threads"), ("sharded", "processes"), ("compressed", "processes")],
)
def test_zarr_issue_3682_blocks_that_share_shards(service, path, form, how):
    """Blocks smaller than shards or chunks and not aligned with them, stored at the same time: zarr-python loses 30 to 50 percent of the values."""
    shape, edge = (36, 36, 36), 6
    store = pario.zarr.ParioStore(path, url=service.url)
    given = {"shape": shape, "dtype": "i8", "chunks": (5, 5, 5), "zarr_format": 3}
    if form.startswith("sharded"):
        given["shards"] = (20, 20, 20)
    if form == "sharded, uncompressed":
        given["compressors"] = None
    if form != "sharded" and form != "sharded, uncompressed":
        given["chunks"] = (16, 16, 16)
    if form == "v2":
        given["zarr_format"] = 2
    zarr.create_array(store, **given)
    blocks = list(np.ndindex(*(n // edge for n in shape)))
    random.Random(1).shuffle(blocks)
    arguments = [(service.url, path, number, blocks, edge, shape) for number in range(4)]
    if how == "threads":
        workers = [threading.Thread(target=_write_blocks, args=a) for a in arguments]
        [w.start() for w in workers]
        [w.join() for w in workers]
    else:
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            pool.starmap(_write_blocks, arguments)
    found = zarr.open_array(pario.zarr.ParioStore(path, url=service.url), mode="r")[...]
    assert np.array_equal(found, np.arange(np.prod(shape)).reshape(shape)), f"{(found != np.arange(np.prod(shape)).reshape(shape)).mean():.0%} lost"
    assert not [n for n, _ in service.walk(path) if "/.writing-" in n]


def _write_points(url, name, form, number, shape):
    if form == "virtual":
        z = pario.zarr.virtual(pario.open(name, url=url), (4, 4))
    else:
        z = zarr.open_array(pario.zarr.ParioStore(name, url=url), mode="r+")
    flat = np.arange(np.prod(shape))[number::4]
    for points in np.array_split(np.random.default_rng(number).permutation(flat), 5):
        z.vindex[np.unravel_index(points, shape)] = points


@pytest.mark.parametrize("form", ["store", "virtual", "compressed"])
def test_points_at_the_same_time(service, path, form):
    shape = (12, 10)
    if form == "virtual":
        service.create(path, shape, "i8")
    else:
        compressors = {"compressors": None} if form == "store" else {}
        zarr.create_array(pario.zarr.ParioStore(path, url=service.url), shape=shape, chunks=(4, 4), dtype="i8", fill_value=-1, **compressors)
    workers = [threading.Thread(target=_write_points, args=(service.url, path, form, n, shape)) for n in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    z = pario.zarr.virtual(service.open(path), (4, 4)) if form == "virtual" else zarr.open_array(pario.zarr.ParioStore(path, url=service.url))
    assert np.array_equal(z[...], np.arange(120).reshape(shape))
    z.vindex[([1, 1], [2, 2])] = [7, 8]
    assert z[1, 2] == 8, "of a point that is named twice the last value counts"


def test_a_lock_of_a_program_that_died_is_taken_away(service, path, monkeypatch):
    z = zarr.create_array(pario.zarr.ParioStore(path, url=service.url), shape=8, chunks=8, dtype="i8")
    z[...] = np.arange(8)
    lines = """
import os, pario, pario._locks
assert pario._locks.ChunkLock(pario.connect(), os.environ["CHUNK"]).take()
os._exit(0)
"""
    env = {**os.environ, "PARIO_URL": service.url, "CHUNK": f"{path}/c/0"}
    subprocess.run([sys.executable, "-c", lines], env=env, check=True, timeout=60)
    lock = f"{path}/c/.writing-lock-0"
    assert service.exists(lock)
    z[3] = 33
    assert z[3] == 33 and not service.exists(lock)
    # Who lives keeps it, and nobody waits for ever.
    held = pario._locks.ChunkLock(service, f"{path}/c/0")
    assert held.take() and not pario._locks.ChunkLock(service, f"{path}/c/0").take()
    monkeypatch.setattr(pario._locks, "_PATIENCE", 0.3)
    with pytest.raises(TimeoutError, match="remove .*writing-lock-0"):
        z[4] = 1
    held.release()
    z[4] = 44
    assert z[...].tolist() == [0, 1, 2, 33, 44, 5, 6, 7]
