"""Turns the help of the program `leukos` into a page, so that the page cannot say anything else than the program."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

def reference(program: Path) -> str:
    """What `command-line.md` includes, in MyST."""
    overview = _help(program)
    verbs = [
        verb
        for verb in re.findall(r"^  ([a-z]+) ", overview.split("Commands:")[1], re.MULTILINE)
        if verb != "help"
    ]
    pages = [_verb(verb, _help(program, verb)) for verb in verbs]
    return "\n".join([_code(overview), *pages])


def _help(program: Path, *verb: str) -> str:
    # The name it is called by is the name that its help shows.
    called = subprocess.run(
        ["leukos", *verb, "--help"], executable=program.resolve(), capture_output=True, text=True, check=True
    )
    return called.stdout


def _verb(verb: str, text: str) -> str:
    about, rest = text.split("\nUsage: ", 1)
    usage, rest = rest.split("\n", 1)
    lines = [f"\n## leukos {verb}\n", *_about(about), _code(usage), f"```{{program}} leukos {verb}\n```\n"]
    for group in re.split(r"\n(?=\S)", rest.strip()):
        title, entries = group.split("\n", 1)
        lines.append(f"**{title.rstrip(':')}**\n")
        lines += [_entry(entry) for entry in re.split(r"\n(?= {2,6}[-<\[])", "\n" + entries) if entry.strip()]
    return "\n".join(lines)


def _about(text: str) -> Iterator[str]:
    """Paragraphs as they are, and examples, which are indented, as code."""
    for paragraph in text.strip().split("\n\n"):
        title, _, examples = paragraph.partition(":\n  ")
        if examples:
            yield _prose(f"{title}:") + "\n"
            yield _code("\n".join(line.removeprefix("  ") for line in f"  {examples}".split("\n")))
        else:
            yield _prose(" ".join(paragraph.split("\n"))) + "\n"


def _entry(entry: str) -> str:
    """A flag or an argument, with what is said about it below."""
    name, *lines = entry.strip("\n").split("\n")
    told = "\n".join(line.strip() for line in lines).strip()
    told = "\n".join(_prose(line) if line else "" for line in _aligned(told).split("\n"))
    return f"````{{option}} {name.strip()}\n{told}\n````\n"


def _aligned(text: str) -> str:
    """A list needs an empty line before it, and its names no room after them."""
    return re.sub(
        r"^(- \S+): +",
        r"\1: ",
        text.replace("Possible values:\n-", "Possible values:\n\n-"),
        flags=re.MULTILINE,
    )


def _prose(line: str) -> str:
    """Markdown that shows the words of the help: nothing in them is meant as a mark but `code`."""
    parts = re.split(r"(`[^`]+`)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*_<>\[\]|#$])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", parts[i])
        parts[i] = re.sub(r"^- (\S+): ", r"- `\1`: ", parts[i])
    return "".join(parts)


def _code(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"
