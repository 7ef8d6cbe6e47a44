"""The array API standard's own tests of indexing, over arrays that are files.

The suite (``array-api-tests`` of data-apis) is in no package index: ``PARIO_ARRAY_API_TESTS`` names a checkout of it, with its submodule.
"""

import os
import pathlib
import subprocess
import sys

import pytest

_SUITE = os.environ.get("PARIO_ARRAY_API_TESTS")


@pytest.mark.skipif(_SUITE is None, reason="the suite is in no package index: PARIO_ARRAY_API_TESTS names a checkout")
def test_indices_mean_what_the_standard_says(tmp_path):
    here = pathlib.Path(__file__).parent
    above = os.pathsep.join([str(here), *sys.path])
    env = {**os.environ, "PARIO_URL": f"dir:{tmp_path}/d", "PYTHONPATH": above, "ARRAY_API_TESTS_MODULE": "array_api_of_pario"}
    tests = "test_getitem or test_setitem"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "array_api_tests/test_array_object.py", "-k", tests, "--max-examples=200"]
    done = subprocess.run(command, cwd=_SUITE, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "8 passed" in done.stdout, done.stdout[-500:]
