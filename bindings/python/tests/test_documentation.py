"""What the package says about itself: examples that run, types that check, names that are there."""

import ast
import doctest
import importlib
import json
import pathlib
import pkgutil
import shutil
import subprocess
import sys

import numpy as np
import pytest

import pario

_ROOT = pathlib.Path(pario.__file__).parent
_NAMES = sorted(m.name for m in pkgutil.iter_modules([str(_ROOT)]) if m.name != "_native")


@pytest.mark.parametrize("name", ["", *_NAMES])
def test_examples_run(name, tmp_path, monkeypatch, service):
    if name in ("zarr", "xarray", "dask", "filesystem", "orbax", "torch"):
        pytest.importorskip({"filesystem": "fsspec", "orbax": "orbax.checkpoint"}.get(name, name))
    module = importlib.import_module(f"pario.{name}" if name else "pario")
    monkeypatch.setenv("PARIO_URL", f"dir:{tmp_path}/data")
    monkeypatch.chdir(tmp_path)
    known = {"np": np, "pario": pario}
    if name == "zarr":
        known["zarr"] = importlib.import_module("zarr")
        pario.create("/runs/7/field", (200, 200))
    if name == "torch":
        known["torch"] = importlib.import_module("torch")
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


_SETTINGS = pathlib.Path(__file__).parent.parent / "pyproject.toml"


def test_types_check(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    # Beside nothing else: what lies beside the package where it is installed is no part of it.
    shutil.copytree(_ROOT, tmp_path / "pario", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    settings = _SETTINGS
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir=/dev/null", "--python-version=3.11", str(tmp_path / "pario")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


#: What a program with types asks of the package.
_USES = """
import numpy as np
import pario
from typing import assert_type

a = pario.open("/x")
assert_type(a, pario.Array)
assert_type(a.shape, tuple[int, ...])
assert_type(a.mode, str)
assert_type(pario.checkpoints("/run"), list[int])
assert_type(pario.layout("(block) onto 2"), pario.Layout)
assert_type(pario.Team.alone().rank, int)
b = pario.create("/y", (3, 4), "f4", layout="(block, *) onto 2", attrs={"unit": "K"})
b[1:2, ...] = np.zeros((1, 4))
with pario.connect() as service:
    assert_type(service, pario.Service)
%s
"""
#: And what it may not: each of these lines is an error.
_MISUSES = ["a.shape = (1,)", "pario.create('/x')", "a.resize()", "pario.checkpoints(3)", "a.nothing"]


def test_types_check_by_pyright(tmp_path):
    pytest.importorskip("pyright", reason="pyright is not installed")
    told = subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, text=True)
    if told.returncode != 0:
        pytest.skip(f"pyright could not fetch what it runs: {told.stderr.strip().splitlines()[-1:]}")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "reportMissingImports": "none", "reportMissingModuleSource": "none"}')
    (tmp_path / "uses.py").write_text(_USES % "")
    (tmp_path / "misuses.py").write_text(_USES % "\n".join(_MISUSES))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    by_file = {name: [d for d in found if d["file"].endswith(f"/{name}.py") and d["severity"] == "error"] for name in ("uses", "misuses")}
    assert not by_file["uses"], by_file["uses"]
    first = (_USES % "").count("\n") - 1
    lines = {d["range"]["start"]["line"] for d in by_file["misuses"]}
    assert lines == {first + i for i in range(len(_MISUSES))}, by_file["misuses"]
    # The package itself, as pyright reads it.
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(_ROOT)]
    (tmp_path / "pyrightconfig.json").unlink()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    wrong = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error" and d.get("rule") not in ("reportMissingImports", "reportMissingModuleSource")]
    assert not wrong, "\n".join(f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}" for d in wrong)
