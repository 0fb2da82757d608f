"""Builds the documentation site from the pages of the project, where they are.

The pages link to one another and to the files beside them as they lie in the repository, so that the links work on a
forge too. They are therefore gathered into a folder with the same layout, to which the generated pages are added: the
command line in its own words, and the gallery. Nothing generated gets into the repository.

    LEUKOS_PROGRAM=target/debug/leukos python docs/site/build.py

The package `leukos` and `docs/site/requirements.txt` must be installed. Warnings are errors, broken links between pages
are warnings, and a page that would load anything from elsewhere is an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

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
    "docs/tutorial/*.png",
    "docs/site/**/*.md",
    "docs/site/**/*.rst",
    "experiments/*",
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


class Loaded(HTMLParser):
    """The addresses that a page loads by itself, as opposed to those that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = ("href",) if tag == "link" else ("src", "srcset", "data") if tag != "a" else ()
        self.addresses += [value for name, value in attrs if name in wanted and value]


def remote(site: Path) -> list[str]:
    found = []
    for page in sorted(site.rglob("*.html")):
        loaded = Loaded()
        loaded.feed(page.read_text())
        found += [
            f"{page.relative_to(site)}: {url}" for url in loaded.addresses if re.match(r"(https?:)?//", url)
        ]
    for sheet in sorted(site.rglob("*.css")):
        urls = re.findall(
            r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)", sheet.read_text()
        )
        found += [f"{sheet.relative_to(site)}: {''.join(url)}" for url in urls]
    return found


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
    loaded = remote(site)
    for line in loaded:
        print(f"loaded from elsewhere: {line}", file=sys.stderr)
    if not loaded:
        print(f"{site / 'index.html'}")
    return 1 if loaded else 0


if __name__ == "__main__":
    sys.exit(main())
