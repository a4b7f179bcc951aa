"""What the pages of docs/ need beside themselves: a copy of docs/ with the reference in it. usage: site.py ROOT FOLDER

FOLDER/reference has every public name; FOLDER/messages.md the list of all messages; pages that include a README of the
source tree have its text.
"""
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import messages
import reference


def main(root, target):
    wrong = messages.check(root)
    new = target.parent / (target.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    silent = reference.write_pages(root, new / "reference")
    if silent:
        wrong.append("public names without a docstring: " + ", ".join(silent))
    if wrong:
        sys.exit("\n".join(wrong))
    for page in (root / "docs").rglob("*"):
        place = new / page.relative_to(root / "docs")
        if not page.is_file():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copyfile(page, place)
            continue
        text = page.read_text(encoding="utf-8")

        def included(match):
            """A README elsewhere in the tree, with its links as seen from the page."""
            source = (page.parent / match.group(1)).resolve()
            folder = source.parent.relative_to(root)

            def moved(link):
                if re.match(r"(https?:|#)", link.group(2)):
                    return link.group(0)
                aim = (root / folder / link.group(2).split("#")[0]).resolve()
                if not aim.exists():  # a lambda of a code block
                    return link.group(0)
                return f"[{link.group(1)}]({os.path.relpath(aim, page.parent)})"

            return re.sub(r"\[([^\]]*)\]\(([^)]+)\)", moved, source.read_text(encoding="utf-8"))

        text = re.sub(r"```\{include\} (\S+)\n```\n", included, text)
        text = text.replace("<!-- all messages -->", messages.listing(root)) if page.name == "messages.md" else text
        place.write_text(text, encoding="utf-8")
    kept = set()  # what has not changed keeps its time, so that Sphinx reads only what has
    for file in new.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(new)
            kept.add(place)
            if not place.exists() or place.read_bytes() != file.read_bytes():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
    for file in list(target.rglob("*")):
        if file.is_file() and file not in kept:
            file.unlink()
    shutil.rmtree(new)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
