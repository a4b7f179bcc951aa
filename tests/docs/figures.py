"""Figures of pages are those of runs whose output is kept. usage: figures.py ROOT

docs/trees.md has one row for each docs/output/sentiment_treelstm_*.txt, which samples/sentiment_treelstm printed: the sizes, the
epochs, and what it has right of the held-out nodes and roots. docs/modes.md has the ratios of docs/output/bench_modes.txt, which
bench modes printed; LANTERN_BLESS=1 writes that table.
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
modes = root / "docs" / "modes.md"
text = modes.read_text(encoding="utf-8")
shown = re.search(r"^\| `mode::` \| staged .*?\n(?=\n)|@TABLE@\n", text, re.M | re.S)
if shown and os.environ.get("LANTERN_BLESS") == "1":
    modes.write_text(text.replace(shown.group(0), table), encoding="utf-8")
elif not shown or shown.group(0) != table:
    wrong.append(f"docs/modes.md: expected the table\n{table}")
if len(measured) < 20 or "-" in measured.values():
    wrong.append(f"docs/output/bench_modes.txt has {len(measured)} modes")
if wrong:
    sys.exit("\n".join(wrong))
