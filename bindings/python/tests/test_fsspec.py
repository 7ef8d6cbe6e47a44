"""The file system under the test classes of fsspec, and by itself."""

import itertools

import numpy as np
import pytest

fsspec = pytest.importorskip("fsspec")

import fsspec.tests.abstract as abstract  # noqa: E402

from pario.filesystem import ParioFileSystem  # noqa: E402


_numbers = itertools.count()


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self, url):
        return ParioFileSystem(url=url, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self):
        # Some tests have a parameter of the name `path`.
        return f"/fsspec/{next(_numbers)}"

    @pytest.fixture
    def supports_empty_directories(self):
        return True


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


@pytest.fixture
def fs(url):
    return ParioFileSystem(url=url)


def test_it_is_found_by_its_name(url, path):
    with fsspec.open(f"pario://{path}/x/y.txt", "wt", url=url) as file:
        file.write("line 1\nline 2\n")
    with fsspec.open(f"pario://{path}/x/y.txt", "rt", url=url) as file:
        assert file.readlines() == ["line 1\n", "line 2\n"]
    assert isinstance(fsspec.filesystem("pario", url=url), ParioFileSystem)


def test_bytes_of_an_array(fs, service, path):
    a = service.create(path, (4, 4), "u1", layout="(*, block) onto 2")
    a[...] = np.arange(16).reshape(4, 4)
    assert fs.cat_file(path) == bytes(range(16))
    assert fs.cat_file(path, 3, -2) == bytes(range(3, 14))
    assert fs.info(path)["array"] == "u8[4,4]"


def test_writing_appends_and_replaces(fs, path):
    fs.pipe_file(path, b"abc")
    with fs.open(path, "ab") as file:
        file.write(b"def")
    assert fs.cat_file(path) == b"abcdef"
    before = fs.ukey(path)
    with fs.open(path, "wb", block_size=4) as file:
        for i in range(10):
            file.write(bytes([i]) * 3)
    assert fs.cat_file(path) == bytes(i for i in range(10) for _ in range(3))
    assert fs.ukey(path) != before
    with fs.open(path, "rb") as file:
        file.seek(-4, 2)
        assert file.read() == bytes([8, 9, 9, 9])


def test_a_write_that_fails_leaves_what_was_there(fs, path):
    fs.pipe_file(path, b"old")
    file = fs.open(path, "wb", autocommit=False)
    file.write(b"new")
    file.close()
    assert fs.cat_file(path) == b"old"
    file.discard()
    assert [f["name"] for f in fs.ls("/") if ".writing" in f["name"]] == []
    with pytest.raises(FileNotFoundError):
        fs.open(f"{path}-none", "rb")
    with pytest.raises(FileExistsError):
        fs.open(path, "xb")


def test_names(fs, path):
    fs.makedirs(f"{path}/a/b")
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{path}/a")
    fs.pipe({f"{path}/a/1": b"x", f"{path}/a/b/2": b"yy"})
    assert fs.find(path) == [f"{path}/a/1", f"{path}/a/b/2"]
    assert fs.glob(f"{path}/**/2") == [f"{path}/a/b/2"]
    assert fs.du(path) == 3
    fs.mv(f"{path}/a", f"{path}/c")
    assert fs.find(path) == [f"{path}/c/1", f"{path}/c/b/2"]
    fs.rm(path, recursive=True)
    assert not fs.exists(path)
