# In a clone of Lantern: `spack repo add tools/packages/spack`, then `spack install lantern@main`, which builds the clone's
# branch main, or `spack install lantern` for the tag of the version. In a repository of your own: put the address of the
# repository of Lantern that you build from in place of `git`.
# It has not been run by Spack; tests/docs/recipes.py runs it, and checks its version, its options and its dependencies.
from pathlib import Path

from spack.package import *

try:  # Spack 1.0 keeps build systems in the repository of its packages
    from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
except ImportError:
    pass


class Lantern(CMakePackage):
    """Staged automatic differentiation of C++ programs."""

    git = Path(__file__).resolve().parents[5].as_uri()  # the clone that this file lies in
    license("MIT")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0", preferred=True)

    depends_on("cxx", type="build")
    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("llvm@19 +clang")
    depends_on("tcc")
    depends_on("boost +context")
    depends_on("fmt")
    depends_on("cli11")
    depends_on("dlpack")
    depends_on("libzip")
    depends_on("nlohmann-json")
    depends_on("openblas")
    depends_on("fftw")
    depends_on("onnx")
    depends_on("protobuf")

    conflicts("%gcc@:11", msg="Lantern is written in C++20: g++ 12 or clang++ 16")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("LANTERN_BUILD_TESTS", False),
            self.define("LANTERN_BUILD_SAMPLES", False),
        ]
