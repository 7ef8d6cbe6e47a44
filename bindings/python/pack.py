"""Packs what was built into a wheel: the package, its extension, the program `pario` and the MPI-IO library.

    python pack.py target/release target/wheel

`pip install ./bindings/python` needs Rust and builds the package alone; this wheel needs nothing, and after it `pario run` finds its library.
"""

import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
#: Libraries that every system of a manylinux tag has (PEP 600).
EVERYWHERE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libutil|ld-linux[-\w]*)\.so\.\d+")
#: The oldest C library that wheels are tagged for here.
AIMED_AT = (2, 28)


def needs(binary: bytes) -> tuple[int, int]:
    """The newest version of the C library that a binary names."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", binary)
    return max(((int(a), int(b)) for a, b in found), default=(0, 0))


def foreign(path: pathlib.Path) -> list[str]:
    """Libraries that it loads and that not every system has."""
    said = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return [name for name in re.findall(r"\(NEEDED\).*\[(.*?)\]", said) if not EVERYWHERE.fullmatch(name)]


def platform(paths: list[pathlib.Path]) -> str:
    """The tag that is true: what is in the wheel runs wherever it says."""
    machine = sysconfig.get_platform().partition("-")[2].replace("-", "_").replace(".", "_")
    others = sorted({name for path in paths for name in foreign(path)})
    if others:
        print(f"wheel: tagged for this kind of system only, since it loads {', '.join(others)}", file=sys.stderr)
        return f"linux_{machine}"
    major, minor = max([AIMED_AT, *(needs(path.read_bytes()) for path in paths)])
    if (major, minor) > AIMED_AT:
        print(f"wheel: built here it needs glibc {major}.{minor}; build on a system with 2.28 for older ones", file=sys.stderr)
    return f"manylinux_{major}_{minor}_{machine}"


def stripped(path: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Without what only debuggers read."""
    copy = folder / path.name
    shutil.copy2(path, copy)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", copy], check=True)
    return copy


def metadata(project: dict, version: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Summary: {project['description']}", f"License: {project['license']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {text}" for text in project["classifiers"]]
    lines += [f"Requires-Dist: {text}" for text in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {text}; extra == "{extra}"' for text in packages)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (HERE / project["readme"]).read_text()])


def pack(built: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((HERE / "../../Cargo.toml").read_text())["workspace"]["package"]["version"]
    name = project["name"]
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        extension, program, library = (
            stripped(built / file, pathlib.Path(scratch)) for file in ("lib_native.so", "pario", "libpario_mpiio.so")
        )
        tag = f"cp311-abi3-{platform([extension, program, library])}"
        info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
        points = "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items()) + "\n"
            for group, entries in project["entry-points"].items()
        )
        wheel = f"Wheel-Version: 1.0\nGenerator: pario\nRoot-Is-Purelib: false\nTag: {tag}\n"
        package = HERE / "python" / name
        files = {f"{name}/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"}
        files |= {
            f"{name}/_native.abi3.so": extension.read_bytes(),
            # Where programs look for it: the library folder beside the folder of the program.
            f"{data}/scripts/pario": program.read_bytes(),
            f"{data}/data/lib/libpario_mpiio.so": library.read_bytes(),
            f"{info}/METADATA": metadata(project, version).encode(),
            f"{info}/WHEEL": wheel.encode(),
            f"{info}/entry_points.txt": points.encode(),
        }
        for license in sorted((HERE / "../..").glob("LICENSE-*")):
            files[f"{info}/licenses/{license.name}"] = license.read_bytes()
        record = "".join(
            f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
            for path, content in files.items()
        )
        files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
        made = target / f"{name}-{version}-{tag}.whl"
        for old in target.glob(f"{name}-*.whl"):
            old.unlink()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                # The same content makes the same wheel.
                facts = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                facts.compress_type = zipfile.ZIP_DEFLATED
                facts.external_attr = (0o100755 if "/scripts/" in path or path.endswith(".so") else 0o100644) << 16
                archive.writestr(facts, content)
    return made


if __name__ == "__main__":
    print(pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
