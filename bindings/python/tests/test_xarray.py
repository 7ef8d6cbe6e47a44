"""xarray: datasets in the service, opened lazily."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")

import pario.xarray  # noqa: E402


def dataset():
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), rng.random((4, 5, 6)), {"units": "K"}),
            "n": (("y",), np.arange(5, dtype="i2")),
            "one": ((), 2.5),
        },
        {
            "time": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], "M8[ns]"),
            "x": np.linspace(0, 1, 6),
            "area": (("y", "x"), rng.random((5, 6))),
        },
        {"title": "a test"},
    )


def test_a_dataset_comes_back(service, path):
    made = dataset()
    pario.xarray.to_pario(made, path, url=service.url, layout={"t": "(block, *, *) onto 2"})
    found = xr.open_dataset(f"pario://{path}", engine="pario", url=service.url)
    xr.testing.assert_identical(found.load(), made)
    assert service.open(f"{path}/t").layout == "(block, *, *) onto 2"
    left = xr.open_dataset(f"pario://{path}", engine="pario", url=service.url, drop_variables=["t"])
    assert "t" not in left and "n" in left


def test_the_name_is_enough_and_reading_is_lazy(service, path, monkeypatch):
    made = dataset()
    pario.xarray.to_pario(made, path, url=service.url)
    monkeypatch.setenv("PARIO_URL", service.url)
    read = []
    outer = pario.xarray.ParioBackendArray._outer
    monkeypatch.setattr(pario.xarray.ParioBackendArray, "_outer", lambda self, key: read.append(self.array.path) or outer(self, key))
    with xr.open_dataset(f"pario://{path}") as found:
        read.clear()
        part = found.t.isel(time=slice(1, 3), x=[0, 2, 5]).sel(y=slice(None))
        assert not read
        xr.testing.assert_equal(part.load(), made.t.isel(time=slice(1, 3), x=[0, 2, 5]))
        assert f"{path}/t" in read and f"{path}/n" not in read
        xr.testing.assert_equal(found.t.isel(y=-1, x=slice(None, None, -2)).load(), made.t.isel(y=-1, x=slice(None, None, -2)))
        picks = xr.DataArray([0, 3, 1], dims="p")
        xr.testing.assert_equal(found.t.isel(time=picks, x=picks).load(), made.t.isel(time=picks, x=picks))


def test_an_array_without_names(service, path):
    a = service.create(path, (3, 4))
    a[...] = np.arange(12).reshape(3, 4)
    found = xr.open_dataset(f"pario://{path}", engine="pario", url=service.url)
    (name,) = found.data_vars
    assert found[name].dims == (f"{name}_0", f"{name}_1") and np.array_equal(found[name], a[...])


def test_dask_computes_into_the_service(service, path):
    pytest.importorskip("dask.array", reason="dask is not installed")
    made = dataset().chunk({"x": 4, "time": 1})
    pario.xarray.to_pario(made, path, url=service.url)
    found = xr.open_dataset(f"pario://{path}", engine="pario", url=service.url, chunks={})
    xr.testing.assert_equal(found.compute(), made.compute())
