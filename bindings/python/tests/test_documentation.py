"""What the package says about itself: examples that run, types that check, names that are there."""

import ast
import doctest
import importlib
import pathlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import pario

_ROOT = pathlib.Path(pario.__file__).parent
_NAMES = sorted(m.name for m in pkgutil.iter_modules([str(_ROOT)]) if m.name != "_native")


@pytest.mark.parametrize("name", ["", *_NAMES])
def test_examples_run(name, tmp_path, monkeypatch, service):
    if name in ("zarr", "xarray", "dask", "filesystem", "orbax"):
        pytest.importorskip({"filesystem": "fsspec", "orbax": "orbax.checkpoint"}.get(name, name))
    module = importlib.import_module(f"pario.{name}" if name else "pario")
    monkeypatch.setenv("PARIO_URL", f"dir:{tmp_path}/data")
    monkeypatch.chdir(tmp_path)
    known = {"np": np, "pario": pario}
    if name == "zarr":
        known["zarr"] = importlib.import_module("zarr")
        pario.create("/runs/7/field", (200, 200))
    if name == "attributes":
        known["a"] = pario.create("/a", 3)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testmod(module, extraglobs=known, optionflags=flags)
    assert found.failed == 0


def test_the_stub_of_the_extension_has_all_that_is_there():
    tree = ast.parse((_ROOT / "_native.pyi").read_text())
    said = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    there = {name for name in vars(pario._native) if not name.startswith("_")}
    assert set(said) == there
    for name, node in said.items():
        if not isinstance(node, ast.ClassDef):
            continue
        members = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        members |= {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
        kind = getattr(pario._native, name)
        assert {m for m in members if m != "__init__"} == {m for m in vars(kind) if not m.startswith("_")}, name


def test_all_that_is_exported_is_there_and_documented():
    for name in pario.__all__:
        assert getattr(pario, name) is not None
        if name not in ("__version__", "block"):
            assert getattr(pario, name).__doc__, name


def test_types_check():
    pytest.importorskip("mypy", reason="mypy is not installed")
    settings = pathlib.Path(__file__).parent.parent / "pyproject.toml"
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir=/dev/null", "--python-version=3.11", str(_ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
