"""Checkpoints: any pieces in, any pieces out, whole or not at all."""

import os
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import pario
from pario.checkpoint import CheckpointError, Shard
from pario._service import Service


def members(url, size, work):
    """Runs a function as each member of a team, in threads with connections of their own."""
    name = f"team-{random.random()}"
    results, failures = [None] * size, []

    def run(rank):
        try:
            team = pario.Team.join(name, size, rank, Service(url))
            results[rank] = work(rank, team)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    if failures:
        raise failures[0]
    return results


def cuts(rng, extent, count):
    """Uneven parts of a dimension, some of them empty."""
    bounds = sorted(rng.randint(0, extent) for _ in range(count - 1))
    return [slice(a, b) for a, b in zip([0, *bounds], [*bounds, extent])]


def placements(rng, shape, size):
    """The pieces of every rank: a dimension in uneven or strided parts, or the whole at every rank."""
    kind = rng.choice(["parts", "strided", "replicated", "grid"])
    if kind == "replicated":
        return [[(slice(None),) * len(shape)] for _ in range(size)]
    d = rng.randrange(len(shape))
    before, after = (slice(None),) * d, (slice(None),) * (len(shape) - d - 1)
    if kind == "strided":
        return [[(*before, slice(rank, None, size), *after)] for rank in range(size)]
    if kind == "parts":
        return [[(*before, part, *after)] for part in cuts(rng, shape[d], size)]
    pieces = [[] for _ in range(size)]
    for number, part in enumerate(cuts(rng, shape[d], 2 * size)):
        pieces[rng.randrange(size) if number else 0].append((*before, part, *after))
    return pieces


def test_a_tree_comes_back(url, path):
    tree = {
        "model": [np.arange(12.0).reshape(3, 4), {"bias": np.zeros(0, "f4"), "scale": np.float32(2)}],
        "step": 7,
        "name": "ü",
        "pair": (None, True, 1.5),
        "mask": np.array([True, False]),
    }
    pario.save_checkpoint(path, tree, 7, url=url)
    found = pario.load_checkpoint(path, url=url)
    assert found["step"] == 7 and found["name"] == "ü" and found["pair"] == (None, True, 1.5)
    assert np.array_equal(found["model"][0], tree["model"][0]) and found["model"][1]["scale"] == 2
    assert found["model"][1]["bias"].dtype == np.float32 and found["mask"].tolist() == [True, False]
    with pytest.raises(FileNotFoundError):
        pario.load_checkpoint(f"{path}-none", url=url)
    with pytest.raises(TypeError):
        pario.save_checkpoint(path, {"x": object()}, 8, url=url)
    assert pario.checkpoints(path, url=url) == [7]


def test_any_pieces_in_any_pieces_out(url, path):
    rng = random.Random(5)
    for number in range(12):
        shape = tuple(rng.randint(1, 12) for _ in range(rng.randint(1, 3)))
        dtype = rng.choice(["f4", "i8", "f2", "c16"])
        whole = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        savers, loaders = rng.randint(1, 4), rng.randint(1, 4)
        saved, wanted = placements(rng, shape, savers), placements(rng, shape, loaders)

        def save(rank, team):
            pieces = [Shard(shape, index, whole[index]) for index in saved[rank]]
            state = {"w": pieces or [Shard(shape, (slice(0, 0),), whole[:0])], "n": number}
            pario.save_checkpoint(path, state, number, comm=team, url=url)

        def load(rank, team):
            like = {"w": [Shard(shape, index) for index in wanted[rank]] or None}
            return pario.load_checkpoint(path, number, like=like, comm=team, url=url)

        members(url, savers, save)
        for rank, found in enumerate(members(url, loaders, load)):
            assert found["n"] == number
            if wanted[rank]:
                for index, values in zip(wanted[rank], found["w"], strict=True):
                    assert np.array_equal(values, whole[index]) and values.dtype == whole.dtype, (shape, index)
    assert pario.checkpoints(path, url=url) == list(range(12))


def test_more_tensors_than_are_open_at_once(url, path):
    tensors = {f"t{i}": np.full(i % 5, i) for i in range(70)}
    halves = {f"s{i}": [Shard((4,), (slice(a, a + 2),), np.full(2, i + a)) for a in (0, 2)] for i in range(40)}
    pario.save_checkpoint(path, {**tensors, **halves}, 1, url=url)
    found = pario.load_checkpoint(path, url=url)
    assert all(np.array_equal(found[name], values) for name, values in tensors.items())
    assert all(found[f"s{i}"].tolist() == [i, i, i + 2, i + 2] for i in range(40))


def test_indices_as_the_recipe_has_them(url, path):
    whole = np.arange(24.0).reshape(6, 4)
    pario.save_checkpoint(path, {"w": [Shard((6, 4), np.s_[:2], whole[:2]), Shard((6, 4), np.s_[2:, :], whole[2:])]}, 1, url=url)
    found = pario.load_checkpoint(path, like={"w": Shard((6, 4), np.s_[::3])}, url=url)
    assert np.array_equal(found["w"], whole[::3])
    assert np.array_equal(pario.load_checkpoint(path, like={"w": Shard((6, 4), ...)}, url=url)["w"], whole)
    for wrong in (3, (slice(None), 1), (slice(None),) * 3, [0, 1]):
        with pytest.raises(TypeError, match="index"):
            Shard((6, 4), wrong)


def test_only_the_last_are_kept(url, path):
    for step in range(1, 6):
        pario.save_checkpoint(path, {"x": np.full(3, step)}, step, keep=2, url=url)
    assert pario.checkpoints(path, url=url) == [4, 5]
    pario.save_checkpoint(path, {"x": np.full(3, 50)}, 5, keep=2, url=url)
    assert pario.load_checkpoint(path, url=url)["x"].tolist() == [50] * 3
    assert pario.connect(url).list(path) == ["step-4", "step-5"] or ".partial-" in str(pario.connect(url).list(path))


def test_a_program_that_dies_while_it_replaces_a_checkpoint(url, path, monkeypatch):
    pario.save_checkpoint(path, {"x": np.full(3, 1)}, 1, url=url)
    pario.save_checkpoint(path, {"x": np.full(3, 2)}, 2, url=url)
    real = Service.rename

    def dies(service, source, target):
        if target.endswith("/step-2"):
            raise KeyboardInterrupt
        real(service, source, target)

    monkeypatch.setattr(Service, "rename", dies)
    with pytest.raises(KeyboardInterrupt):
        pario.save_checkpoint(path, {"x": np.full(3, 20)}, 2, url=url)
    monkeypatch.undo()
    assert "step-2" not in pario.connect(url).list(path)
    assert pario.checkpoints(path, url=url) == [1, 2]
    assert pario.load_checkpoint(path, url=url)["x"].tolist() == [2] * 3
    pario.save_checkpoint(path, {"x": np.full(3, 30)}, 2, url=url)
    assert pario.load_checkpoint(path, url=url)["x"].tolist() == [30] * 3
    assert pario.connect(url).list(path) == ["step-1", "step-2"]


def test_saving_beside_the_program(url, path):
    x = np.ones(100_000)
    saving = pario.save_checkpoint(path, {"x": x}, 1, wait=False, url=url)
    x[:] = 2
    saving.wait()
    assert saving.is_over and pario.load_checkpoint(path, url=url)["x"].sum() == 100_000


def test_a_failure_of_one_is_told_to_all(url, path):
    def save(rank, team):
        values = np.zeros(4 if rank else 5)
        try:
            pario.save_checkpoint(path, {"x": Shard((8,), (slice(4 * rank, 4 * rank + 4),), values)}, 1, comm=team, url=url)
        except (OSError, ValueError) as error:
            return str(error)

    said = members(url, 2, save)
    assert "broadcast" in said[0] and "rank 0 failed" in said[1]
    assert pario.checkpoints(path, url=url) == []


def test_damage_is_noticed(url, service, path):
    pario.save_checkpoint(path, {"x": np.arange(1000)}, 1, url=url)
    with service.open(f"{path}/step-1/t0") as array:
        array[500] = 3
    with pytest.raises(CheckpointError, match="checksum"):
        pario.load_checkpoint(path, url=url)
    assert pario.load_checkpoint(path, verify=False, url=url)["x"][500] == 3


def test_killed_while_saving_the_last_whole_one_loads(tmp_path):
    lines = """
import sys, numpy as np, pario
steps = pario.checkpoints('/run')
step = steps[-1] + 1 if steps else 0
while True:
    state = {'a': np.full((300, 100), step), 'b': [np.full(1000, step + i) for i in range(4)]}
    print(step, flush=True)
    pario.save_checkpoint('/run', state, step, keep=3)
    step += 1
"""
    url = f"dir:{tmp_path}/d"
    env = {**os.environ, "PARIO_URL": url}
    rng = random.Random(11)
    last = -1
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", lines], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(rng.randint(2, 4)):
            begun = int(child.stdout.readline())
        # Somewhere in the middle of saving `begun`: a moment that depends on nothing but the machine.
        for _ in range(rng.randrange(200_000)):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        service = Service(url)
        steps = [int(n[5:]) for n in service.list("/run") if n[5:].isdigit()]
        service.close()
        check = subprocess.run(
            [sys.executable, "-c", "import pario; s = pario.load_checkpoint('/run'); print(sorted({int(s['a'].min()), int(s['a'].max())} | {int(b[0]) - i for i, b in enumerate(s['b'])}))"],
            env=env, capture_output=True, text=True, timeout=60,
        )
        assert check.stdout.strip() == f"[{max(steps)}]", (check.stdout, check.stderr, steps)
        assert max(steps) >= begun - 1 and max(steps) > last
        last = max(steps)


def test_arrays_of_jax(url, path):
    jax = pytest.importorskip("jax")
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))
    whole = np.arange(24.0, dtype="f4").reshape(4, 6)
    x = jax.device_put(whole, NamedSharding(mesh, PartitionSpec("x", None)))
    pario.save_checkpoint(path, {"x": x}, 1, url=url)
    found = pario.load_checkpoint(path, like={"x": x}, url=url)["x"]
    assert found.sharding == x.sharding and np.array_equal(found, whole)
