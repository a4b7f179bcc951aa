"""Error messages, as the sources have them, and the page that explains them.

usage as a program: messages.py ROOT, which fails where a message of the sources is explained by no row of docs/messages.md, or
a row explains none. The rows of that page's tables are: a part of the message in backquotes, or `file.cpp` for all that a file
raises; cause; remedy. A message with the word "expected" says both itself.
"""
import re
import sys
from pathlib import Path

PARTS = {
    "Programs: values, control flow, functions": ["compiler/staging", "compiler/control", "compiler/eigen.hpp"],
    "Tensors and trees": ["compiler/tensor", "runtime/tree.hpp", "runtime/treebank.cpp", "runtime/dag_batch.hpp", "runtime/tree_batch.hpp",
                          "runtime/tree_loader.hpp", "runtime/tree_loader.cpp", "runtime/tensor.hpp", "runtime/dlpack.hpp"],
    "Derivatives": ["compiler/ad", "compiler/calculus"],
    "Compiling and calling": ["compiler/driver", "compiler/passes", "codegen", "runtime", "ir"],
    "Native control flow": ["compiler/frontend"],
    "Libraries": ["compiler/nn", "compiler/solvers", "compiler/linalg", "compiler/random", "compiler/special", "runtime/linalg"],
    "Files": ["runtime/data"],
    "ONNX": ["compiler/onnx", "tools/onnx"],
    "Several processes": ["compiler/distributed", "runtime/distributed"],
    "lanternc": ["tools/lanternc"],
}
CALL = re.compile(r"\b(?:throw\s+(?:lantern::)?(?:core::)?(?:Error|PlacedError)|(?:\w+::)*(?:fail|fail_at|raise_at|refuse(?!_trees)\w*|require|raise|complain\w*|complaints\.push_back|obstacle|stuck|deprecated|nodiscard|told)"
                  r"|static_assert|lt_fail|LANTERN_TOLD|throw\s+Unknown)\s*\(|\bdraft\s*<<|\bfound->main\.text\s*=|\bconst char\* kind\s*=|\bTold<(?=#name|\")")
STATEMENT = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|[^;"])*')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def argument_list(text, at):
    """What the parenthesis at `at` encloses."""
    depth, begin = 0, at
    while at < len(text):
        c = text[at]
        if c == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                break
        at += 1
    return text[begin:at]


def part_of(file):
    """The part of the page that a source belongs to: of the folders that contain it the longest."""
    best = max(((len(f), part) for part, folders in PARTS.items() for f in folders if file == f or file.startswith(f + "/")), default=None)
    return best[1] if best else None


def all_messages(root):
    """(file, line, text), with ... where a value is put in."""
    found = []
    for folder in ("ir", "compiler", "codegen", "runtime", "tools/lanternc", "tools/onnx"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".cpp", ".hpp", ".h"):
                continue
            text = file.read_text(encoding="utf-8")
            code = re.sub(r"(?m)(^|\s)//[^\n]*", lambda m: m.group(1) + " " * (len(m.group()) - len(m.group(1))), text)
            for call in CALL.finditer(code):
                if code[call.end() - 1] == "(":
                    body = argument_list(code, call.end() - 1)
                else:  # what is written to a stream
                    body = STATEMENT.match(code, call.start()).group()
                if re.search(r'\bR"', body):  # the text of a program
                    continue
                parts, last = [], None
                for literal in LITERAL.finditer(body):
                    if last is not None and not body[last:literal.start()].strip():
                        parts[-1] += literal.group(1)
                    else:
                        parts.append(literal.group(1))
                    last = literal.end()
                message = re.sub(r"\{[^}]*\}", "...", "...".join(parts)).replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")
                is_code = "_message()" in message  # a message that generated code puts together
                if len(re.findall(r"[A-Za-z]{2,}", message)) >= (4 if "draft" in call.group() else 2) and not is_code:
                    found.append((str(file.relative_to(root)), code.count("\n", 0, call.start()) + 1, message))
    return found


def rows(root):
    """The first cells of the page's tables."""
    keys = []
    for line in (root / "docs" / "messages.md").read_text(encoding="utf-8").split("\n"):
        if line.startswith("| `"):
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) != 3 or not all(cells):
                sys.exit(f"docs/messages.md: expected a message, its cause and its remedy, got {line}")
            keys.append(cells[0].strip("`").replace("\\|", "|"))
    return keys


def explains(key, file, message):
    return file.endswith(key) if re.fullmatch(r"[\w/]+\.(cpp|hpp)", key) else key in message


def check(root):
    """What is wrong with the page, a line each."""
    wrong, keys, used = [], rows(root), set()
    for file, line, message in all_messages(root):
        if part_of(file) is None:
            wrong.append(f"{file}: tools/sphinx/messages.py does not say which part of the page has its messages")
        own = [k for k in keys if explains(k, file, message)]
        used.update(own)
        if not own and "expected" not in message:
            wrong.append(f"{file}:{line}: docs/messages.md has no row for '{message}'")
    wrong += [f"docs/messages.md: no message of the sources has '{k}'" for k in keys if k not in used]
    return wrong


def listing(root):
    """All messages as Markdown, by part."""
    parts = {part: {} for part in PARTS}
    for file, _, message in all_messages(root):
        parts[part_of(file)].setdefault(re.sub(r"\s+", " ", message).strip(" :;,."), set()).add(file)
    text = []
    for part, messages in parts.items():
        text += [f"### {part}", ""]
        for message in sorted(messages, key=lambda m: m.lstrip(". :'").lower()):
            text.append("- " + re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", message))
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    wrong = check(Path(sys.argv[1]).resolve())
    if wrong:
        sys.exit("\n".join(wrong))
