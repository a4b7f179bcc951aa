"""Configures the ```cmake blocks of the pages. usage: cmake_blocks.py ROOT BUILD CXX

Each block is a project of its own, with the targets and files that it names and does not make; Lantern is installed into a
temporary folder as symbolic links to the build. A block is configured, and ninja says what a build would run: each program of
a block has its commands, those of lanternc too. tests/package builds and runs such projects.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

root, build, compiler = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
if not shutil.which("ninja"):
    print("skipped: ninja is missing")
    sys.exit()
BLOCK = re.compile(r"^```cmake\n(.*?)^```$", re.M | re.S)
wrong, configured = [], 0


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


def project(block, folder):
    """The block with what it takes for granted."""
    code = re.sub(r"#[^\n]*", "", block)
    made = set(re.findall(r"\b(?:add_executable|add_library|lantern_add_executable|lantern_add_library)\((\w+)", code))
    used = re.findall(r"\b(?:target_\w+|lantern_target_sources)\((\w+)", code)
    libraries = [word for words in re.findall(r"LINK_LIBRARIES ([\w ]+)", code) for word in words.split()]
    text = "cmake_minimum_required(VERSION 3.25)\nproject(page LANGUAGES CXX)\n"
    if "lantern_" in code and "find_package(Lantern" not in code and "FetchContent" not in code:
        text += "find_package(Lantern REQUIRED)\n"
    for name in sorted(set(used) - made):
        text += f"add_executable({name} app.cpp)\n"
    for name in sorted(set(libraries) - made):
        text += f"add_library({name} STATIC solver.cpp)\n"
    for name in {"app.cpp", "solver.cpp", *re.findall(r"\b\w+\.cpp\b", code)}:
        (folder / name).write_text("int main() {}\n" if name != "solver.cpp" else "int solver() { return 1; }\n")
    (folder / "CMakeLists.txt").write_text(text + block)
    return sorted(made | set(used))


with tempfile.TemporaryDirectory() as temporary:
    prefix = Path(temporary) / "prefix"
    done = run("cmake", "--install", build, "--prefix", prefix, env={**os.environ, "CMAKE_INSTALL_MODE": "ABS_SYMLINK"})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            folder = Path(temporary) / f"{page.stem}{number}"
            folder.mkdir()
            targets = project(block, folder)
            done = run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}",
                       f"-DFETCHCONTENT_SOURCE_DIR_LANTERN={root}")
            if done.returncode != 0:
                wrong.append(f"{page.name}: {block}is not configured:\n{done.stdout}{done.stderr}")
                continue
            configured += 1
            commands = run("ninja", "-C", folder / "build", "-t", "commands", *targets)
            if commands.returncode != 0:
                wrong.append(f"{page.name}: {block}has no build:\n{commands.stdout}{commands.stderr}")
            if re.search(r"^lantern_", block, re.M) and not re.search(r"lanternc\S* .*\bmodel\.cpp", commands.stdout):
                wrong.append(f"{page.name}: {block}does not run lanternc:\n{commands.stdout}")
if configured < 4:
    wrong.append(f"only {configured} blocks were configured")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{configured} blocks of CMake")
