"""Sphinx configuration of the site that tools/docs makes."""
import os
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
html_use_index = False  # the reference lists every name
smartquotes = False  # -- is an option
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]


def files_of_the_repository(app, docname, source):
    """Links to pages of docs/ stay; links to other files of the repository become links to copies, made on the way."""
    folder = (root / "docs" / docname).parent
    pages = {"compiler/passes/README.md": "one_kernel", "compiler/ad/README.md": "rules", "CONTRIBUTING.md": "contributing",
             "CHANGELOG.md": "changes"}

    def copied(match):
        path = Path(os.path.normpath(folder / match.group(2)))
        if path.is_relative_to(root / "docs"):
            return match.group(0)
        name = str(path.relative_to(root))
        if name in pages:
            up = "../" * docname.count("/")
            return f"[{match.group(1)}]({up}{pages[name]}.md)"
        if path.is_dir():
            return match.group(1)
        if not path.is_file():
            raise ValueError(f"{docname}: {match.group(2)} is no file")
        target = Path(app.outdir) / "files" / path.relative_to(root).with_suffix(path.suffix + ".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        return f"[{match.group(1)}]({'up' if '/' in docname else 'files'}:{target.relative_to(app.outdir / 'files')})"

    source[0] = re.sub(r"\[([^\]]*)\]\((\.\./[^)#]+)(?:#[^)]*)?\)", copied, source[0])
    # Regions of samples: the page names them as seen from docs/, Sphinx reads a copy of docs/.
    here = os.path.relpath(root / "samples", (Path(app.srcdir) / docname).parent)
    source[0] = re.sub(r"(\{literalinclude\} )(?:\.\./)+samples/", rf"\1{here}/", source[0])


myst_url_schemes = {"http": None, "https": None, "files": "files/{{path}}", "up": "../files/{{path}}"}


def setup(app):
    app.connect("source-read", files_of_the_repository)
