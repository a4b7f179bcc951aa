"""Figures of pages are those of runs whose output is kept. usage: figures.py ROOT

docs/trees.md has one row for each docs/output/sentiment_treelstm_*.txt, which samples/sentiment_treelstm printed: the sizes, the
epochs, and what it has right of the held-out nodes and roots. docs/modes.md has the ratios of docs/output/bench_modes.txt, which
bench modes printed, and docs/distributed.md what docs/output/bench_distributed.txt has; LANTERN_BLESS=1 writes these tables.
"""
import os
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
page = (root / "docs" / "trees.md").read_text(encoding="utf-8")
rows = set()
for file in sorted((root / "docs" / "output").glob("sentiment_treelstm_*.txt")):
    text = file.read_text()
    hidden, embedding = re.search(r"hidden (\d+), embedding (\d+)$", text, re.M).groups()
    epochs = len(re.findall(r"^epoch \d+:", text, re.M))
    start = "from GloVe vectors" if "start from GloVe vectors" in text else "learned"
    percent = [re.search(rf"^{what}: ([\d.]+) %", text, re.M).group(1) for what in ("held-out nodes", "held-out roots", "positive or negative")]
    rows.add(f"| {embedding}, {start} | {hidden} | {epochs} | " + " | ".join(f"{p} %" for p in percent) + " |")
shown = set(re.findall(r"^\| \d+, .* % \|$", page, re.M))
wrong = [f"docs/trees.md: no output in docs/output has the row {row}" for row in shown - rows]
wrong += [f"docs/trees.md lacks the row {row}" for row in rows - shown]
if len(rows) < 4:
    wrong.append(f"docs/output has {len(rows)} runs of sentiment_treelstm")

MODES = {"reverse": "stateful", "checkpointed_closures": "checkp. closures"}  # what bench modes calls them


def ratios():
    """By group and name; ∞ for growth that is not linear."""
    table, group = {}, None
    for line in (root / "docs" / "output" / "bench_modes.txt").read_text().splitlines():
        group = line.split()[0] if line.startswith(("eager", "staged", "memory")) else group
        row = re.match(r"\s+(\w.*?)\s{2,}\S+\s+\S+\s+(Linear|Quadratic|Nonlinear)\s+(\S+) ", line)
        if row:
            table[group, row.group(1)] = row.group(3) if row.group(2) == "Linear" else "∞"
    return table


measured = ratios()
table = "| `mode::` | staged | eager, fast path | eager, the paper's rule |\n|---|---|---|---|\n"
for mode in ("forward", "reverse", "taped", "checkpointed", "divide_and_conquer", "cps", "global_tape", "functional", "continuation", "closures",
             "checkpointed_closures"):
    name = MODES.get(mode, mode)
    rule = next((r for n, r in measured.items() if n in (("eager", f"{name}, handler"), ("eager", f"{name}, shift"), ("eager", name))), "-")
    table += f"| `{mode}` | {measured.get(('staged', name), '-')} | {measured.get(('eager', f'{name}, fast'), '-')} | {rule} |\n"


def compare(name, start, expected):
    """The table of a page that begins so."""
    file = root / "docs" / name
    text = file.read_text(encoding="utf-8")
    found = re.search(start + r".*?\n(?=\n)|@TABLE@\n", text, re.M | re.S)
    if found and os.environ.get("LANTERN_BLESS") == "1":
        file.write_text(text.replace(found.group(0), expected), encoding="utf-8")
    elif not found or found.group(0) != expected:
        wrong.append(f"docs/{name}: expected the table\n{expected}")


compare("modes.md", r"^\| `mode::` \| staged ", table)
if len(measured) < 20 or "-" in measured.values():
    wrong.append(f"docs/output/bench_modes.txt has {len(measured)} modes")

ranks = (root / "docs" / "output" / "bench_distributed.txt").read_text()
own, peers = ranks.split("distributed_mpi.py", 1)
ROW = r"^  (\w.*?)\s{2,}(\d+) doubles\s+([\d.]+)\s+([\d.]+)"
by_jax = {(name, n): jax for name, n, _, jax in re.findall(ROW, peers, re.M)}
table = "| operation | doubles | MPI in C, us | here, us | median of ratios | mpi4jax, us |\n|---|---|---|---|---|---|\n"
operations = re.findall(ROW + r"\s+([\d.]+)$", own, re.M)
for name, n, plain, here, ratio in operations:
    table += f"| `{name}` | {int(n):,} | {plain} | {here} | {ratio} | {by_jax.get((name, n), '')} |\n"
for cells, objective, gradient, ratio in re.findall(r"^heat, (\S+ x \S+) cells .*? objective ([\d.]+) ms a step, .* gradient ([\d.]+) ms: ([\d.]+) times", own, re.M):
    table += f"| heat, {cells} cells a rank: value and gradient beside the objective | | {objective} ms | {gradient} ms | {ratio} | |\n"
one, two, faster = re.search(r"^MNIST CNN, .*?: ([\d.]+) ms a step on one rank, ([\d.]+) ms on 2: ([\d.]+)", own, re.M).groups()
table += f"| a step of MNIST CNN on one rank beside one on 2 | | {one} ms | {two} ms | {faster} times as fast | |\n"
gloo = [float(v) for v in re.search(r'"one": ([\d.]+), "all": ([\d.]+), "ratio": ([\d.]+)', peers).groups()]
table += f"| the same by torch.distributed (gloo) | | {1e3 * gloo[0]:.2f} ms | {1e3 * gloo[1]:.2f} ms | {gloo[2]:.2f} times as fast | |\n"
compare("distributed.md", r"^\| operation \| doubles ", table)
if len(operations) < 18 or len(by_jax) < 15:
    wrong.append(f"docs/output/bench_distributed.txt has {len(operations)} operations, and {len(by_jax)} of mpi4jax")
if wrong:
    sys.exit("\n".join(wrong))
