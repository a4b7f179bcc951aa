"""Sphinx configuration of the site that tools/docs makes."""
import re
from pathlib import Path

root = Path(__file__).resolve().parents[2]
project = "Lantern"
author = "The Lantern authors"
copyright = "The Lantern authors, MIT licence"
release = re.search(r"project\(Lantern VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()).group(1)

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Lantern {release}"
html_show_sphinx = False
highlight_language = "text"
# c++ is how pages mark code that does not stand in a sample.
suppress_warnings = ["misc.highlighting_failure"]


def files_of_the_repository(app, docname, source):
    """Links to files outside of docs/ become links to copies beside the pages, which are made on the way."""
    def copied(match):
        path = (root / "docs" / match.group(2)).resolve()
        if not path.is_file():
            raise ValueError(f"{docname}: {match.group(2)} is no file")
        target = Path(app.outdir) / "files" / path.relative_to(root).with_suffix(path.suffix + ".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        return f"[{match.group(1)}](files:{target.relative_to(app.outdir / 'files')})"

    source[0] = re.sub(r"\[([^\]]*)\]\((\.\./[^)#]+)(?:#[^)]*)?\)", copied, source[0])


myst_url_schemes = {"http": None, "https": None, "files": "files/{{path}}"}


def setup(app):
    app.connect("source-read", files_of_the_repository)
