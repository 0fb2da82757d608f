"""Builds the documentation site from the pages of the project, where they are.

The pages link to one another and to the files beside them as they lie in the repository, so that the links work on a
forge too. They are therefore gathered into a folder with the same layout, to which the generated pages are added: the
command line in its own words, and the gallery. Nothing generated gets into the repository.

    LEUKOS_PROGRAM=target/debug/leukos python docs/site/build.py

The package `leukos` and `docs/site/requirements.txt` must be installed. Warnings are errors, broken links between pages
are warnings; a page that loads anything from elsewhere, or has a link that leads nowhere, is an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from command_line import reference

ROOT = Path(__file__).resolve().parents[2]
# The conf.py, styles and gallery are read where they lie.
PAGES = [
    "*.md",
    "CITATION.cff",
    "LICENSE-*",
    "docs/*.md",
    "docs/*.json",
    "docs/figures/*.png",
    "docs/live/*.png",
    "docs/tutorial/*.png",
    "docs/site/**/*.md",
    "docs/site/**/*.rst",
    "crates/lab/experiments/*",
    # What RELEASING.md links to.
    "packaging/try",
    ".github/workflows/release.yml",
]


def gather(pages: Path) -> None:
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            place = pages / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)


def build(pages: Path, site: Path) -> int:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    folders = ["-c", str(ROOT / "docs/site"), "-d", str(pages.parent / "site-doctrees"), str(pages), str(site)]
    return subprocess.run([*command, *folders], env={**os.environ, "MPLBACKEND": "Agg"}).returncode


class Page(HTMLParser):
    """What a page loads by itself, where its reader may go from it, and the places in it that can be gone to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name == "href" and value:
                (self.loaded if tag == "link" else self.links).append(value)
            elif name in ("src", "data") and value:
                self.loaded.append(value)


def complaints(site: Path) -> Iterator[str]:
    """Anything from elsewhere that is loaded, and every link that leads nowhere within the site."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded + page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    yield f"{name}: loads {address}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            if not target.exists() or known and unquote(parts.fragment) not in known.places:
                yield f"{name}: {address} leads nowhere"
    for sheet in sorted(site.rglob("*.css")):
        for address in re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^)\"']+)", sheet.read_text()):
            yield f"{sheet.relative_to(site)}: loads {address}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the documentation site.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "target/site", help="where it goes [default: target/site]"
    )
    parser.add_argument(
        "--again", action="store_true", help="keep what the last build made and has not changed since"
    )
    options = parser.parse_args()
    program = os.environ.get("LEUKOS_PROGRAM")
    if not program or not Path(program).is_file():
        print(
            "the site shows the help of the program `leukos`: expected its path in the environment variable "
            f"LEUKOS_PROGRAM, got {program or 'nothing'}",
            file=sys.stderr,
        )
        return 1
    site = options.out.resolve()
    pages = site.parent / "site-pages"
    if not options.again:
        for folder in (site, pages, site.parent / "site-doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    gather(pages)
    (pages / "docs/site/command-line.help.md").write_text(reference(Path(program)))
    if build(pages, site):
        return 1
    found = list(complaints(site))
    for complaint in found:
        print(complaint, file=sys.stderr)
    if not found:
        print(site / "index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
