"""What every process of `mpiexec` runs for `test_mpi.py`: a case by its name, against numpy. The last line of rank 0 says that all went well."""

import itertools
import os
import random
import sys
import time

import numpy as np
from mpi4py import MPI

import pario
from pario.checkpoint import Shard

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def whole(shape, dtype="f8"):
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


def same(found, due):
    assert found.dtype == due.dtype and np.array_equal(found, due), (RANK, found, due)


def part_of(values, layout, size, rank):
    """The part of a rank in a layout of blocks and cycles, by numpy alone."""
    kinds = [k.strip() for k in layout[1 : layout.rindex(")")].split(",")]
    grid = [1 if k == "*" else size for k in kinds]
    assert sum(g > 1 for g in grid) <= 1 or size == 1
    for d, kind in enumerate(kinds):
        n = values.shape[d]
        if kind == "block":
            b = -(-n // size)
            values = np.take(values, range(min(rank * b, n), min((rank + 1) * b, n)), axis=d)
        elif kind.startswith("cyclic"):
            b = int(kind[7:-1] or 1) if "(" in kind else 1
            values = np.take(values, [i for i in range(n) if i // b % size == rank], axis=d)
    return values


LAYOUTS = ["(block, *) onto {size}", "(*, block) onto {size}", "(cyclic, *) onto {size}", "(*, cyclic(3)) onto {size}"]


def arrays(path):
    """Collective and other accesses; the parts of a team; records of all at the same time."""
    for order, dtype in itertools.product("CF", ["f8", "i2"]):
        shape = (13, 9)
        a = pario.create(f"{path}-{order}-{dtype}", shape, dtype, order=order, layout="(block, *) onto 2", comm=COMM)
        model = whole(shape, dtype)
        a.mine[...] = part_of(model, LAYOUTS[0], SIZE, RANK)
        a.team.barrier()
        same(a[...], model)
        same(a.mine[...], part_of(model, LAYOUTS[0], SIZE, RANK))
        same(a[pario.block], part_of(model, LAYOUTS[0], SIZE, RANK))
        for layout in LAYOUTS:
            same(a.view(layout).read(), part_of(model, layout, SIZE, RANK))
            part = a.view(layout)
            part.write(2 * part.read())
            model = 2 * model
            a.team.barrier()
            same(a[...], model)
            # Before the next part is written, all have seen this one.
            a.team.barrier()
        # Every rank its rows, by itself.
        a[RANK::SIZE] = RANK
        a.team.barrier()
        same(a[:, 4], np.array([i % SIZE for i in range(13)], dtype))
        a.close()
    records = pario.create(f"{path}-records", (0, 2), "i8", comm=COMM)
    firsts = [records.append([[RANK, i], [RANK, i]]) for i in range(5)]
    COMM.Barrier()
    records.refresh()
    assert records.shape == (10 * SIZE, 2)
    for i, first in enumerate(firsts):
        same(records[first : first + 2], np.array([[RANK, i], [RANK, i]]))
    # A failure of rank 0 is one of all.
    try:
        pario.create(f"{path}-records", 3, comm=COMM)
    except OSError:
        pass
    else:
        raise AssertionError("created twice")


def redistribute(path):
    rng = random.Random(7)
    team = pario.Team.of(COMM)
    for dtype in ["f8", "i1", "c16"]:
        for source, target in itertools.product(LAYOUTS, LAYOUTS):
            shape = (rng.randint(1, 17), rng.randint(1, 17))
            model = whole(shape, dtype)
            local = part_of(model, source, SIZE, RANK)
            for _ in range(2):
                found = pario.redistribute(np.ascontiguousarray(local), source, target, team, shape=shape)
                same(found, part_of(model, target, SIZE, RANK))
    team.close()


def pieces(rng, shape, size):
    """Pieces of every rank: uneven parts of a dimension, strided ones, or the whole."""
    kind = rng.choice(["parts", "strided", "replicated"])
    if kind == "replicated":
        return [[(slice(None),) * len(shape)] for _ in range(size)]
    d = rng.randrange(len(shape))
    before, after = (slice(None),) * d, (slice(None),) * (len(shape) - d - 1)
    if kind == "strided":
        return [[(*before, slice(rank, None, size), *after)] for rank in range(size)]
    bounds = [0, *sorted(rng.randint(0, shape[d]) for _ in range(size - 1)), shape[d]]
    return [[(*before, slice(a, b), *after)] for a, b in zip(bounds, bounds[1:])]


def cases(number):
    rng = random.Random(number)
    shapes = [tuple(rng.randint(1, 30) for _ in range(rng.randint(1, 3))) for _ in range(4)]
    return [(shape, rng.choice(["f4", "i8", "c16"])) for shape in shapes]


def save(path):
    """A checkpoint with the number of processes as its step."""
    state = {}
    for i, (shape, dtype) in enumerate(cases(SIZE)):
        model = whole(shape, dtype)
        state[f"w{i}"] = [Shard(shape, index, model[index]) for index in pieces(random.Random(100 * SIZE + i), shape, SIZE)[RANK]]
    state["n"] = SIZE
    saving = pario.save_checkpoint(path, state, SIZE, comm=COMM, wait=False)
    saving.wait()


def load(path):
    """All of them, by another number of processes with other pieces."""
    for step in pario.checkpoints(path):
        for seed in range(3):
            wanted = [pieces(random.Random(f"{seed}-{step}-{i}"), shape, SIZE)[RANK] for i, (shape, _) in enumerate(cases(step))]
            like = {f"w{i}": [Shard(shape, index) for index in wanted[i]] for i, (shape, _) in enumerate(cases(step))}
            found = pario.load_checkpoint(path, step, like=like, comm=COMM)
            assert found["n"] == step
            for i, (shape, dtype) in enumerate(cases(step)):
                for index, values in zip(wanted[i], found[f"w{i}"], strict=True):
                    same(values, whole(shape, dtype)[index])


def forever(path):
    """Saves one checkpoint after the other until it is killed."""
    pids = COMM.gather(os.getpid())
    if RANK == 0:
        print("pids", *pids, flush=True)
    steps = pario.checkpoints(path) if RANK == 0 else None
    steps = COMM.bcast(steps)
    step = steps[-1] + 1 if steps else 0
    team = pario.Team.of(COMM)
    while True:
        rows = np.full((10, 1000), step)
        state = {"a": Shard((10 * SIZE, 1000), np.s_[10 * RANK : 10 * RANK + 10], rows), "b": np.full(7, step), "n": step}
        if RANK == 0:
            print(f"begun {step}", flush=True)
        pario.save_checkpoint(path, state, step, comm=team, keep=3)
        step += 1


def whole_ones(path):
    """Every checkpoint that has a name is whole."""
    steps = COMM.bcast(pario.checkpoints(path) if RANK == 0 else None)
    for step in steps:
        found = pario.load_checkpoint(path, step, comm=COMM)
        assert (found["a"] == step).all() and (found["b"] == step).all() and found["n"] == step
    if RANK == 0:
        print("steps", *steps)


if __name__ == "__main__":
    case, path = sys.argv[1:]
    begun = time.monotonic()
    globals()[case](path)
    COMM.Barrier()
    if RANK == 0:
        print(f"done {case} {SIZE} in {time.monotonic() - begun:.1f} s", flush=True)
