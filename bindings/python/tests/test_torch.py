"""PyTorch: its distributed checkpoints over several processes, DTensors, datasets in workers, tensors as memory."""

import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import torch.multiprocessing  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import pario  # noqa: E402
import pario.torch  # noqa: E402
from pario.torch import ArrayDataset, ParioReader, ParioWriter  # noqa: E402

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="this PyTorch has no gloo")


def _member(rank, size, work, folder, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size)
    try:
        work(*arguments)
        dist.barrier()
    finally:
        dist.destroy_process_group()


def processes(tmp_path, size, work, *arguments):
    """Runs a function as each process of a group; what one of them raises is raised here."""
    folder = tmp_path / f"meet-{random.random()}"
    folder.mkdir()
    torch.multiprocessing.spawn(_member, (size, work, str(folder), arguments), nprocs=size)


def whole(name):
    """The values that every process knows."""
    made = torch.Generator().manual_seed(sum(map(ord, name)))
    shapes = {"uneven": (7, 10), "half": (9, 3), "deep": (4, 5, 6), "small": (2, 3), "plain": (5,), "rows": (13, 2)}
    values = torch.randn(shapes[name], generator=made)
    return values.bfloat16() if name == "half" else values.double() if name == "deep" else values


def state_on(mesh, placements, empty=False):
    """A state of DTensors by these placements, and of what is not spread."""
    made = {n: distribute_tensor(whole(n), mesh, p) for n, p in placements.items()}
    if empty:
        for tensor in made.values():
            tensor.to_local().zero_()
    plain = whole("plain")
    return {"model": made, "plain": torch.zeros_like(plain) if empty else plain, "step": 0 if empty else 5, "scalar": torch.tensor(0.0 if empty else 2.5)}


def check(found):
    for name, tensor in found["model"].items():
        assert torch.equal(tensor.full_tensor(), whole(name)), name
    assert torch.equal(found["plain"], whole("plain")) and found["step"] == 5 and found["scalar"] == 2.5


FOUR = {
    "uneven": [Shard(0), Shard(1)],
    "half": [Replicate(), Shard(0)],
    "deep": [Shard(2), Shard(0)],
    "small": [Shard(0), Shard(0)],  # more members than rows: some have none
    "rows": [Replicate(), Replicate()],
}
TWO = {"uneven": [Shard(1)], "half": [Shard(1)], "deep": [Shard(1)], "small": [Replicate()], "rows": [Shard(0)]}


def _save_on_four(url, path):
    mesh = init_device_mesh("cpu", (2, 2))
    dcp.save(state_on(mesh, FOUR), storage_writer=ParioWriter(f"{path}/step-1", url=url))
    # Beside the program, and again under the same name.
    for step in (2, 2):
        dcp.async_save(state_on(mesh, FOUR), storage_writer=ParioWriter(url=url), checkpoint_id=f"{path}/step-{step}").result()


def _load_on_two(url, path):
    mesh = init_device_mesh("cpu", (2,))
    for step in (1, 2):
        found = state_on(mesh, TWO, empty=True)
        dcp.load(found, storage_reader=ParioReader(f"{path}/step-{step}", url=url))
        check(found)
    # Another type than the one that was saved.
    other = {"model": {"uneven": distribute_tensor(torch.zeros(7, 10, dtype=torch.float64), mesh, [Shard(0)])}}
    dcp.load(other, storage_reader=ParioReader(f"{path}/step-1", url=url))
    assert torch.equal(other["model"]["uneven"].full_tensor(), whole("uneven").double())


def test_saved_by_four_loaded_by_two_and_by_one(tmp_path, url, path):
    processes(tmp_path, 4, _save_on_four, url, path)
    processes(tmp_path, 2, _load_on_two, url, path)
    assert pario.checkpoints(path, url=url) == [1, 2]
    assert pario.connect(url).list(path) == ["step-1", "step-2"]
    found = {"model": {n: torch.zeros_like(whole(n)) for n in FOUR}, "plain": torch.zeros(5), "step": 0, "scalar": torch.tensor(0.0)}
    dcp.load(found, storage_reader=ParioReader(f"{path}/step-2", url=url))
    assert all(torch.equal(found["model"][n], whole(n)) for n in FOUR) and found["step"] == 5 and found["scalar"] == 2.5
    # Each tensor is an array, whatever pieces it came in.
    plain = pario.load_checkpoint(path, 1, url=url)
    assert np.array_equal(plain["model.uneven"], whole("uneven").numpy())
    assert plain["model.half"].tobytes() == whole("half").view(torch.int16).numpy().tobytes()


def test_what_does_not_fit_is_said(url, path):
    state = {"w": torch.arange(12.0).reshape(3, 4), "o": {"lr": 0.5}}
    with pytest.raises(CheckpointException, match="no checkpoint is named"):
        dcp.save(state, storage_writer=ParioWriter(url=url))
    dcp.save(state, storage_writer=ParioWriter(path, url=url))
    with pytest.raises(CheckpointException, match="Size mismatch"):
        dcp.load({"w": torch.zeros(4, 4)}, storage_reader=ParioReader(path, url=url))
    with pytest.raises(CheckpointException, match="Missing key"):
        dcp.load({"x": torch.zeros(3, 4)}, storage_reader=ParioReader(path, url=url))
    with pytest.raises(CheckpointException, match="no such file|not found|No such|metadata"):
        dcp.load({"w": torch.zeros(3, 4)}, storage_reader=ParioReader(f"{path}-none", url=url))
    with pytest.raises(ValueError, match="root"):
        ParioWriter("/")
    with pario.open(f"{path}/t0", url=url) as array:
        array[1, 1] = -1
    with pytest.raises(CheckpointException, match="checksum"):
        dcp.load({"w": torch.zeros(3, 4)}, storage_reader=ParioReader(path, url=url))
    found = {"w": torch.zeros(3, 4)}
    dcp.load(found, storage_reader=ParioReader(path, url=url, verify=False))
    assert found["w"][1, 1] == -1 and found["w"][2, 3] == 11


def test_a_program_that_dies_while_it_replaces_a_checkpoint(url, path, monkeypatch):
    dcp.save({"w": torch.ones(3)}, storage_writer=ParioWriter(f"{path}/last", url=url))
    real = pario.Service.rename

    def dies(service, source, target):
        if target.endswith("/last"):
            raise OSError("the end")
        real(service, source, target)

    monkeypatch.setattr(pario.Service, "rename", dies)
    with pytest.raises(CheckpointException, match="the end"):
        dcp.save({"w": torch.zeros(3)}, storage_writer=ParioWriter(f"{path}/last", url=url))
    monkeypatch.undo()
    for due in (1, 7):
        found = {"w": torch.full((3,), -1.0)}
        dcp.load(found, storage_reader=ParioReader(f"{path}/last", url=url))
        assert found["w"].tolist() == [due] * 3
        dcp.save({"w": torch.full((3,), 7.0)}, storage_writer=ParioWriter(f"{path}/last", url=url))
    assert pario.connect(url).list(path) == ["last"]


def test_every_type_comes_back(url, path):
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32]
    kinds += [torch.int64, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16]
    state = {str(k): (torch.arange(6) % 2 if k == torch.bool else torch.arange(6)).to(k).reshape(2, 3) for k in kinds}
    state["strided"] = torch.arange(24.0).reshape(4, 6).T[::2, 1:]
    state["empty"] = torch.zeros(0, 3)
    dcp.save(state, storage_writer=ParioWriter(path, url=url))
    found = {name: torch.zeros_like(t) for name, t in state.items()}
    found["strided"] = torch.zeros(8, 3).T[:, ::2][:, :3].T.contiguous().T
    dcp.load(found, storage_reader=ParioReader(path, url=url))
    for name, tensor in state.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name].contiguous().view(torch.uint8), tensor.contiguous().view(torch.uint8)), name


def _train(url, path, is_first):
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0 if is_first else 1)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    given = torch.linspace(-1, 1, 20).reshape(4, 5)

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            model(given).square().sum().backward()
            optimizer.step()

    if is_first:
        steps(2)
        weights, state = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": state}, storage_writer=ParioWriter(path, url=url))
        steps(2)
        after = [p.full_tensor().detach().numpy() for p in model.parameters()]
        if dist.get_rank() == 0:
            for number, values in enumerate(after):
                pario.save(f"{path}-after/{number}", values, url=url)
        return
    weights, state = get_state_dict(model, optimizer)
    loaded = {"model": weights, "optimizer": state}
    dcp.load(loaded, storage_reader=ParioReader(path, url=url))
    set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    steps(2)
    for number, parameter in enumerate(model.parameters()):
        due = pario.load(f"{path}-after/{number}", url=url)
        assert np.allclose(parameter.full_tensor().detach().numpy(), due, rtol=1e-5, atol=1e-6)


def test_training_goes_on_with_other_processes(tmp_path, url, path):
    processes(tmp_path, 3, _train, url, path, True)
    processes(tmp_path, 2, _train, url, path, False)


def _save_pieces(url, path):
    mesh = init_device_mesh("cpu", (2, 2))
    from torch.distributed.tensor.placement_types import _StridedShard

    state = state_on(mesh, FOUR)
    state["model"].pop("half")
    values = whole("rows")
    # As FSDP beside tensor parallelism has it: shards of shards from the right to the left.
    x, y = mesh.get_coordinate()
    local = values.chunk(2)[y].chunk(2)[x]
    state["model"]["rows"] = DTensor.from_local(
        local.contiguous(), mesh, [_StridedShard(0, split_factor=2), Shard(0)], run_check=False, shape=values.shape, stride=values.stride()
    )
    alone = values[:12].chunk(2)
    taken = torch.cat([part.chunk(2)[x] for part in alone])
    state["turns"] = DTensor.from_local(
        taken, mesh, [_StridedShard(0, split_factor=2), Replicate()], run_check=False, shape=(12, 2), stride=(2, 1)
    )
    pario.save_checkpoint(path, state, 1, comm=dist.group.WORLD, url=url)
    with pytest.raises(ValueError, match="sums"):
        from torch.distributed.tensor import Partial

        pario.save_checkpoint(path, {"w": DTensor.from_local(local, mesh, [Partial(), Replicate()], run_check=False)}, 2, comm=dist.group.WORLD, url=url)


def _load_pieces(url, path):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    like = {"model": {n: distribute_tensor(torch.zeros_like(whole(n)), mesh, TWO[n]) for n in TWO if n != "half"}}
    like["turns"] = distribute_tensor(torch.zeros(12, 2), mesh, [Shard(0)])
    like["plain"] = torch.zeros(5)
    found = pario.load_checkpoint(path, 1, like=like, comm=dist.group.WORLD, url=url)
    for name, tensor in found["model"].items():
        assert isinstance(tensor, DTensor) and tensor.placements == like["model"][name].placements
        assert torch.equal(tensor.full_tensor(), whole(name)), name
    assert torch.equal(found["turns"].full_tensor(), whole("rows")[:12])
    assert torch.equal(found["plain"], whole("plain")) and found["step"] == 5


def test_dtensors_are_pieces_of_a_checkpoint(tmp_path, url, path):
    processes(tmp_path, 4, _save_pieces, url, path)
    processes(tmp_path, 3, _load_pieces, url, path)
    assert np.array_equal(pario.load_checkpoint(path, 1, url=url)["model"]["rows"], whole("rows").numpy())
    assert pario.checkpoints(path, url=url) == [1]


def test_killed_while_saving_the_last_whole_one_loads(tmp_path):
    lines = """
import pario, torch, pario.torch
import torch.distributed.checkpoint as dcp
steps = pario.checkpoints('/run')
step = steps[-1] + 1 if steps else 0
while True:
    print(step, flush=True)
    dcp.save({'a': torch.full((300, 100), step), 'b': {'x': torch.full((9,), step), 'n': step}}, storage_writer=pario.torch.ParioWriter(f'/run/step-{step}'))
    step += 1
"""
    url = f"dir:{tmp_path}/d"
    rng = random.Random(3)
    last = -1
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", lines], env={**os.environ, "PARIO_URL": url}, stdout=subprocess.PIPE, text=True)
        for _ in range(rng.randint(2, 4)):
            begun = int(child.stdout.readline())
        for _ in range(rng.randrange(200_000)):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        with pario.connect(url):
            steps = pario.checkpoints("/run", url=url)
            for step in steps:
                found = {"a": torch.zeros(300, 100, dtype=torch.int64), "b": {"x": torch.zeros(9, dtype=torch.int64), "n": -1}}
                dcp.load(found, storage_reader=ParioReader(f"/run/step-{step}", url=url))
                assert (found["a"] == step).all() and (found["b"]["x"] == step).all() and found["b"]["n"] == step
        assert steps[-1] >= begun - 1 and steps[-1] > last
        last = steps[-1]


@pytest.mark.parametrize("context", [None, "fork", "spawn"])
def test_samples_in_workers(url, service, path, context):
    x = service.create(f"{path}/x", (50, 3), "f4", layout="(block, *) onto 2")
    x[...] = np.arange(150).reshape(50, 3)
    y = service.create(f"{path}/y", 50, "i8")
    y[...] = np.arange(50) ** 2
    samples = ArrayDataset(x, y)
    assert len(samples) == 50 and samples[-1][1] == 49**2 and torch.equal(samples[2][0], torch.tensor([6.0, 7.0, 8.0]))
    with pytest.raises(IndexError):
        samples[50]
    how = {} if context is None else {"num_workers": 2, "multiprocessing_context": context, "persistent_workers": True}
    loader = DataLoader(samples, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(1), **how)
    for _ in range(2):
        seen = []
        for batch, squares in loader:
            numbers = (batch[:, 0] / 3).long()
            assert torch.equal(batch, torch.arange(150.0).reshape(50, 3)[numbers]) and torch.equal(squares, numbers**2)
            seen += numbers.tolist()
        assert sorted(seen) == list(range(50)) and seen != sorted(seen)
    # Reading in this process still works after its children are gone.
    assert x[49, 2] == 149
    with pytest.raises(ValueError, match="extents"):
        ArrayDataset(x, service.create(f"{path}/z", 49))


def test_tensors_as_memory(service, path):
    a = service.create(path, (4, 6), "f4")
    given = torch.arange(24.0).reshape(6, 4).T
    a[...] = given.requires_grad_()
    out = torch.zeros(4, 12)[:, ::2]
    assert a.get(..., out=out) is out and torch.equal(out, given.detach())
    assert torch.equal(torch.from_dlpack(a), given.detach())
    assert torch.equal(pario.torch.as_tensor(a[::-1]), given.detach().flip(0))
    with pytest.raises(TypeError, match="M8|datetime"):
        pario.torch.as_tensor(np.zeros(2, "M8[s]"))
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    b = service.create(f"{path}-b", 5, "bfloat16")
    b[...] = torch.arange(5).bfloat16()
    half = torch.zeros(5, dtype=torch.bfloat16)
    assert torch.equal(b.get(..., out=half), torch.arange(5).bfloat16())
    with pytest.raises(ValueError, match="out"):
        a.get(0, out=torch.zeros(6, dtype=torch.bfloat16))
