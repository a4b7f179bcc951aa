"""What CMake says of mistakes with Lantern's functions. usage: mistakes.py BUILD CXX

Each is one error with a remedy, when the project is configured.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

build, compiler = sys.argv[1:]
MISTAKES = {
    "lantern_add_executable(app)": "lantern_add_executable(app): expected source files",
    "lantern_add_executable(app OPTIONS -O2)": "lantern_add_executable(app): expected source files",
    "lantern_add_library(models)": "lantern_add_library(models): expected source files",
    "lantern_target_sources(app PRIVATE model.cpp)": "lantern_target_sources(app): there is no such target; add_executable or add_library makes it",
    "lantern_add_executable(app other.cpp)": "lantern_add_executable(app): there is no file FOLDER/other.cpp",
    "lantern_add_library(models MODULE model.cpp)": "lantern_add_library(models): MODULE does not belong here: a library is STATIC, SHARED or OBJECT, "
    "sources of a target are PRIVATE, an executable takes no such word",
    "add_executable(app model.cpp)\nlantern_target_sources(app PUBLIC model.cpp)": "lantern_target_sources(app): PUBLIC does not belong here: a library is "
    "STATIC, SHARED or OBJECT, sources of a target are PRIVATE, an executable takes no such word",
    "lantern_add_executable(app model.cpp OPTIONS --emit=c)": "lantern_add_executable(app): OPTIONS --emit=c is not for a target, of which lanternc makes an "
    "object; run lanternc with it by add_custom_command",
    "find_package(Lantern REQUIRED COMPONENTS gpu)": "Lantern has no component gpu: expected core, lantern, data, distributed, linalg or onnx",
}
wrong = []
with tempfile.TemporaryDirectory() as temporary:
    folder, prefix = Path(temporary) / "project", Path(temporary) / "prefix"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True, env={**os.environ, "CMAKE_INSTALL_MODE": "ABS_SYMLINK"})
    folder.mkdir()
    (folder / "model.cpp").write_text("int main() {}\n")
    for mistake, message in MISTAKES.items():
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(mistake LANGUAGES CXX)\nfind_package(Lantern REQUIRED)\n" + mistake + "\n")
        said = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True,
                              text=True).stderr
        if said.count("CMake Error") != 1 or message.replace("FOLDER", str(folder)).replace(" ", "") not in said.replace("\n", "").replace(" ", ""):
            wrong.append(f"{mistake}\nexpected: {message}\ngot: {said}")
    # A file that is made by the build is a source.
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(made LANGUAGES CXX)\nfind_package(Lantern REQUIRED)\n"
                                           "add_custom_command(OUTPUT made.cpp COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/model.cpp made.cpp)\n"
                                           "lantern_add_executable(app ${CMAKE_BINARY_DIR}/made.cpp)\n")
    shutil.rmtree(folder / "build")
    done = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    if done.returncode != 0:
        wrong.append(done.stderr)
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(MISTAKES)} mistakes")
