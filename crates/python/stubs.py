"""Copies the documentation of the compiled part to where editors look for it: its stub, and the estimator.

The texts are written in Rust, beside what they describe, and are known once the package is installed:

    python crates/python/stubs.py            writes them into python/leukos/_leukos.pyi, and the table of settings
                                             into the parameters of AdaptiveWhitener in python/leukos/estimator.py
    python crates/python/stubs.py --check    fails where they differ
"""

import ast
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

STUB = Path(__file__).parent / "python/leukos/_leukos.pyi"
ESTIMATOR = STUB.with_name("estimator.py")

# How the values of settings are written in Python.
TYPES = {
    "number": "float",
    "time": "float",
    "samples": "int",
    "interneurons": "int",
    "seed": "int or RandomState instance",
    "synapses": "array of shape (channels, K)",
    "groups": "sequence of sequences of int",
}
NOTES = {
    "time": "Times are in samples.",
    "seed": "An int gives what the command line gives.",
    "synapses": "An array has one column for each interneuron.",
}


class Edit(NamedTuple):
    """Puts text in the place of what is between two positions, each a line and a column."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def with_docstrings(source: str, module: object) -> str:
    """The stub with the documentation that the module has now, whatever it had before."""
    lines = source.splitlines(keepends=True)
    # From the end, so that the positions of the others stay what they are.
    for edit in sorted(_edits(ast.parse(source), module, lines), reverse=True):
        (first, left), (last, right) = edit.start, edit.end
        joined = lines[first][:left] + edit.text + lines[last][right:]
        lines[first : last + 1] = joined.splitlines(keepends=True)
    return "".join(lines)


def _edits(node: ast.Module | ast.ClassDef, thing: object, lines: list[str]) -> Iterator[Edit]:
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            own = getattr(thing, inner.name)
            yield from _edit(inner, own.__doc__, lines)
            yield from _edits(inner, own, lines)
        elif isinstance(inner, ast.FunctionDef) and not inner.name.startswith("__"):
            yield from _edit(inner, getattr(thing, inner.name).__doc__, lines)


def _edit(node: ast.ClassDef | ast.FunctionDef, text: str | None, lines: list[str]) -> Iterator[Edit]:
    first = node.body[0]
    placeholder = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    indent = " " * (node.col_offset + 4)
    if not placeholder:
        if text is not None:
            place = (_first_line(first) - 1, 0)
            yield Edit(place, place, f"{indent}{_quoted(text, indent)}\n")
        return
    # A body of its own: `...`, or a docstring from before. It begins behind the colon that ends the signature.
    row, column = first.lineno - 1, first.col_offset
    while ":" not in lines[row][:column]:
        row, column = row - 1, len(lines[row - 1])
    start = (row, lines[row][:column].rindex(":") + 1)
    assert first.end_lineno is not None and first.end_col_offset is not None, "parsed sources have ends"
    end = (first.end_lineno - 1, _characters(lines[first.end_lineno - 1], first.end_col_offset))
    alone = len(node.body) == 1
    docstring = f"\n{indent}{_quoted(text, indent)}" if text is not None else " ..." if alone else ""
    yield Edit(start, end, docstring)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _characters(line: str, column: int) -> int:
    """Python counts columns in bytes."""
    return len(line.encode()[:column].decode())


def _quoted(text: str, indent: str) -> str:
    text = inspect.cleandoc(text)
    body = textwrap.indent(text, indent).strip()
    mark = 'r"""' if "\\" in text else '"""'
    return f'{mark}{body}\n{indent}"""' if "\n" in text else f'{mark}{body}"""'


def with_parameters(source: str, settings: list[Any]) -> str:
    """The estimator with the parameters that the table has now: all between two headings of its documentation."""
    heading, next_heading = "    Parameters\n    ----------\n", "\n    Attributes\n    ----------\n"
    before, _, rest = source.partition(heading)
    _, _, after = rest.partition(next_heading)
    return before + heading + "".join(_parameter(setting) for setting in settings) + next_heading + after


def _parameter(setting: Any) -> str:
    types = [f'"{word}"' for word, _ in setting.words]
    if setting.values in TYPES:
        types.append(TYPES[setting.values])
    listed = " or ".join(filter(None, [", ".join(types[:-1]), types[-1]]))
    sentences = [f"{setting.about}."]
    if setting.words:
        sentences.append("; ".join(f'"{word}" {does}' for word, does in setting.words) + ".")
    if setting.values in NOTES:
        sentences.append(NOTES[setting.values])
    if setting.default is None:
        listed += ", optional"
        sentences.append(f"By default {setting.default_in_words}.")
    else:
        listed += f", default={json.dumps(setting.default)}"
    lines = textwrap.wrap(" ".join(sentences), width=112, break_on_hyphens=False)
    return f"    {setting.name} : {listed}\n" + "".join(f"        {line}\n" for line in lines)


def main() -> int:
    # By name: the sources beside this file are without the compiled part.
    module: Any = importlib.import_module("leukos._leukos")
    wanted = {
        STUB: with_docstrings(STUB.read_text(), module),
        ESTIMATOR: with_parameters(ESTIMATOR.read_text(), module.settings()),
    }
    differ = [path for path, text in wanted.items() if path.read_text() != text]
    if sys.argv[1:] == ["--check"]:
        for path in differ:
            print(f"{path}: expected the documentation of the compiled part, got another; run {Path(__file__).name}")
        return int(bool(differ))
    for path in differ:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
