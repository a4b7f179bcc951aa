# Spack: copy this file to packages/lantern/package.py of a repository of recipes, then `spack install lantern`.
# It has not been run; tests/docs/recipes.py checks its syntax, its version and its dependencies.
from spack.package import *


class Lantern(CMakePackage):
    """Staged automatic differentiation of C++ programs."""

    homepage = "https://lantern.example"
    git = "https://lantern.example/lantern.git"  # put the address of the repository here
    license("MIT")

    version("0.2.0", tag="v0.2.0")

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
