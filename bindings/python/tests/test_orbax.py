"""Orbax with the handler of Pario: other shardings, managers that keep the last ones."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")

import pario.orbax  # noqa: E402
from pario.orbax import ParioCheckpointHandler, ParioRestore, ParioSave  # noqa: E402

P = jax.sharding.PartitionSpec


def meshes():
    devices = np.array(jax.devices()[:8])
    if len(devices) < 8:
        pytest.skip("XLA_FLAGS gives JAX fewer than 8 devices")
    return jax.sharding.Mesh(devices.reshape(4, 2), ("x", "y")), jax.sharding.Mesh(devices.reshape(2, 4), ("x", "y"))


def test_one_mesh_in_another_out(tmp_path):
    first, second = meshes()
    values = np.arange(16 * 24, dtype="f4").reshape(16, 24)
    sharded = jax.device_put(values, jax.sharding.NamedSharding(first, P("x", "y")))
    state = {"w": sharded, "b": [np.arange(3.0), jax.numpy.float32(2)], "step": 7}
    with ocp.Checkpointer(ParioCheckpointHandler()) as checkpointer:
        checkpointer.save(tmp_path / "a", args=ParioSave(state))
        wanted = jax.sharding.NamedSharding(second, P("y", None))
        like = {"w": jax.ShapeDtypeStruct(values.shape, values.dtype, sharding=wanted)}
        found = checkpointer.restore(tmp_path / "a", args=ParioRestore(like))
        assert found["w"].sharding == wanted and np.array_equal(found["w"], values)
        assert np.array_equal(found["b"][0], np.arange(3.0)) and found["b"][1] == 2 and found["step"] == 7
        whole = checkpointer.restore(tmp_path / "a")
        assert isinstance(whole["w"], np.ndarray) and np.array_equal(whole["w"], values)
        (tmp_path / "other").mkdir()
        with pytest.raises(pario.CheckpointError, match="was not saved by pario.orbax"):
            ParioCheckpointHandler().restore(tmp_path / "other")


def test_a_manager_keeps_the_last_two(tmp_path):
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
    with ocp.CheckpointManager(tmp_path / "run", options=options, item_handlers=ParioCheckpointHandler()) as manager:
        for step in range(4):
            manager.save(step, args=ParioSave({"w": np.full(5, step)}))
        assert manager.all_steps() == [2, 3]
        assert manager.restore(3, args=ParioRestore())["w"].tolist() == [3] * 5
        assert manager.restore(2)["w"].tolist() == [2] * 5
