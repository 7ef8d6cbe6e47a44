"""What ``pario import`` and ``pario export`` leave to Python: HDF5, and arrays that are compressed.

    python -m pario.convert import SOURCE PATH [--layout LAYOUT]
    python -m pario.convert export PATH TARGET [--chunks 100,100]
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from typing import Any

import numpy as np

from . import _service
from .rechunk import rechunk


def _import(source: str, path: str, layout: str | None, max_mem: str, progress: bool) -> None:
    how: dict[str, Any] = {} if layout is None else {"layout": layout}
    if source.endswith(".npz"):
        service = _service.connect()
        service.mkdir(path)
        with zipfile.ZipFile(source) as archive:
            for member in archive.namelist():
                with archive.open(member) as file:
                    values = np.lib.format.read_array(file)
                name = f"{path.rstrip('/')}/{member.removesuffix('.npy')}"
                with service.create(name, values.shape, values.dtype, overwrite=True, **how) as array:
                    array[...] = values
        return
    rechunk(source, f"pario://{path}", max_mem=max_mem, progress=progress, **how)


def main(arguments: list[str]) -> int:
    """Does what the arguments say; what failed is said in one line."""
    parser = argparse.ArgumentParser("pario.convert", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    taken = verbs.add_parser("import")
    taken.add_argument("source")
    taken.add_argument("path")
    taken.add_argument("--layout")
    given = verbs.add_parser("export")
    given.add_argument("path")
    given.add_argument("target")
    given.add_argument("--chunks")
    for verb in (taken, given):
        verb.add_argument("--max-mem", default="256MiB")
        verb.add_argument("--progress", action="store_true")
    said = parser.parse_args(arguments)
    try:
        if said.verb == "import":
            _import(said.source, said.path, said.layout, said.max_mem, said.progress)
        else:
            chunks = None if said.chunks is None else tuple(int(n) for n in said.chunks.split(","))
            rechunk(f"pario://{said.path}", said.target, chunks, said.max_mem, progress=said.progress)
    except ModuleNotFoundError as error:
        print(f"pario: {error.msg}", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError) as error:
        if os.environ.get("PARIO_LOG", "").startswith("debug"):
            raise
        print(f"pario: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
