"""The example notebooks run from top to bottom, each in a directory of its own."""

import json
import os
import pathlib

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_the_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PARIO_URL", "")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", os.fspath(tmp_path / "ipython"))
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": os.fspath(tmp_path)}}).execute()
    shown = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert shown and not [out for out in shown if out.output_type == "error"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_the_notebook_is_kept_without_what_it_printed(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None
