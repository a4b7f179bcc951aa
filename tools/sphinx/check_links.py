"""Every link of a built site to a file leads to one. usage: check_links.py FOLDER"""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.found.append(value)
            if name == "id":
                self.anchors.add(value)


site = Path(sys.argv[1]).resolve()
pages = {}
for page in site.rglob("*.html"):
    pages[page] = Links()
    pages[page].feed(page.read_text(encoding="utf-8"))
broken, links = [], 0
for page, parsed in pages.items():
    for link in parsed.found:
        url = urlparse(link)
        if url.scheme or url.netloc:
            continue
        links += 1
        target = (page.parent / unquote(url.path)).resolve() if url.path else page
        known = pages.get(target)
        if not target.exists() or (known and url.fragment and url.fragment not in known.anchors):
            broken.append(f"{page.relative_to(site)}: {link}")
if broken:
    sys.exit("links that lead nowhere:\n" + "\n".join(sorted(set(broken))))
print(f"{len(pages)} pages, {links} links")
