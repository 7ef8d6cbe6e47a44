"""dask over arrays: chunks that follow the layout, results into an array."""

import numpy as np
import pytest

from pario.dask import from_pario, layout_chunks, to_pario


@pytest.mark.parametrize(
    ("layout", "due"),
    [
        ("(block, *) onto 3", ((4, 4, 2), (7,))),
        ("(block, block) onto 2x2", ((5, 5), (4, 3))),
        ("(*, cyclic(3)) onto 2", ((10,), (3, 3, 1))),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_chunks_follow_the_layout(service, path, layout, due, order):
    assert layout_chunks(service.create(path, (10, 7), layout=layout, order=order)) == due


def test_results_are_those_of_numpy(service, path):
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    a = service.create(path, (60, 50), layout="(block, *) onto 4")
    model = np.random.default_rng(2).random((60, 50))
    a[...] = model
    x = from_pario(a)
    assert x.chunks == ((15,) * 4, (50,))
    for scheduler in ["threads", "synchronous"]:
        with dask.config.set(scheduler=scheduler):
            assert np.allclose(x.mean(axis=0).compute(), model.mean(axis=0))
            b = service.create(path + scheduler, (50, 60))
            to_pario(from_pario(a, chunks=(13, 11)).T * 2, b)
            assert np.array_equal(b[...], model.T * 2)
