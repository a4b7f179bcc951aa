"""The names of NumPy, SciPy, JAX and PyTorch in docs/names.md: those of the packages that are installed, as new as the page
says or newer, are looked up."""

import importlib
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()


def value(name):
    """The object of a dotted name, whose first parts are modules."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


packages = [("NumPy", "numpy", "numpy"), ("SciPy", "scipy", "scipy"), ("JAX", "jax", "jax.numpy"), ("PyTorch", "torch", "torch")]
installed = {}
for title, package, same in packages:
    least = [int(n) for n in re.search(title + r" (\d+)\.(\d+)", page).groups()]
    try:
        version = importlib.import_module(package).__version__
    except ImportError:
        continue
    if [int(n) for n in re.match(r"(\d+)\.(\d+)", version).groups()] >= least:
        installed[package] = importlib.import_module(same)

missing = []
looked_up = 0
for line in page.splitlines():
    if not line.startswith("| `"):
        continue
    columns = [c.strip() for c in line.strip("|").split(" | ")]
    own = re.findall("`([^`]+)`", columns[0])
    for column, package in zip(columns[1:4], ["numpy", "jax", "torch"]):
        if column == "same":
            names = [installed[package].__name__ + "." + name for name in own] if package in installed else []
        else:
            names = [n for n in re.findall("`([^`]+)`", column) if n.split(".")[0] in installed]
        for name in names:
            looked_up += 1
            try:
                value(name)
            except AttributeError:
                missing.append(name)

print(f"{looked_up} names of {', '.join(installed) or 'no package'} looked up")
if missing:
    sys.exit("docs/names.md has names that are not there: " + ", ".join(sorted(set(missing))))
