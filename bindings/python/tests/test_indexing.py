"""Indices against numpy: the same index on an array of the service and on one in memory."""

import random

import numpy as np
import pytest

import pario

DTYPES = [
    "?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", ">f8", ">i4",
    "M8[ns]", "M8[D]", "m8[s]", "S5", "U3", "V6", "g",
    [("x", "<f4"), ("name", "S3"), ("pair", "<i2", (2,))],
]


def content(shape, dtype, seed=1):
    """Entries of any type, none like its neighbour."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        flat = rng.integers(0, 2, count).astype(dtype)
    elif dtype.kind in "fcg":
        flat = rng.integers(-1000, 1000, count).astype(dtype)
        if dtype.kind == "c":
            flat = flat + 1j * rng.integers(-9, 9, count)
    elif dtype.kind == "U":
        flat = np.array([chr(97 + i % 26) * (i % 4) for i in range(count)], dtype)
    elif dtype.kind == "S":
        flat = np.array([b"%d" % (i % 1000) for i in range(count)], dtype)
    elif dtype.names or dtype.kind == "V":
        flat = np.zeros(count, dtype)
        flat.view("u1").reshape(-1)[:] = rng.integers(0, 100, flat.nbytes)
    else:
        flat = rng.integers(0, 120, count).astype("i8").astype(dtype)
    return flat.astype(dtype).reshape(shape)


def random_slice(rng, extent):
    def bound():
        return rng.choice([None, rng.randint(-extent - 2, extent + 2)])

    step = rng.choice([None, 1, 1, 2, 3, 7, -1, -1, -2, -5])
    return slice(bound(), bound(), step)


def random_index(rng, shape):
    """Any index that numpy takes, now and then one that it refuses."""
    parts = []
    left = list(shape)
    lists = rng.random() < 0.35
    length = rng.choice([1, 2, 4])
    while left:
        extent = left[0]
        choice = rng.random()
        if choice < 0.08:
            break
        if choice < 0.14:
            parts.append(None)
            continue
        left.pop(0)
        if choice < 0.35:
            out = rng.random() < 0.02 or extent == 0
            parts.append(rng.randint(-extent, extent - 1) if not out else extent + 1)
        elif lists and choice < 0.6 and extent:
            wanted = [rng.randint(-extent, extent - 1) for _ in range(length)]
            kind = rng.randrange(4)
            if kind == 0:
                parts.append(wanted)
            elif kind == 1:
                parts.append(np.array(wanted))
            elif kind == 2:
                parts.append(np.array([wanted, wanted[::-1]]))
            else:
                parts.append(np.array([wanted[0]]))
        elif lists and choice < 0.68:
            parts.append(np.array([rng.random() < 0.4 for _ in range(extent)], bool))
        else:
            parts.append(random_slice(rng, extent))
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), Ellipsis)
    if len(parts) == 1 and rng.random() < 0.5:
        return parts[0]
    return tuple(parts)


def same(found, due, said=""):
    assert type(found) is type(due), (said, type(found), type(due))
    assert found.dtype == due.dtype, said
    assert np.shape(found) == np.shape(due), said
    if due.dtype.char == "g":
        # Six of its sixteen bytes mean nothing.
        assert np.array_equal(found, due), said
        return
    assert np.asarray(found).tobytes() == np.asarray(due).tobytes(), said


def outcome(work):
    try:
        return work(), None
    except (IndexError, ValueError, TypeError) as error:
        return None, error


def shapes(rng, ndim):
    return tuple(rng.choice([1, 2, 3, 5, 8, 0 if rng.random() < 0.1 else 4]) for _ in range(ndim))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", range(6))
def test_reads_and_writes_as_numpy_does(service, path, ndim, order):
    rng = random.Random(ndim * 2 + (order == "F"))
    layouts = [None, "striped(24) over 3"]
    for number in range(24):
        dtype = np.dtype(DTYPES[(number + ndim) % len(DTYPES)])
        shape = shapes(rng, ndim)
        model = content(shape, dtype, number)
        layout = rng.choice(layouts) if model.size else None
        a = service.create(path, shape, dtype, layout=layout, order=order, overwrite=True)
        a[...] = model
        same(a[...], model[...])
        for i in range(14):
            index = random_index(rng, shape)
            found, failed = outcome(lambda: a[index])
            due, refused = outcome(lambda: model[index])
            said = f"{dtype} {shape} {order} [{index}]: {failed!r} {refused!r}"
            assert (failed is None) == (refused is None), said
            if refused is not None:
                assert type(failed) is type(refused), said
                continue
            same(found, due, said)
            if i % 2 == 0:
                values = content(np.shape(due), dtype, 1000 * number + i)
                if rng.random() < 0.3 and values.ndim:
                    values = values[:1]
                if rng.random() < 0.2 and values.size:
                    values = values.ravel()[0]
                model[index] = values
                a[index] = values
                same(a[...], model[...], f"set {said} {values!r}")
        a.close()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_comes_back(service, path, dtype):
    model = content((3, 4), dtype)
    a = service.create(path, (3, 4), dtype)
    assert a.dtype == np.dtype(dtype)
    a[...] = model
    again = service.open(path, "r")
    assert again.dtype == np.dtype(dtype)
    same(again[1:, ::2], model[1:, ::2])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_small_types_of_ml_dtypes(service, path, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = getattr(ml_dtypes, name)
    model = (np.arange(12) % 8).reshape(3, 4).astype(kind)
    a = service.create(path, (3, 4), kind)
    a[...] = model
    again = service.open(path)
    assert again.dtype == model.dtype
    same(again[::-1, 1], model[::-1, 1])


def test_types_without_a_size_are_refused(service, path):
    with pytest.raises(ValueError, match="fixed size"):
        service.create(path, 3, object)


def test_orthogonal_and_vectorised(service, path):
    rng = np.random.default_rng(3)
    model = content((7, 5, 6), "i4")
    a = service.create(path, model.shape, "i4", layout="(block, *, *) onto 2")
    a[...] = model
    for _ in range(60):
        lists = [rng.integers(-n, n, rng.integers(0, 6)) for n in model.shape]
        same(a.oindex[tuple(lists)], model[np.ix_(*lists)])
        mask = rng.random(5) < 0.5
        same(a.oindex[lists[0], mask, ::-2], model[lists[0]][:, mask][:, :, ::-2])
        same(a.oindex[..., lists[2]], model[:, :, lists[2]])
        same(a.oindex[2, lists[1]], model[2][lists[1]])
        points = [rng.integers(0, n, 4) for n in model.shape]
        same(a.vindex[tuple(points)], model[tuple(points)])
        same(a.vindex[points[0], :, points[2]], model[points[0], :, points[2]])
        a.oindex[lists[0], :, mask[[0, 1, 2, 3, 4, 0]]] = 7
        model[np.ix_(lists[0], range(5), mask[[0, 1, 2, 3, 4, 0]].nonzero()[0])] = 7
        a.vindex[tuple(points)] = np.arange(4)
        model[tuple(points)] = np.arange(4)
        same(a[...], model[...])
    full = model > 50
    same(a[full], model[full])
    a[full] = 0
    model[full] = 0
    same(a[...], model[...])


def test_out_takes_the_bytes_where_they_shall_be(service, path):
    model = content((6, 8), "f8")
    a = service.create(path, model.shape, "f8", layout="(*, block) onto 2")
    a[...] = model
    wide = np.zeros((12, 30))
    assert a.get(np.s_[1:5, ::2], out=wide[2:10:2, 20:4:-4]) is not None
    due = np.zeros((12, 30))
    due[2:10:2, 20:4:-4] = model[1:5, ::2]
    same(wide, due)
    narrow = np.zeros((4,), "f4")
    same(a.get(np.s_[:4, 3], out=narrow), model[:4, 3].astype("f4"))
    down = np.zeros(6)
    same(a.get(np.s_[::-1, 3], out=down), model[::-1, 3])
    with pytest.raises(ValueError, match="shape"):
        a.get(np.s_[:3], out=np.zeros(3))
    fixed = np.zeros((6, 8))
    fixed.flags.writeable = False
    with pytest.raises(ValueError):
        a.get(out=fixed)


def test_what_nobody_wrote_is_zero(service, path):
    a = service.create(path, (100, 10), "i4", layout="(block, *) onto 3")
    a[3, 4] = 9
    due = np.zeros((100, 10), "i4")
    due[3, 4] = 9
    same(a[...], due)
    strided = np.full((200, 20), 5, "i4")
    a.get(out=strided[::2, ::2])
    same(strided[::2, ::2].copy(), due)


def test_large_values_go_in_parts(service, path, monkeypatch):
    monkeypatch.setattr("pario.array._AT_ONCE", 1000)
    model = content((40, 30), "f8")
    a = service.create(path, (30, 40), "f8")
    a[...] = model.T
    same(a[...], np.ascontiguousarray(model.T))
    a[::3, ::-2] = 4
    due = np.ascontiguousarray(model.T)
    due[::3, ::-2] = 4
    same(a[...], due)


def test_conversions(service, path):
    a = service.create(path, (2, 3), "i4")
    a[...] = [[1, 2, 3], [4, 5, 6.9]]
    assert np.asarray(a).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.asarray(a, dtype="f4").dtype == np.float32
    assert np.sum(a) == 21 and len(a) == 2 and [row.tolist() for row in a] == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError):
        np.array(a, copy=False)
    assert np.from_dlpack(a).tolist() == a[...].tolist()
    with pytest.raises(ValueError, match="broadcast"):
        a[0] = [1, 2]
    assert pario.load(path, url=service.url).tolist() == a[...].tolist()


@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (0, 0)])
def test_indices_that_are_arrays_of_the_service(service, path, shape):
    model = content(shape, "i4")
    a = service.create(path, shape, "i4")
    a[...] = model
    mask = service.create(f"{path}-mask", shape, "?")
    mask[...] = model % 2 == 0
    same(a[mask], model[model % 2 == 0])
    rows = service.create(f"{path}-rows", min(2, shape[0]), "i8")
    same(a[rows], model[np.zeros(min(2, shape[0]), "i8")])


def test_masks_without_entries(service, path):
    model = content((3, 4), "i4")
    a = service.create(path, model.shape, "i4")
    a[...] = model
    nothing = [np.zeros(s, bool) for s in [(0, 4), (3, 0), (0, 0), (0,), (0, 3), (2, 0)]]
    for key in [*nothing, (nothing[3], slice(None)), (slice(None), nothing[3]), (1, nothing[3]), (nothing[3], [1])]:
        try:
            due = model[key]
        except IndexError:
            with pytest.raises(IndexError):
                a[key]
            continue
        same(a[key], due)
        a[key] = 7
    same(a[...], model)
