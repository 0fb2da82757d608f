"""Checks licences, sources and doubled versions of all dependencies against deny.toml, where there is no cargo-deny.

Usage: python dependencies.py [FOLDER]

Advisories need a database, which only cargo-deny can read. No package is needed.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

WORDS = re.compile(r"\(|\)|/|[\w.+-]+")


def allows(expression, allowed):
    """Whether an SPDX expression can be met with these licences alone; `/` is an old way to write OR."""
    words = [{"/": "OR"}.get(word, word) for word in WORDS.findall(expression)]

    def either():
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            words.pop(0)
            word += f" WITH {words.pop(0)}"
        return word in allowed

    return either() and not words


def licences(packages, rules):
    for package in packages:
        if not allows(package["license"] or "none", rules["allow"]):
            yield f"{name(package)}: expected licences of deny.toml, got {package['license']}"


def sources(packages, rules):
    for package in packages:
        source = package["source"]
        if source is not None and source.removeprefix("registry+") not in rules["allow-registry"]:
            yield f"{name(package)}: expected a source on crates.io, got {source}"


def doubled(packages, rules):
    """Crates of several versions; the newest needs no excuse."""
    skipped = {rule["crate"] for rule in rules["skip"]}
    versions = {}
    for package in packages:
        versions.setdefault(package["name"], []).append(package["version"])
    for crate, several in versions.items():
        old = [version for version in several if f"{crate}@{version}" not in skipped]
        if len(old) > 1:
            yield f"{crate}: expected one version, got {' and '.join(several)}"
    present = {name(package) for package in packages}
    for crate in sorted(skipped - present):
        yield f"deny.toml skips {crate}, which is no longer there"


def wildcards(packages):
    for package in packages:
        for dependency in package["dependencies"] if package["source"] is None else []:
            if dependency["req"] == "*" and dependency.get("path") is None:
                yield f"{package['name']}: expected a version of {dependency['name']}, got *"


def name(package):
    return f"{package['name']}@{package['version']}"


def tests_itself():
    """An expression that is misread would let anything through."""
    some = ["MIT", "Apache-2.0 WITH LLVM-exception", "Zlib"]
    for expression, expected in {
        "MIT": True, "GPL-3.0": False, "MIT OR GPL-3.0": True, "GPL-3.0/MIT": True, "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND Zlib": True, "(MIT OR Zlib) AND GPL-3.0": False, "none": False,
        "Apache-2.0 WITH LLVM-exception": True, "Apache-2.0": False, "MIT AND Zlib OR GPL-3.0": True,
    }.items():
        assert allows(expression, some) == expected, expression


def main():
    tests_itself()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[4])
    rules = tomllib.loads((folder / "deny.toml").read_text())
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    packages = json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    complaints = [
        *licences(packages, rules["licenses"]),
        *sources(packages, rules["sources"]),
        *doubled(packages, rules["bans"]),
        *wildcards(packages),
    ]
    for complaint in complaints:
        print(complaint)
    print(f"{len(packages)} packages, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
