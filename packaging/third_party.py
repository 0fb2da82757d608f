"""Writes the licences of everything that is compiled into a package: `third_party.py PACKAGE > THIRD-PARTY.txt`.

A binary has the code of its dependencies in it, and most of their licences ask that their text goes with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")
# Deep inside a crate there may be licences of its parts, such as fonts; build products and tests are not compiled in.
DEPTH = 3


def compiled_in(package: str) -> list[dict[str, Any]]:
    """The packages that become part of this one, itself and the rest of the workspace left out."""
    platform = ["--filter-platform", "x86_64-unknown-linux-gnu"]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", *platform]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {entry["id"]: entry for entry in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    [root] = [entry["id"] for entry in metadata["packages"] if entry["name"] == package]
    seen, waiting = {root}, [root]
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    ours = set(metadata["workspace_members"])
    return sorted((packages[name] for name in seen - ours), key=lambda entry: (entry["name"], entry["version"]))


def texts(folder: Path) -> list[str]:
    files = [path for depth in range(DEPTH) for path in folder.glob("*/" * depth + "*") if path.is_file()]
    found = sorted({path for path in files if path.name.upper().startswith(NAMES)})
    return list(dict.fromkeys(path.read_text(encoding="utf-8", errors="replace").strip() for path in found))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"expected the name of one package, got {sys.argv[1:]}")
    # Many crates have the same text, which stands here once.
    owners: dict[str, list[str]] = {}
    for entry in compiled_in(sys.argv[1]):
        name = f"{entry['name']} {entry['version']} ({entry['license'] or 'see below'})"
        found = texts(Path(entry["manifest_path"]).parent)
        for text in found or ["(no text comes with this package; the name of its licence is above)"]:
            owners.setdefault(text, []).append(name)
    if not owners:
        sys.exit(f"expected {sys.argv[1]} to have dependencies, got none")
    for text, names in owners.items():
        print("\n".join([*names, "", text, "", "=" * 100, ""]))


if __name__ == "__main__":
    main()
