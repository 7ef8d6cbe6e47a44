"""Arrays as files: creating, attributes, records, layouts, processes, errors."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pario


def test_two_lines_without_a_service(tmp_path):
    lines = "import pario\na = pario.create('/m', (4, 4)); a[:, 1] = 3; print(a[2, 1], pario.load('/m').sum())"
    env = {**os.environ, "PARIO_URL": ""}
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["3.0", "12.0"], done.stderr
    assert (tmp_path / ".pario").is_dir()


def test_creating(service, path):
    a = service.create(f"{path}/deep/er", (3, 4), "f4", layout="( BLOCK, *) onto 2", attrs={"unit": "m"})
    assert (a.shape, a.ndim, a.size, a.nbytes, a.itemsize, len(a)) == ((3, 4), 2, 12, 48, 4, 3)
    assert dict(a.attrs) == {"unit": "m"}
    with pytest.raises(FileExistsError):
        service.create(f"{path}/deep/er", (3, 4), "f4")
    a[...] = 1
    same = service.create(f"{path}/deep/er", (3, 4), "f4", exist_ok=True)
    assert same[...].sum() == 12
    with pytest.raises(ValueError, match="is there already"):
        service.create(f"{path}/deep/er", (3, 5), "f4", exist_ok=True)
    new = service.create(f"{path}/deep/er", 5, "i1", overwrite=True)
    assert new.shape == (5,) and new[...].tolist() == [0] * 5
    assert a[...].sum() == 12, "who has the old one open keeps it"


def test_saving_and_loading(service, path):
    for values in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(3, 2)), np.array("x"), 4):
        pario.save(path, values, url=service.url)
        found = pario.load(path, url=service.url)
        assert np.array_equal(found, values) and found.dtype == np.asarray(values).dtype


def test_attributes(service, path):
    a = service.create(path, 3)
    a.attrs["unit"] = "m/s"
    a.attrs.update({"a/b": [1, 2.5, None, {"x": True}], "n": np.float32(0.5), "list": np.arange(3), "ü %": "ü"})
    other = service.open(path)
    assert other.attrs["a/b"] == [1, 2.5, None, {"x": True}]
    assert dict(other.attrs) == {"unit": "m/s", "a/b": [1, 2.5, None, {"x": True}], "n": 0.5, "list": [0, 1, 2], "ü %": "ü"}
    del other.attrs["n"]
    assert "n" not in a.attrs and len(a.attrs) == 4
    with pytest.raises(KeyError):
        del a.attrs["n"]
    with pytest.raises(TypeError):
        a.attrs["bad"] = object()
    with pytest.raises(ValueError, match="65536"):
        a.attrs.update(good=1, long="x" * 70000)
    assert "good" not in a.attrs, "all or nothing"
    a.attrs.clear()
    assert len(a.attrs) == 0
    dates = service.create(path, 3, "M8[s]", overwrite=True)
    assert dict(dates.attrs) == {}, "the package's own values do not show"


@pytest.mark.parametrize("layout", [None, "(block, *) onto 3", "striped(40) over 2"])
def test_records(service, path, layout):
    a = service.create(path, (4, 3), "i8", layout=layout)
    model = np.arange(12).reshape(4, 3)
    a[...] = model
    assert a.append([[100, 101, 102]]) == 4
    assert a.append(np.zeros((5, 3))) == 5
    assert a.append([7, 8, 9]) == 10
    model = np.concatenate([model, [[100, 101, 102]], np.zeros((5, 3), int), [[7, 8, 9]]])
    assert np.array_equal(a[...], model) and a.shape == (11, 3)
    again = service.open(path)
    assert again.shape == (11, 3) and np.array_equal(again[:, 1], model[:, 1])
    a.resize(2)
    assert np.array_equal(a[...], model[:2])
    a.resize((6, 3))
    model = np.concatenate([model[:2], np.zeros((4, 3), int)])
    assert np.array_equal(a[...], model), "what was cut off is zero"
    assert again.refresh().shape == (6, 3)
    with pytest.raises(ValueError):
        a.resize((6, 4))
    with pytest.raises(ValueError):
        a.append([1, 2])
    a.relayout("(*, block) onto 2")
    assert np.array_equal(a[...], model)
    a.append([1, 1, 1])
    assert a[6].tolist() == [1, 1, 1]


def test_an_array_that_begins_empty(service, path):
    a = service.create(path, (0, 3), "f4")
    assert a[...].shape == (0, 3)
    a.append(np.ones((2, 3)))
    assert np.array_equal(service.open(path)[...], np.ones((2, 3), "f4"))


def test_records_in_fortran_order(service, path):
    a = service.create(path, (3, 2), "i4", order="F")
    a[...] = [[1, 4], [2, 5], [3, 6]]
    assert a.append([7, 8, 9]) == 2
    assert a[...].tolist() == [[1, 4, 7], [2, 5, 8], [3, 6, 9]]


def test_appending_at_the_same_time_loses_nothing(service, path):
    service.create(path, (0, 4), "i8")
    arrays = [service.open(path) for _ in range(4)]

    def work(number):
        for i in range(20):
            arrays[number].append(np.full((1 + i % 3, 4), number * 100 + i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    found = service.open(path)[...]
    due = sorted(n * 100 + i for n in range(4) for i in range(20) for _ in range(1 + i % 3))
    assert sorted(found[:, 0].tolist()) == due
    assert (found == found[:, :1]).all()


def test_layouts(service, path):
    a = service.create(path, (64, 64), "f8", layout="(block, *) onto 4")
    a[...] = model = np.random.rand(64, 64)
    assert a.layout == "(block, *) onto 4"
    move = a.relayout("(*, block) onto 4")
    assert move.is_over and a.layout == "(*, block) onto 4"
    assert np.array_equal(a[...], model)
    for i in range(8):
        a[:, i]
    a.sync()
    assert a.explain(np.s_[:, :16])["view_bytes"] == 64 * 16 * 8
    assert [s["bytes"] for s in a.explain(np.s_[:, :16])["subfiles"]] == [64 * 16 * 8]
    assert a.profile["reads"] >= 0 and "ranked" in a.advise()
    shown = a._repr_html_()
    assert "<svg" in shown and "(*, block) onto 4" in shown
    parts = [a.view("(block, cyclic(3)) onto 2x2", rank=r) for r in range(4)]
    assert sum(p.read().size for p in parts) == a.size
    assert np.array_equal(parts[0][...], model[:32][:, [j for j in range(64) if j // 3 % 2 == 0]])
    parts[3][...] = 5
    assert (a[32:, 3:6] == 5).all()


def test_layout_texts():
    layout = pario.layout("( BLOCK, cyclic(2) ) onto 2x2")
    assert str(layout) == "(block, cyclic(2)) onto 2x2" and layout == pario.layout(layout)
    assert layout.owners((4, 4)).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    with pytest.raises(ValueError) as error:
        pario.layout("(block, cyclc) onto 2x2")
    lines = str(error.value).splitlines()
    assert lines[2].index("^") == lines[1].index("cyclc"), "the mark stands under the character"
    assert "<svg" in layout._repr_html_()


def test_errors_are_the_right_exceptions(service, path, tmp_path):
    with pytest.raises(FileNotFoundError):
        service.open("/no/such/array")
    with pytest.raises(ValueError, match="url"):
        pario.connect("nonsense:x")
    with pytest.raises(ConnectionError):
        os.environ["PARIO_TIMEOUT"] = "0.1"
        try:
            pario.connect(f"unix:{tmp_path}/nobody")
        finally:
            del os.environ["PARIO_TIMEOUT"]
    with pytest.raises(ValueError, match="onto"):
        service.create(path, (4, 4), layout="(block, *) onto")
    a = service.create(path, (4, 4))
    with pytest.raises(IndexError):
        a[4]
    with pytest.raises(IndexError):
        a[0, 0, 0]
    reading = service.open(path, "r")
    with pytest.raises(PermissionError):
        reading[0] = 1
    service.mkdir(f"{path}-directory")
    with pytest.raises(IsADirectoryError):
        service.open(f"{path}-directory")
    a.close()
    with pytest.raises(ValueError, match="closed"):
        a[0]


def test_names(service, path):
    service.create(f"{path}/b/x", 3)
    service.create(f"{path}/a", 3)
    assert service.list(path) == ["a", "b"]
    assert [p for p, _ in service.walk(path)] == [f"{path}/a", f"{path}/b", f"{path}/b/x"]
    assert service.stat(f"{path}/a")["array"] == "f64[3]" and service.stat(path)["kind"] == "directory"
    service.rename(f"{path}/a", f"{path}/c")
    assert not service.exists(f"{path}/a") and service.exists(f"{path}/c")
    service.remove(f"{path}/c")
    with pytest.raises(OSError):
        service.remove(f"{path}/b")


def test_asyncio(service, path):
    a = service.create(path, (100, 100))

    async def work():
        await asyncio.gather(*(a.write(np.s_[i], i) for i in range(100)))
        rows = await asyncio.gather(*(a.read(np.s_[:, i]) for i in range(0, 100, 7)))
        assert all(np.array_equal(r, np.arange(100)) for r in rows)

    asyncio.run(work())


def test_other_threads_run_during_an_access(service, path):
    a = service.create(path, (2000, 2000))
    a[...] = 1.0
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        spans = []
        for _ in range(5):
            begin = time.perf_counter()
            a[::2, ::2]
            spans.append((begin, time.perf_counter()))
    finally:
        stop.set()
        thread.join()
    assert any(sum(b < t < e for t in ticks) > 1 for b, e in spans)


def _sum(array):
    return float(array[...].sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(service, path, method):
    a = service.create(path, (10, 10))
    a[...] = 2.0
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(_sum, [a, a, a]) == [200.0] * 3


def test_a_child_opens_again_what_its_parent_had_open(service, path):
    a = service.create(path, (10,))
    a[...] = 3.0
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            a[0] = 8.0
            os.write(write, str(a[...].sum()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert float(os.read(read, 100)) == 35.0
    assert a[0] == 8.0


def test_pickles_open_the_same_array(service, path):
    a = service.create(path, (4,))
    b = pickle.loads(pickle.dumps(a))
    b[1] = 5
    assert a[1] == 5 and b.path == a.path


def test_interrupted(tmp_path):
    lines = """
import sys, numpy as np, pario
a = pario.create('/m', (1 << 27,), 'u1', layout='striped(64KiB) over 2')
a[:] = 1
try:
    print('ready', flush=True)
    while True:
        a[:]
except KeyboardInterrupt:
    print(a[5], flush=True)
"""
    env = {**os.environ, "PARIO_URL": f"dir:{tmp_path}/d"}
    child = subprocess.Popen([sys.executable, "-c", lines], env=env, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "1\n"
    assert child.wait(30) == 0


def test_teams_of_processes(service, path):
    a = service.create(path, (16, 12), "i4")
    lines = f"""
import sys, numpy as np, pario
service = pario.connect({service.url!r})
team = pario.Team.join('rows', 3, service=service)
a = service.open({path!r}, comm=team)
part = a.mine
part[...] = team.rank + 1
assert team.allgather(team.rank) == [0, 1, 2]
team.barrier()
columns = a.view('(*, block) onto {{size}}')
got = columns.read()
assert got.shape == (16, 4) and sorted(set(got[:, 0].tolist())) == [1, 2, 3]
moved = pario.redistribute(part.read(), '(block, *) onto {{size}}', '(*, block) onto {{size}}', team, shape=a.shape)
assert np.array_equal(moved, got)
a[pario.block] = 7
print(team.rank, part.shape, a[...].sum() % 7)
"""
    children = [
        subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [child.communicate(timeout=120) for child in children]
    assert all(child.returncode == 0 for child in children), said
    assert (a[...] == 7).all()


def test_versions_are_said():
    assert pario.__version__.count(".") == 2


class _Shows:
    """What shows memory by DLPack alone."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_memory_of_others(service, path):
    a = service.create(path, (3, 4), "f8", order="F")
    model = np.arange(12.0).reshape(3, 4)
    a[...] = model
    found = np.from_dlpack(a)
    assert np.array_equal(found, model) and a.__dlpack_device__() == (1, 0)
    a[...] = -1
    assert np.array_equal(found, model), "what was shown is a copy"
    a[...] = model
    for wrong in ({"copy": False}, {"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError):
            a.__dlpack__(**wrong)
    with pytest.raises(BufferError):
        # numpy has no way to show dates.
        service.create(f"{path}-dates", 3, "M8[s]").__dlpack__()
    # Into memory of others, without an array of numpy.
    memory = bytearray(4 * 8)
    assert a.get(1, out=memoryview(memory).cast("d")) is not None
    assert np.frombuffer(memory).tolist() == model[1].tolist()
    behind = np.zeros((3, 8))[:, ::2]
    a.get(..., out=_Shows(behind))
    assert np.array_equal(behind, model)
    with pytest.raises((ValueError, TypeError), match="out"):
        a.get(1, out=b"\0" * 32)
    with pytest.raises(ValueError, match="read-only"):
        a.get(1, out=memoryview(model[1].tobytes()).cast("d"))
    with pytest.raises(ValueError, match="shape"):
        a.get(1, out=bytearray(32))
    with pytest.raises(TypeError, match="shows no memory"):
        a.get(1, out=[0.0] * 4)


def test_types_that_only_another_package_has(service, path):
    text = b'"float3_of_nobody"'
    service.connection.open(path, "x", array="bytes(2)[3]", values=[("pario.dtype", text)]).close()
    a = service.open(path)
    assert a.dtype == np.dtype("V2") and a[...].tobytes() == bytes(6)
    a[1] = np.void(b"xy")
    assert service.open(path)[1].tobytes() == b"xy"
