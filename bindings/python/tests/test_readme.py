"""The first lines that a reader of the README tries, and what a wheel brings besides."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import pario

_README = pathlib.Path(__file__).resolve().parents[3] / "README.md"
_PROGRAM = pathlib.Path(sys.prefix) / "bin" / "pario"


def test_the_lines_of_the_readme_run(tmp_path):
    lines = re.search(r"```python\n(.*?)```", _README.read_text(), re.S)[1]
    assert len(lines.splitlines()) == 5
    check = "\nassert column.shape == (4096,) and (column[:1024] > 0).all() and not column[1024:].any()\nassert a.layout == '(*, block) onto 4'"
    env = {key: value for key, value in os.environ.items() if key != "PARIO_URL"}
    done = subprocess.run([sys.executable, "-c", lines + check], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".pario").is_dir()


@pytest.mark.skipif(not _PROGRAM.exists(), reason="the package was not installed from a wheel of `make wheel`, which brings the program")
def test_a_wheel_brings_program_and_library(tmp_path):
    env = {key: value for key, value in os.environ.items() if key != "PARIO_URL"}

    def run(*arguments):
        done = subprocess.run([_PROGRAM, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").split() == ["pario", pario.__version__]
    loaded = run("run", "--", sys.executable, "-c", "print(open('/proc/self/maps').read())")
    assert "libpario_mpiio.so" in loaded, "`pario run` finds the library of the wheel"
    # Program and package speak with each other.
    lines = "import numpy as np, pario; pario.save('/x', np.arange(12.0).reshape(3, 4))"
    subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=env, check=True, timeout=60)
    run("export", "/x", "x.npy")
    run("import", "x.npy", "/y")
    lines = "import pario; assert pario.load('/y').sum() == 66 and pario.load('/y').shape == (3, 4)"
    subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=env, check=True, timeout=60)
