"""Figures of pages are those of runs whose output is kept. usage: figures.py ROOT

docs/trees.md has one row for each docs/output/sentiment_treelstm_*.txt, which samples/sentiment_treelstm printed: the sizes, the
epochs, and what it has right of the held-out nodes and roots.
"""
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
if wrong:
    sys.exit("\n".join(wrong))
