"""A directory of its own for every test session, and one path for every test."""

import asyncio
import inspect
import itertools
import os

import pytest

import pario

# A mesh needs devices; JAX reads this when it starts.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

_numbers = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests that are coroutines, which those of zarr-python are, run without a plugin."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    return f"dir:{tmp_path_factory.mktemp('service') / 'data'}"


@pytest.fixture(scope="session")
def service(url):
    with pario.connect(url) as service:
        yield service


@pytest.fixture
def path():
    return f"/test-{next(_numbers)}"
