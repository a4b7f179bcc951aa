"""Runs the commands of the pages. usage: commands.py ROOT LANTERNC

In the folder of the run lies tests/docs/model.cpp, and lanternc is found. Blocks whose first line is a comment
with a file's name become that file; ```sh blocks are run in the order of the page; a ```text block that follows one at once is
what it prints. A block is either run or listed in `elsewhere`, with what checks it instead. docs/output has what --help prints
(LANTERN_BLESS=1 writes it). docs/lanternc.md has every environment variable that the sources ask for. CMake blocks: cmake_blocks.py.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

root, lanternc = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
# A line of the block, and why it is not run here.
elsewhere = {
    "tools/setup": "installs packages: the first step of tools/test",
    "tools/test": "builds everything",
    "LANTERN_BLESS=1": "changes golden files",
    "lanternc fit.cpp": "the build of the sample",
    "gdb -batch": "debugger_test",
    "pip install model": "python_wheel_test",
    "LANTERN_PYTHON=": "python_jax_test",
    "mpirun": "sample_distributed_heat_2",
    "pip install numpy torch": "downloads of gigabytes",
    "--data DIR": "needs data sets",
    "--mapping=": "lanternc_reports_test",
}
needs = {"python3": "python3", "cc ": "cc", "julia ": "julia", "gfortran": "gfortran", "mkoctfile": "octave-cli"}
wrong, ran, left = [], 0, set()
block = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.M | re.S)
named = re.compile(r"(?://|#|!|%) ([\w.]+\.\w+|CMakeLists\.txt)\n")

with tempfile.TemporaryDirectory() as folder:
    shutil.copyfile(root / "tests" / "docs" / "model.cpp", Path(folder) / "model.cpp")
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for match in block.finditer(text):
            language, body = match.groups()
            name = named.match(body)
            if name:
                (Path(folder) / name.group(1)).write_text(body)
            if language != "sh":
                continue
            why = [k for k in elsewhere if k in body]
            left.update(why)
            if why or any(k in body and not shutil.which(tool.strip()) for k, tool in needs.items()):
                continue
            done = subprocess.run(["bash", "-ec", body], cwd=folder, capture_output=True, text=True, errors="replace",
                                  env={**os.environ, "PATH": f"{lanternc.parent}:{os.environ['PATH']}", "DEBUGINFOD_URLS": ""})
            ran += 1
            if done.returncode != 0:
                wrong.append(f"{page.name}: {body}ends with {done.returncode}:\n{done.stdout}{done.stderr}")
            shown = re.match(r"\n?```text\n(.*?)^```$", text[match.end():], re.M | re.S)
            if shown and shown.group(1) != done.stdout:
                wrong.append(f"{page.name}: {body}prints\n{done.stdout}and the page shows\n{shown.group(1)}")

wrong += [f"tests/docs/commands.py: no page has '{k}' any more" for k in set(elsewhere) - left]
if ran < 8:
    wrong.append(f"only {ran} blocks of commands were run")

for program in ("lanternc", "lantern-onnx"):
    kept = root / "docs" / "output" / (program.replace("-", "_") + "_help.txt")
    if not (lanternc.parent / program).exists():
        continue
    printed = subprocess.run([lanternc.parent / program, "--help"], capture_output=True, text=True).stdout
    if os.environ.get("LANTERN_BLESS") == "1":
        kept.write_text(printed)
    if printed != kept.read_text():
        wrong.append(f"{kept} is not what {program} --help prints; run with LANTERN_BLESS=1")

page = (root / "docs" / "lanternc.md").read_text()
for folder in ("ir", "compiler", "codegen", "runtime", "tools/lanternc", "tools/onnx", "samples"):
    for file in (root / folder).rglob("*.[ch]pp"):
        for variable in re.findall(r'(?:getenv|setting|environment)\("([A-Z_]+)"\)', file.read_text()):
            if f"`{variable}`" not in page and variable != "PATH":
                wrong.append(f"docs/lanternc.md lacks the environment variable {variable} of {file.relative_to(root)}")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{ran} blocks of commands")
