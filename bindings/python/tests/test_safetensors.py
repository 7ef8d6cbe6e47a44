"""safetensors: the package reads what is written here, and the other way round."""

import json
import os
import struct

import numpy as np
import pytest

import pario
import pario.safetensors as st

from test_indexing import content

TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8"]


def tensors():
    made = {f"layer/{dtype}": content((3, 5), dtype, n) for n, dtype in enumerate(TYPES)}
    return made | {"none": np.zeros((0, 4), "f4"), "one": np.array(3.5), "ü": np.arange(6)[::2]}


def test_files_come_back(tmp_path):
    given = tensors()
    st.save(tmp_path / "x.safetensors", given, {"made": "here"})
    found = st.open(tmp_path / "x.safetensors")
    assert found.metadata == {"made": "here"} and set(found) == set(given)
    for name, values in given.items():
        assert found[name].dtype == values.dtype and found[name].shape == values.shape
        assert np.array_equal(found[name], values), name
    assert found["layer/f8"].base is not None, "it is a view of the file"
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_arrays_of_the_service(tmp_path, service, path, monkeypatch):
    monkeypatch.setattr(st, "_AT_ONCE", 64)
    given = tensors()
    st.save(tmp_path / "x.safetensors", given)
    stored = st.import_file(tmp_path / "x.safetensors", path, url=service.url, layout=lambda n, s: "(block, *) onto 2" if len(s) == 2 and 0 not in s else None)
    assert set(stored) == set(given)
    assert stored["layer/f4"].layout == "(block, *) onto 2"
    again = st.open(f"pario://{path}", url=service.url)
    for name, values in given.items():
        assert np.array_equal(again[name][...], values) and again[name].dtype == values.dtype
    st.export(path, tmp_path / "y.safetensors", url=service.url)
    assert (tmp_path / "x.safetensors").read_bytes() == (tmp_path / "y.safetensors").read_bytes()


def test_the_package_agrees(tmp_path):
    package = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    given = {name: np.ascontiguousarray(values) for name, values in tensors().items() if values.dtype.kind != "c"}
    st.save(tmp_path / "ours.safetensors", given)
    package.save_file(given, tmp_path / "theirs.safetensors")
    theirs, ours = package.load_file(tmp_path / "ours.safetensors"), st.open(tmp_path / "theirs.safetensors")
    for name, values in given.items():
        assert np.array_equal(theirs[name], values) and np.array_equal(ours[name], values)


def test_small_floats(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.arange(6).astype(ml_dtypes.bfloat16)
    st.save(tmp_path / "x.safetensors", {"a": values})
    assert st.open(tmp_path / "x.safetensors")["a"].tobytes() == values.tobytes()
    assert st.open(tmp_path / "x.safetensors")["a"].dtype == values.dtype


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    st.save(path, {"a": np.arange(4)})
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError):
            st.open(path)
    for head in ({"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}, {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 4]}}):
        raw = json.dumps(head).encode()
        path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(8))
        with pytest.raises(ValueError, match="tensor a"):
            st.open(path)
    path.write_bytes(struct.pack("<Q", 1 << 62) + bytes(100))
    with pytest.raises(ValueError, match="its head would have"):
        st.open(path)
    with pytest.raises(ValueError, match="no word"):
        st.save(path, {"a": np.array(["text"])})
