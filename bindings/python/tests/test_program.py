"""`pario import` and `pario export` against numpy, zarr-python and h5py."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import pario

from test_indexing import content

_PLACES = [pathlib.Path(sys.prefix) / "bin/pario", pathlib.Path(__file__).resolve().parents[3] / "target/debug/pario"]
_PROGRAM = next((place for place in _PLACES if place.exists()), None)

pytestmark = pytest.mark.skipif(_PROGRAM is None, reason="the program pario is not built")


@pytest.fixture
def run(tmp_path, url):
    def run(*arguments, fails=None):
        above = str(pathlib.Path(pario.__file__).parent.parent)
        env = os.environ | {"PARIO_URL": url, "PARIO_PYTHON": sys.executable, "PYTHONPATH": above}
        done = subprocess.run([_PROGRAM, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        if fails is None:
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1 and fails in done.stderr, done.stderr

    return run


TYPES = ["?", "i2", ">f8", "c16", "f2", "M8[ns]", "S7", "U3", [("a", "<i4"), ("b", "<f8", (2,))]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_numpy(tmp_path, service, path, run, order):
    given = {}
    for number, dtype in enumerate(TYPES):
        values = np.array(content((3, 4), dtype, number), order=order)
        given[f"a{number}"] = values
        np.save(tmp_path / "x.npy", values)
        run("import", "x.npy", f"{path}/a{number}", "--layout", "(block, *) onto 2")
        stored = service.open(f"{path}/a{number}")
        assert stored.dtype == values.dtype and stored.order == order and np.array_equal(stored[...], values)
        run("export", f"{path}/a{number}", "y.npy")
        assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "y.npy").read_bytes(), dtype
    run("export", path, "all.npz")
    with np.load(tmp_path / "all.npz") as archive:
        assert set(archive) == set(given) and all(np.array_equal(archive[n], given[n]) for n in given)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "more.npz", **given)
        run("import", "more.npz", f"{path}-{save.__name__}")
        for name, values in given.items():
            assert np.array_equal(service.open(f"{path}-{save.__name__}/{name}")[...], values)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_zarr(tmp_path, service, path, run, version, compressors):
    zarr = pytest.importorskip("zarr", minversion="3")
    for number, dtype in enumerate(["f8", "i2", "?", "c8"]):
        values = content((30, 17), dtype, number)
        made = zarr.create_array(
            str(tmp_path / f"{number}.zarr"), shape=(30, 17), chunks=(7, 5), dtype=dtype, zarr_format=version, compressors=compressors,
            order="F" if version == 2 and number % 2 else None, fill_value=1, attributes={"unit": "K"},
        )
        made[:20] = values[:20]
        values[20:] = made[20:]
        run("import", f"{number}.zarr", path)
        stored = service.open(path)
        assert stored.dtype == values.dtype and np.array_equal(stored[...], values)
        if compressors is None:
            assert dict(stored.attrs) == {"unit": "K"}
        run("export", path, f"{number}-out.zarr", "--chunks", "4,9")
        found = zarr.open_array(str(tmp_path / f"{number}-out.zarr"), mode="r")
        assert found.chunks == (4, 9) and found.dtype == values.dtype and np.array_equal(found[...], values)
    run("import", "nothing.zarr", path, fails="nothing.zarr")


def test_hdf5(tmp_path, service, path, run):
    try:
        import h5py
    except ImportError:
        (tmp_path / "x.h5").write_bytes(b"")
        run("import", "x.h5:/g/data", path, fails="h5py")
        pytest.skip("h5py is not installed; that it is missing is said")
    values = np.random.default_rng(0).random((40, 30))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("g/data", data=values, chunks=(7, 7), compression="gzip")
    run("import", "x.h5:/g/data", path)
    assert np.array_equal(service.open(path)[...], values)
    run("export", path, "y.h5:/deep/data", "--chunks", "10,10")
    with h5py.File(tmp_path / "y.h5") as file:
        assert file["deep/data"].chunks == (10, 10) and np.array_equal(file["deep/data"][()], values)
    run("import", "x.h5:/none", path, fails="none")
