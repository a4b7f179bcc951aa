"""The recipes for Spack and conda fit the project. usage: recipes.py ROOT

Neither Spack nor conda-build runs here. The recipe for Spack is run with stand-ins for what it calls: its source is this clone, and its
names are CMake's. Of both, version and options are checked, and that each library of tools/setup that a build needs is among
their dependencies.
"""
import re
import runpy
import sys
import types
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
             "catch2", "clang-19", "librapidcheck-dev", "libisl-dev", "libonnx-testdata", "gdb", "python3-numpy", "python3-venv", "python3-yaml"}
setup = re.search(r"packages=\((.*?)\n\)", (root / "tools" / "setup").read_text(), re.S).group(1)
installed = {word for line in setup.split("\n") for word in line.split("#")[0].split()}
wrong = [f"tools/setup has {p}, which {__file__} does not know" for p in installed - set(libraries) - for_tests]

recipe = root / "tools" / "packages" / "spack" / "packages" / "lantern" / "package.py"
spack = recipe.read_text()
if (recipe.parents[2] / "repo.yaml").read_text() != "repo:\n  namespace: lantern\n":
    wrong.append("repo.yaml is not that of a repository of Spack")


class CMakePackage:
    @staticmethod
    def define(name, value):
        return f"-D{name}={'ON' if value else 'OFF'}"


# What spack.package offers, as far as the recipe calls it: the calls by name.
calls = {name: [] for name in ("license", "version", "depends_on", "conflicts", "generator")}
stand_ins = {name: (lambda *a, name=name, **k: calls[name].append((a, k))) for name in calls}
module = types.ModuleType("spack.package")
module.__dict__.update(stand_ins, CMakePackage=CMakePackage)
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
package = runpy.run_path(str(recipe))["Lantern"]
if package.git != root.resolve().as_uri():
    wrong.append(f"package.py builds {package.git}, not {root}")
if package().cmake_args() != ["-DLANTERN_BUILD_TESTS=OFF", "-DLANTERN_BUILD_SAMPLES=OFF"]:
    wrong.append(f"package.py gives CMake {package().cmake_args()}")
if (("main",), {"branch": "main"}) not in calls["version"] or ((version,), {"tag": f"v{version}", "preferred": True}) not in calls["version"]:
    wrong.append(f"package.py has the versions {calls['version']}")
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
for text, name in ((spack, "package.py"), (conda, "meta.yaml")):
    wrong += [f"{name} lacks {theirs}" for theirs in libraries.values() if theirs not in text]
    wrong += [f"{name} sets {o}, which is no option" for o in re.findall(r"LANTERN_BUILD_\w+", text) if o not in options]
if version not in (root / "CITATION.cff").read_text():
    wrong.append(f"CITATION.cff is not of version {version}")
if wrong:
    sys.exit("\n".join(wrong))
