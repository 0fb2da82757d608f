"""What Sphinx is told; `build.py` beside it gathers the pages and calls it."""

import re
from pathlib import Path

import leukos

HERE = Path(__file__).parent

project = "Leukos"
author = "the contributors of Leukos"
copyright = author
version = release = leukos.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
# The pages lie as in the repository; this is the first.
root_doc = "docs/site/index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Parts of other pages.
exclude_patterns = ["docs/gallery/GALLERY_HEADER.rst", "docs/site/command-line.help.md"]
# It would turn the two dashes of a flag into one.
smartquotes = False

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

# The types of parameters are in the docstrings, in words.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_param = False
# Their types are words too, and not names of classes.
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
# `name` in a docstring is a link where there is such a name on the site, and else code.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "gallery")],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": r"\.py$",
    # In the order of their titles' story, which their file names have.
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    # Its page of times loads scripts from elsewhere.
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 600,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 250),
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "Leukos"
html_static_path = ["static"]
html_css_files = ["leukos.css"]
html_extra_path = ["extra"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"docs/site/index": []}


def link_gallery(app, docname, source):
    """Leads from a link to an example, which works on a forge, to its page, which exists on the site alone."""
    source[0] = re.sub(r"(?<=gallery/)(plot_\w+)\.py(?=\))", r"\1.rst", source[0])
    source[0] = source[0].replace("gallery/GALLERY_HEADER.rst)", "gallery/index.rst)")


def end_sections(app, what, name, obj, options, lines):
    """Lets prose follow a list of parameters, as the docstrings here do: Napoleon takes it for one more parameter."""
    for i in range(len(lines) - 1, 0, -1):
        heading = i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1])
        if lines[i] and not lines[i - 1] and not lines[i].startswith((" ", "-")) and not heading:
            lines.insert(i, "")


def draw_dashes(app, what, name, obj, options, lines):
    """Puts a dash between a parameter and what is said of it, which smart quotes would do, but not to it alone."""
    lines[:] = [re.sub(r"^([^*]*(?:\* )?\*\*.*?) -- ", r"\1 – ", line) for line in lines]


def break_names(app, pagename, templatename, context, doctree):
    """Lets long names of code break, as behind `::`, `_` and `/`: tables and phones are narrow. Short ones stay whole."""
    if "body" in context:
        context["body"] = re.sub(
            r'<span class="pre">([^<]{20,})</span>',
            lambda name: f'<span class="pre long">{_breaking(name[1])}</span>',
            context["body"],
        )


def _breaking(name):
    name = re.sub(r"(?<=::|._|./)(?=\w)|(?<=\))(?=\.\w)", "<wbr>", name)
    # The dashes of a flag stay with its first word.
    return re.sub(r"^--?\w+", r'<span class="whole">\g<0></span>', name)


def enlarge_pictures(app, pagename, templatename, context, doctree):
    """Makes each picture a link to itself at full size: on a phone its letters are small."""
    if "body" in context:
        context["body"] = re.sub(r"<img [^>]*>", _enlarged, context["body"])


def _enlarged(image):
    # A picture of the gallery has a second file with twice as many pixels.
    twice = re.search(r"(\S+\.png) 2\.00x", image[0])
    address = twice or re.search(r'src="([^"]+\.png)"', image[0])
    if not address or "_thumb." in address[1]:
        return image[0]
    return f'<a class="picture" href="{address[1]}">{image[0]}</a>'


def signature(app, what, name, obj, options, args, result):
    """Shows a default of `...` for what it is, an empty sequence."""
    return (re.sub(r"record=(\.\.\.|Ellipsis)", "record=()", args), result) if args else None


def setup(app):
    app.connect("source-read", link_gallery)
    # Before Napoleon, which comes at 500.
    app.connect("autodoc-process-docstring", end_sections, priority=400)
    app.connect("autodoc-process-docstring", draw_dashes, priority=600)
    app.connect("autodoc-process-signature", signature)
    app.connect("html-page-context", break_names)
    app.connect("html-page-context", enlarge_pictures)
