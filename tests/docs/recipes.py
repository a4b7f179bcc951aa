"""The recipes for Spack and conda fit the project. usage: recipes.py ROOT

They cannot be run here. Their syntax, version and options are checked, and that each library of tools/setup that a build needs is
among their dependencies.
"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
project = (root / "CMakeLists.txt").read_text()
options = project + "".join(f.read_text() for f in (root / "tools" / "cmake").glob("*.cmake"))
version = re.search(r"project\(Lantern VERSION ([0-9.]+)", project).group(1)
# What tools/setup calls a library, and what the recipes do; names of other packages of its list are for tests and samples.
libraries = {"llvm-19-dev": "llvm", "libtcc-dev": "tcc", "libboost-context-dev": "boost", "libfmt-dev": "fmt", "libcli11-dev": "cli11",
             "libdlpack-dev": "dlpack", "libzip-dev": "libzip", "nlohmann-json3-dev": "nlohmann", "libopenblas-dev": "openblas",
             "libfftw3-dev": "fftw", "libonnx-dev": "onnx", "libprotobuf-dev": "protobuf", "cmake": "cmake", "ninja-build": "ninja"}
for_tests = {"g++", "ccache", "git", "libclang-19-dev", "libclang-cpp19-dev", "openmpi-bin", "libpng-dev", "zlib1g-dev", "libeigen3-dev",
             "catch2", "librapidcheck-dev", "libisl-dev", "libonnx-testdata", "gdb", "python3-numpy", "python3-venv", "python3-yaml"}
setup = re.search(r"packages=\((.*?)\n\)", (root / "tools" / "setup").read_text(), re.S).group(1)
installed = {word for line in setup.split("\n") for word in line.split("#")[0].split()}
wrong = [f"tools/setup has {p}, which {__file__} does not know" for p in installed - set(libraries) - for_tests]

spack = (root / "tools" / "packages" / "spack" / "package.py").read_text()
compile(spack, "package.py", "exec")
conda = (root / "tools" / "packages" / "conda" / "meta.yaml").read_text()
try:
    import yaml
except ImportError:
    print("skipped in part: PyYAML is missing (Debian: python3-yaml)")
else:
    recipe = yaml.safe_load(conda)
    if str(recipe["package"]["version"]) != version:
        wrong.append(f"meta.yaml is of version {recipe['package']['version']}, the project of {version}")
    conda = "\n".join(recipe["requirements"]["host"] + recipe["requirements"]["build"] + recipe["build"]["script"])
if f'version("{version}"' not in spack:
    wrong.append(f"package.py has no version {version}")
for text, name in ((spack, "package.py"), (conda, "meta.yaml")):
    wrong += [f"{name} lacks {theirs}" for theirs in libraries.values() if theirs not in text]
    wrong += [f"{name} sets {o}, which is no option" for o in re.findall(r"LANTERN_BUILD_\w+", text) if o not in options]
if version not in (root / "CITATION.cff").read_text():
    wrong.append(f"CITATION.cff is not of version {version}")
if wrong:
    sys.exit("\n".join(wrong))
