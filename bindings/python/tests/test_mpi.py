"""Under ``mpiexec`` with both of Debian's MPIs, each with mpi4py in an environment of its own (``scripts/mpi-environments``)."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading

import pytest

import pario

from test_program import _PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(__file__).with_name("mpi_program.py")
PACKAGE = pathlib.Path(pario.__file__).resolve().parent
SIZES = [1, 2, 4]


class Mpi:
    """One MPI, and the interpreter that has mpi4py for it."""

    def __init__(self, name, folder):
        self.name = name
        self.python = ROOT / ".mpi" / f"debian-{name}" / "bin" / "python"
        self.mpiexec = shutil.which(f"mpiexec.{name}")
        # The package and nothing beside it: the environment has a numpy of its own.
        self.package = folder / "package"
        self.package.mkdir()
        (self.package / "pario").symlink_to(PACKAGE)

    def missing(self):
        if self.mpiexec is None:
            return f"mpiexec.{self.name} is not there (scripts/setup)"
        if not self.python.exists():
            return f"{self.python} is not there (scripts/mpi-environments)"
        if _PROGRAM is None:
            return "the program pario is not built"
        return None

    def start(self, size, url, case, path, **how):
        options = ["--oversubscribe"] if self.name == "openmpi" else []
        libraries = self.python.parent.parent / "lib"
        env = {
            **os.environ,
            "PARIO_URL": url,
            # Under MPI a process of its own serves the directory.
            "PARIO_PROGRAM": str(_PROGRAM),
            "PYTHONPATH": str(self.package),
            "LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1",
        }
        command = [self.mpiexec, *options, "-n", str(size), str(self.python), str(PROGRAM), case, path]
        return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, text=True, **how)

    def run(self, size, url, case, path):
        child = self.start(size, url, case, path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            raise AssertionError(f"{case} of {size} did not end: {child.communicate()}") from None
        assert child.returncode == 0 and f"done {case} {size}" in out, f"{out}\n{err}"
        return out


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def mpi(request, tmp_path_factory):
    if not os.environ.get("PARIO_TEST_MPI"):
        pytest.skip("make test-python runs it (PARIO_TEST_MPI=1)")
    found = Mpi(request.param, tmp_path_factory.mktemp("mpi"))
    if found.missing():
        pytest.skip(found.missing())
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", ["arrays", "redistribute"])
def test_teams_of_mpi(mpi, tmp_path, size, case):
    mpi.run(size, f"dir:{tmp_path}/d", case, "/x")


def test_checkpoints_of_any_number_to_any_other(mpi, tmp_path):
    url = f"dir:{tmp_path}/d"
    for size in SIZES:
        mpi.run(size, url, "save", "/run")
    for size in [3, *SIZES]:
        mpi.run(size, url, "load", "/run")
    with pario.connect(url):
        assert pario.checkpoints("/run", url=url) == SIZES


def test_killed_while_saving_the_last_whole_one_loads(mpi, tmp_path):
    url = f"dir:{tmp_path}/d"
    rng = random.Random(mpi.name)
    last = -1
    for attempt in range(3):
        errors = (tmp_path / "errors").open("w+")
        child = mpi.start(4, url, "forever", "/run", stdout=subprocess.PIPE, stderr=errors)
        watch = threading.Timer(60, child.kill)
        watch.start()
        pids, begun, wanted = [], -1, rng.randint(2, 4)
        while wanted:
            line = child.stdout.readline()
            assert line, f"it ended by itself: {(tmp_path / 'errors').read_text()}"
            word, *numbers = line.split()
            if word == "pids":
                pids = [int(n) for n in numbers]
            else:
                begun, wanted = int(numbers[0]), wanted - 1
        # Somewhere in the middle of saving: a moment that depends on nothing but the machine.
        for _ in range(rng.randrange(300_000)):
            pass
        # One of them, whose death ends the others, or all at once.
        for pid in pids if attempt == 0 else [rng.choice(pids)]:
            os.kill(pid, signal.SIGKILL)
        child.stdout.read()
        child.wait()
        watch.cancel()
        errors.close()
        out = mpi.run(rng.choice(SIZES), url, "whole_ones", "/run")
        steps = [int(n) for n in out.splitlines()[0].split()[1:]]
        assert steps[-1] >= begun - 1 and steps[-1] > last
        last = steps[-1]
