"""Other chunks and formats: the same entries, within the bound on memory, and going on after an interruption."""

import multiprocessing
import os
import random
import signal
import tracemalloc

import numpy as np
import pytest

import pario
from pario.rechunk import Journal, _block, _read_again, _regions, _size

zarr = pytest.importorskip("zarr", minversion="3")

from test_checkpoints import members  # noqa: E402
from test_indexing import content, shapes  # noqa: E402


def test_sizes():
    assert [_size(s) for s in (5, "7", "1 KiB", "2MB", "1.5GiB")] == [5, 7, 1024, 2_000_000, 3 << 29]
    with pytest.raises(ValueError, match="max_mem: 'much'"):
        _size("much")


def test_blocks_are_whole_chunks_and_cover_all_once():
    rng = random.Random(5)
    for _ in range(300):
        shape = shapes(rng, rng.randint(0, 4))
        unit = tuple(rng.randint(1, 4) for _ in shape)
        other = tuple(rng.randint(1, 5) for _ in shape)
        least = int(np.prod([min(u, n) or 1 for u, n in zip(unit, shape)]))
        room = least + rng.randint(0, 60)
        block = _block(shape, unit, other, room)
        assert np.prod(block) <= room
        assert all(b % u == 0 or b == max(1, n) for b, u, n in zip(block, unit, shape))
        seen = np.zeros(shape, int)
        for region in _regions(shape, block):
            seen[region] += 1
        assert (seen == 1).all()
        touched, chunks = 0, np.zeros(shape)
        for region in _regions(shape, block):
            touched += int(np.prod([(s.stop - 1) // c - s.start // c + 1 for s, c in zip(region, other)]))
        due = int(np.prod([-(-n // c) for n, c in zip(shape, other)]))
        if chunks.size:
            assert _read_again(shape, block, other) == pytest.approx(touched / due)


def _made(kind, folder, url, values, chunks, number):
    if kind == "npy":
        name = str(folder / f"s{number}.npy")
        np.save(name, values)
        return name
    if kind == "zarr":
        name = str(folder / f"s{number}.zarr")
        made = zarr.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks)
        made[...] = values
        return name
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / f"s{number}.h5", "w") as file:
            file.create_dataset("g/x", data=values, chunks=chunks if values.ndim else None)
        return f"{folder}/s{number}.h5:/g/x"
    pario.save(f"/rechunk-s{number}", values, url=url)
    return f"pario:///rechunk-s{number}"


def _found(name, url):
    if name.startswith("pario:"):
        return pario.load(name[len("pario://") :], url=url)
    if name.endswith(".npy"):
        return np.load(name)
    if ".zarr" in name:
        return zarr.open_array(name, mode="r")[...]
    import h5py

    path, _, dataset = name.partition(":")
    with h5py.File(path) as file:
        return file[dataset][()]


@pytest.mark.parametrize("target", ["npy", "zarr", "hdf5", "pario"])
@pytest.mark.parametrize("source", ["npy", "zarr", "hdf5", "pario"])
def test_every_format_into_every_other(tmp_path, url, source, target):
    if "hdf5" in (source, target):
        pytest.importorskip("h5py", reason="HDF5 needs h5py, which is not installed")
    rng = random.Random(f"{source} {target}")
    for number, dtype in enumerate(["f8", "i2", "c8"]):
        shape = tuple(max(1, n) for n in shapes(rng, number + 1))
        values = content(shape, dtype, number)
        chunks = tuple(rng.randint(1, n) for n in shape)
        name = _made(source, tmp_path, url, values, tuple(rng.randint(1, n) for n in shape), number)
        to = {
            "npy": f"{tmp_path}/t{number}.npy",
            "zarr": f"{tmp_path}/t{number}.zarr",
            "hdf5": f"{tmp_path}/t{number}.h5:/a/b",
            "pario": f"pario:///rechunk-t-{source}-{number}",
        }[target]
        report = pario.rechunk(name, to, chunks, 200_000, url=url)
        assert np.array_equal(_found(to, url), values), (name, to, report)
        assert report.nbytes == values.nbytes and report.skipped == 0
        if target == "zarr":
            assert zarr.open_array(to, mode="r").chunks == chunks
        assert not [n for n in os.listdir(tmp_path) if "rechunk" in n], "no journal and nothing in between stays"


def test_chunks_that_cross_go_over_a_plain_array(tmp_path):
    values = np.arange(400 * 400.0).reshape(400, 400)
    source = zarr.create_array(str(tmp_path / "rows.zarr"), shape=values.shape, dtype="f8", chunks=(1, 400))
    source[...] = values
    # Room for few rows and columns: directly each row would be read for each block.
    report = pario.rechunk(str(tmp_path / "rows.zarr"), str(tmp_path / "columns.zarr"), (400, 1), 300_000)
    assert report.in_two_steps and report.read_again > 3
    assert np.array_equal(zarr.open_array(str(tmp_path / "columns.zarr"), mode="r")[...], values)
    assert sorted(os.listdir(tmp_path)) == ["columns.zarr", "rows.zarr"]


def test_memory_stays_within_its_bound(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((1500, 1500)))
    bound = 3_000_000
    pario.rechunk(np.zeros((2, 2)), str(tmp_path / "first.zarr"), (1, 1))
    tracemalloc.start()
    try:
        pario.rechunk(str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), max_mem=bound)
        copied = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        pario.rechunk(str(tmp_path / "a.npy"), str(tmp_path / "c.zarr"), (50, 50), bound, compressors=None)
        chunked = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert copied < bound < 18_000_000
    # Python's own objects are there too.
    assert chunked < bound + 2_000_000
    assert np.array_equal(zarr.open_array(str(tmp_path / "c.zarr"), mode="r")[...], np.load(tmp_path / "b.npy"))


def test_too_little_memory_is_said():
    with pytest.raises(ValueError, match="max_mem: 100 bytes are too few"):
        pario.rechunk(np.zeros((100, 100)), zarr.create_array({}, shape=(100, 100), chunks=(50, 50), dtype="f8"), max_mem=100)
    with pytest.raises(ValueError, match="chunks"):
        pario.rechunk(np.zeros((100, 100)), "x.zarr", (5,))
    with pytest.raises(ValueError, match="neither"):
        pario.rechunk(np.zeros(3), "x.unknown")
    with pytest.raises(ValueError, match="name one, as in"):
        pario.rechunk("x.h5", "x.npy")


def _until_killed(source, target, after):
    """Ends by itself, as `kill -9` does, when so many blocks are in the journal."""
    noted = Journal.note

    def note(self, number):
        noted(self, number)
        if len(self.done) >= after:
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.note = note
    pario.rechunk(source, target, (10, 10), 60_000, workers=2)


@pytest.mark.parametrize("ending", ["npy", "zarr"])
def test_killed_it_goes_on_where_it_was(tmp_path, ending):
    values = np.random.default_rng(1).random((100, 90))
    np.save(tmp_path / "a.npy", values)
    source, target = str(tmp_path / "a.npy"), str(tmp_path / f"t.{ending}")
    child = multiprocessing.get_context("spawn").Process(target=_until_killed, args=(source, target, 3))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with open(f"{target}.rechunk", "a") as journal:
        journal.write("1")  # half a line
    report = pario.rechunk(source, target, (10, 10), 60_000, workers=2)
    assert report.skipped == 3 and report.blocks > 0
    assert np.array_equal(_found(target, None), values)
    assert not os.path.exists(f"{target}.rechunk")
    again = pario.rechunk(source, target, (10, 10), 60_000)
    assert again.skipped == 0, "what is over begins anew"


def test_members_share_the_blocks(url, path):
    values = np.random.default_rng(2).random((64, 50))
    made = pario.create(path, values.shape, "f8", url=url)

    def work(rank, team):
        array = pario.Array(team.service, path, "r+")
        return pario.rechunk(values, array, max_mem=8_000, workers=1, comm=team)

    reports = members(url, 3, work)
    assert np.array_equal(made[...], values)
    assert all(report.blocks > 0 for report in reports)


def test_a_bar_if_there_is_one(tmp_path, capsys):
    pytest.importorskip("tqdm")
    pario.rechunk(np.zeros((100, 100)), str(tmp_path / "x.npy"), max_mem=50_000, progress=True)
    assert "100%" in capsys.readouterr().err
