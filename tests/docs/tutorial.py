"""What a tutorial shows is what its program does. usage: tutorial.py DOCS NAME SUFFIX PROGRAM [ARGUMENT...]

Runs PROGRAM ARGUMENT... FILE in an empty folder and compares what it prints with DOCS/tutorials/output/NAME.txt, and the
picture that it writes to FILE with NAME.SUFFIX. LANTERN_BLESS=1 in the environment replaces both.

Numbers may differ by two parts in a hundred, so that lanes and compilers may round as they like. Speeds and the numbers of
iterations are the machine's; errors, written as 2e-10, may be any below 1e-6.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

NUMBER = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
FREE = re.compile(r"\d+(?= (?:trees per second|steps:|iterations of))")


def same_text(expected, got, what):
    expected, got = FREE.sub("N", expected), FREE.sub("N", got)
    if NUMBER.sub("N", expected) != NUMBER.sub("N", got):
        return f"{what}: expected\n{expected}\ngot\n{got}"
    span = max((abs(float(n)) for n in NUMBER.findall(expected)), default=0) if what != "output" else 0
    for a, b in zip(NUMBER.findall(expected), NUMBER.findall(got)):
        x, y = float(a), float(b)
        small = "e-" in a and "e-" in b and abs(x) < 1e-6 and abs(y) < 1e-6
        # A picture's places differ by parts of its size, a rounded number by its last digit.
        last = 10.0 ** -len(a.partition(".")[2]) if "." in a and "e" not in a else 0
        if not small and abs(x - y) > max(0.02 * abs(x), 1.001 * last, 0.01 * span):
            return f"{what}: expected {a}, got {b}"
    return ""


def pixels(data):
    """Width and the bytes of an 8-bit RGB or grey PNG (ISO/IEC 15948, filters undone)."""
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    step = 3 if colour == 2 else 1
    raw, line, rows = zlib.decompress(packed), width * step, []
    before = bytearray(line)
    for y in range(height):
        kind, row = raw[y * (line + 1)], bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
        for i in range(line):
            left = row[i - step] if i >= step else 0
            up, corner = before[i], before[i - step] if i >= step else 0
            if kind == 4:
                guess = left + up - corner
                row[i] = (row[i] + min((left, up, corner), key=lambda v: abs(guess - v))) & 255
            else:
                row[i] = (row[i] + (0, left, up, (left + up) // 2)[kind]) & 255
        rows.append(row)
        before = row
    return width, b"".join(rows)


def same_picture(expected, got):
    if expected.startswith(b"\x89PNG"):
        (width, a), (other, b) = pixels(expected), pixels(got)
        if width != other or len(a) != len(b):
            return "picture: other sizes"
        off = sum(abs(x - y) for x, y in zip(a, b)) / len(a)
        return f"picture: pixels differ by {off:.2f} of 255 on average" if off > 2 else ""
    return same_text(expected.decode(), got.decode(), "picture")


docs, name, suffix, *command = sys.argv[1:]
kept = Path(docs) / "tutorials" / "output"
with tempfile.TemporaryDirectory() as folder:
    picture = Path(folder) / ("picture." + suffix)
    done = subprocess.run([*command, str(picture)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    drawn = picture.read_bytes()
text, shown = kept / (name + ".txt"), kept / f"{name}.{suffix}"
if os.environ.get("LANTERN_BLESS") == "1":
    text.write_text(done.stdout)
    shown.write_bytes(drawn)
wrong = same_text(text.read_text(), done.stdout, "output") or same_picture(shown.read_bytes(), drawn)
if wrong:
    sys.exit(f"docs/tutorials: {name}: {wrong}\nif that is right, run with LANTERN_BLESS=1 and look at the difference")
