"""Reference pages from the headers: every public name of docs/names.md with its declarations and docstrings.

usage as a program: reference.py ROOT, which says what has no docstring.
"""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Entry:
    name: str
    declaration: str
    doc: list
    file: str
    line: int
    members: list = field(default_factory=list)  # lines of a struct's body, of those with docs the docs too


def closing(text, at, pair):
    """The place behind the bracket that closes what opens at `at`."""
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at = text.index('"', at + 1) if '"' in text[at + 1:] else len(text)
        elif text[at] == pair[0]:
            depth += 1
        elif text[at] == pair[1] and not (pair == "<>" and text[at - 1] in "-="):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def without(text, words, pair):
    """Without `template <...>` and `requires(...)`."""
    for word in words:
        at = text.find(word)
        while at >= 0:
            open_at = at + len(word)
            while open_at < len(text) and text[open_at].isspace():
                open_at += 1
            if open_at < len(text) and text[open_at] == pair[0]:
                text = text[:at] + text[closing(text, open_at, pair):]
                at = text.find(word)
            else:
                at = text.find(word, at + 1)
    return text


def declared_name(text):
    macro = re.match(r"\s*LANTERN_[A-Z0-9_]+\(\s*(\w+)", text)
    if macro:
        return macro.group(1)
    bare = without(without(text, ["template"], "<>"), ["requires"], "()").strip()
    bare = re.sub(r"^\[\[[^\]]*\]\]\s*", "", bare)
    kind = re.match(r"(?:struct|class|enum class|concept)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)(?!\s*<)", bare) or re.match(r"using\s+(\w+)\s*=", bare)
    if kind:
        return kind.group(1)
    if re.match(r"(using|namespace|friend|extern)\b", bare) or re.search(r"\boperator\b", bare.split("(")[0]):
        return None
    constant = re.match(r"(?:inline\s+)?constexpr\s+[\w:<>]+\s+(\w+)\s*(?:=|\{|$)", bare)
    if constant:
        return constant.group(1)
    call = re.search(r"(?:^|[\s&*>])(\w+)\s*\(", bare)
    return call.group(1) if call and call.group(1) not in ("decltype", "requires", "static_assert") else None


def entries_of(header, root):
    """What a header declares in its namespaces, but for namespace detail."""
    lines = header.read_text(encoding="utf-8").split("\n")
    found, spaces, doc, inherited, text, begin = [], [], [], [], "", 0
    depth_inside, members, continued = 0, [], False
    beside = ""  # what `///<` says on a line of the declaration

    def add(kind_of_body):
        nonlocal doc, text, beside
        doc = doc + ([beside[0].upper() + beside[1:]] if beside else [])
        beside = ""
        name = declared_name(text)
        hidden = any(s not in PUBLIC for s in spaces)
        if name and not hidden:
            shown = re.sub(r",?\s*(?:const )?std::source_location(?: \w+)? = std::source_location::current\(\)", "", text.strip())
            if not shown.startswith("struct") and "LANTERN_" not in shown:  # a constructor's initialisers, a body: no
                shown = re.sub(r"\)\s*:\s.*$", ")", shown, flags=re.S)
            found.append(Entry(name, indented(shown), doc or inherited, str(header.relative_to(root)), begin, members if kind_of_body else []))
        doc, text = [], ""

    many = ""
    for number, raw in enumerate(lines, 1):
        line = raw
        if many:  # the statements of a function whose head is one macro and whose end another
            if re.match(rf"\s*LANTERN_{many}_END", line) or line.rstrip().endswith(f"LANTERN_{many}_END"):
                many = ""
            continue
        if continued or (depth_inside == 0 and line.startswith("#")):
            continued = line.endswith("\\")
            continue
        if depth_inside == 0 and not text.strip():
            comment = re.match(r"\s*///\s?(.*)", line)
            if comment:
                doc.append(comment.group(1))
                continue
            if not line.strip():
                doc, inherited = [], []
                continue
            if line.lstrip().startswith("//"):
                doc = []
                continue
            begin = number
        own = re.search(r"\s*//(/<)?\s?(.*)$", re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: "x" * len(m.group()), line))
        note = None
        if own:
            note = line[own.start(2):] if own.group(1) else None
            code = line[:own.start()]
        else:
            code = line
        if depth_inside > 0:
            members.append(raw)
        elif note:
            beside = note
        at = 0
        while at < len(code):
            c = code[at]
            if c in "\"'" and not (c == "'" and at and code[at - 1].isdigit()):
                end = at + 1
                while end < len(code) and code[end] != c:
                    end += 2 if code[end] == "\\" else 1
                if depth_inside == 0:
                    text += code[at:end + 1]
                at = end + 1
                continue
            if depth_inside > 0:
                depth_inside += (c == "{") - (c == "}")
                if depth_inside == 0:
                    if body_is_type:
                        members and members.pop()
                    if default_braces:
                        text += "{}"
                    else:
                        kept = doc or inherited
                        add(body_is_type)
                        inherited = kept
                at += 1
                continue
            if c == "{":
                space = re.search(r"(?:^|[\s;}])namespace(?:\s+([\w:]+))?\s*$", text)
                if space:
                    spaces.append((space.group(1) or "detail").split("::")[-1])
                    text, doc, inherited = "", [], []
                else:
                    depth_inside, members = 1, []
                    bare = without(text, ["template"], "<>").strip()
                    body_is_type = bool(re.match(r"(struct|class|enum)\b", bare))
                    default_braces = text.count("(") > text.count(")") or bool(re.search(r"=\s*$|\brequires\b(?![^)]*\)\s*\w)[^(]*$", text)) and "(" not in bare.split("requires")[-1]
            elif c == "}":
                if spaces:
                    spaces.pop()
                text = ""
            elif c == ";":
                if text.count("(") <= text.count(")"):
                    kept = doc or inherited
                    add(False)
                    inherited = kept
                else:
                    text += c
            else:
                text += c
                if c == ")" and re.match(r"\s*LANTERN_[A-Z0-9_]+\(", text) and text.count("(") == text.count(")"):
                    head = re.match(r"\s*LANTERN_(\w+)_\d\(", text)
                    kept = doc or inherited
                    add(False)
                    inherited = kept
                    if head and f"LANTERN_{head.group(1)}_END" in "\n".join(lines) and f"LANTERN_{head.group(1)}_END" not in line:
                        many = head.group(1)
                    if many:
                        break
            at += 1
        if depth_inside == 0 and text.strip():
            text += "\n"
    return found


def headers(root):
    folders = ["compiler/staging", "compiler/tensor", "compiler/ad", "compiler/ad/modes", "compiler/control", "compiler/driver", "compiler/nn",
               "compiler/solvers", "compiler/linalg", "compiler/random", "compiler/special", "compiler/distributed",
               "compiler/onnx", "runtime", "runtime/data", "ir", "compiler"]
    return [h for f in folders for h in sorted((root / f).glob("*.hpp"))]


PUBLIC = {"lantern", "core", "named", "nn", "solvers", "linalg", "random", "log_density", "sample", "special", "distributed", "onnx"}
PREFIX = {"compiler/nn": "nn", "compiler/solvers": "solvers", "compiler/linalg": "linalg", "compiler/special": "special",
          "compiler/distributed": "distributed", "compiler/onnx": "onnx"}


def all_entries(root):
    """By public name, as docs/names.md writes it."""
    table = {}
    for header in headers(root):
        folder = str(header.parent.relative_to(root))
        for entry in entries_of(header, root):
            prefix = PREFIX.get(folder)
            if folder == "compiler/random":
                prefix = {"density": "log_density", "sample": "sample", "random": "random"}[header.stem]
            table.setdefault(f"{prefix}::{entry.name}" if prefix else entry.name, []).append(entry)
    # The short notes of lantern.hpp beside `using core::name;`.
    short = {}
    for header in [root / "compiler" / f"{h}.hpp" for h in ("lantern", "tensor", "complex", "mdspan")]:
        for line in header.read_text(encoding="utf-8").split("\n"):
            using = re.match(r"using core::(?:\w+::)*(\w+);\s*///<\s*(.*)", line)
            if using:
                short[using.group(1)] = using.group(2)
    return table, short


def name_rows(root):
    """(section, [names], [NumPy, JAX, PyTorch], differences) of docs/names.md."""
    section, rows = "", []
    for line in (root / "docs" / "names.md").read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| `"):
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows.append((section, re.findall(r"`([^`]+)`", cells[0]), cells[1:4], cells[4]))
    return rows


def markdown(lines):
    """A docstring as Markdown: indented code stays code, names of templates and operators stay as they are."""
    out = []
    for line in lines:
        if line.startswith("    ") or line.startswith("  "):
            out.append("    " + line.strip())
            continue
        if out and out[-1].startswith("    "):
            out.append("")
        parts = re.split(r"(`[^`]*`)", line)
        out.append("".join(p if p.startswith("`") else re.sub(r"([<>*_\[\]|])", r"\\\1", p) for p in parts))
    text = []
    for line in out:
        if line.startswith("    ") and text and not text[-1].startswith("    ") and text[-1]:
            text.append("")
        text.append(line)
    return "\n".join(text)


def counterpart(name, others):
    last = name.split("::")[-1]
    spaces = ["numpy", "jax.numpy", "torch"]
    told = []
    for space, other in zip(spaces, others):
        other = other.strip("`")
        if other == "same":
            told.append(f"`{space}.{last}`")
        elif other not in ("-", ""):
            told.append(f"`{other}`")
    return ", ".join(told)


def shown_members(entry):
    """The public members of a struct with their docstrings, without the bodies of functions."""
    lines, statement, depth, round_, hidden, doc = [], "", 0, 0, False, []

    def finish(end, note=""):
        nonlocal statement, doc
        text = re.sub(r",?\s*std::source_location(?: \w+)? = std::source_location::current\(\)", "", statement.strip("\n"))
        text = re.sub(r"\)\s*:\s[^:].*$", ")", text, flags=re.S) if end == "{" else text
        if not hidden and text.strip() and not text.strip().startswith("friend"):
            lines.extend(doc + [line for line in (text.rstrip() + ";" + note).split("\n") if line.strip()])
        statement, doc = "", []

    for raw in entry.members:
        if depth == 0 and raw.strip() in ("public:", "private:", "protected:"):
            hidden, statement = raw.strip() != "public:", ""
            continue
        comment = re.search(r"\s*//.*$", re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: "x" * len(m.group()), raw))
        note = raw[comment.start():] if comment and "///" in comment.group() else ""
        code = raw[:comment.start()] if comment else raw
        if depth == 0 and not code.strip():
            if note.strip().startswith("///"):
                doc.append(raw)
            continue
        for at, c in enumerate(code):
            if depth > 0:
                depth += (c == "{") - (c == "}")
                continue
            if c == "{" and round_ == 0 and not statement.rstrip().endswith("=") and ("(" in statement or "struct" in statement):
                finish("{")
                depth = 1
            elif c == ";" and round_ == 0 and statement.count("{") == statement.count("}"):
                finish(";", note if not code[at + 1:].strip() else "")
            else:
                statement += c
                round_ += (c in "({" and not (c == "{" and round_ == 0)) - (c in ")}" and round_ > 0)
        if depth == 0 and statement.strip():
            statement += ("," if False else "") + (note if "///<" in note else "") + "\n"
    if statement.strip() and not hidden:  # enumerators
        lines += [line for line in statement.split("\n") if line.strip()]
    return lines


def indented(declaration):
    """Lines inside of brackets are indented."""
    out, depth = [], 0
    for line in declaration.split("\n"):
        out.append(("    " if depth > 0 else "") + line.strip())
        depth += line.count("(") - line.count(")")
    return "\n".join(out)


def head_of(header):
    """The comment that a header begins with, up to its first empty line."""
    lines = []
    for line in header.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("// "):
            break
        lines.append(line[3:])
    return lines


def page_name(section):
    return re.sub(r"[^a-z]+", "_", section.lower()).strip("_")


def write_pages(root, target):
    """One page for each section of docs/names.md, and an index. Returns the names that nothing is said about."""
    table, short = all_entries(root)
    sections, silent = {}, []
    of_cmath = set(re.findall(r"^MATH_[12]\((\w+)", (root / "ir" / "ops.inc").read_text(encoding="utf-8"), re.M))
    for section, names, others, differences in name_rows(root):
        for name in names:
            entries = table.get(name, [])
            part = [f"## {name}", ""]
            if name in short:
                part += [markdown([short[name]]), ""]
            told = counterpart(name, others) if len(names) == 1 or "same" in others else ""
            if told:
                part += [f"Elsewhere: {told}." + (f" {differences[0].upper() + differences[1:]}." if differences and len(names) == 1 else ""), ""]
            seen = set()
            if entries and name.split("::")[0] in ("log_density", "sample") and not any(e.doc for e in entries):
                part += [markdown(head_of(root / entries[0].file)), ""]
            for entry in entries:
                doc = markdown(entry.doc)
                code = entry.declaration if not entry.members else "\n".join([entry.declaration + " {", *shown_members(entry), "};"])
                if doc not in seen:
                    part += [doc, ""]
                seen.add(doc)
                law = re.match(r"LANTERN_(DENSITY|SAMPLE)_(\d)\(([^)]*?)(?:\)|,\s*return)", code.strip(), re.S)
                if law:
                    parameters = [p.strip() for p in law.group(3).split(",")][1:1 + int(law.group(2))]
                    calls = [["x"]] if law.group(1) == "DENSITY" else [["key"], ["key", "{sizes...}"]]
                    part += ["```cpp", *[f"{name}({', '.join(first + parameters)})" for first in calls], "```"]
                if code.strip().startswith("LANTERN_SOLVER_WITHOUT_OPTIONS"):
                    part += ["The options may be left out.", ""]
                elif code.strip().startswith("LANTERN_TAKES_"):
                    pass  # what to say where the argument is no program
                elif code.strip().startswith("LANTERN_"):
                    part += [f"Declared by a macro in [{entry.file}, line {entry.line}](../../{entry.file}).", ""]
                else:
                    part += ["```cpp", code, "```", f"[{entry.file}, line {entry.line}](../../{entry.file})", ""]
            if name in of_cmath:
                part += ["The function of `<cmath>`, of numbers and element by element. Slopes at kinks: [conventions](../conventions.md).", ""]
            documented = name in of_cmath or name.split("::")[0] in ("log_density", "sample") and entries or name in short or any(e.doc for e in entries)
            if not documented:
                silent.append(name)
            sections.setdefault(section, []).append("\n".join(part))
    target.mkdir(parents=True, exist_ok=True)
    for section, parts in sections.items():
        text = f"# {section}\n\nBeside other packages' names: [names](../names.md). What a `Rep` may hold: [constructs](../constructs.md).\n\n"
        (target / f"{page_name(section)}.md").write_text(text + "\n".join(parts), encoding="utf-8")
    index = ["# Every public name", "", "From the headers: what each declares, and its docstring. The parameter that records the place of a call is left out.",
             "", "```{toctree}", *[page_name(s) for s in sections], "```", ""]
    (target / "index.md").write_text("\n".join(index), encoding="utf-8")
    return silent


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        silent = write_pages(Path(sys.argv[1]).resolve(), Path(folder))
    if silent:
        sys.exit("public names without a docstring:\n" + "\n".join(silent))
