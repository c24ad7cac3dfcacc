"""A hook of MkDocs: the site holds what its pages link to in the repository outside of docs/.

A file of docs/ stands at the site's root, every other one at its path in the repository. So a link
to the repository's README.md leads to that of docs/, the first page. A folder is no page: a link to
one becomes its name.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = files.documentation_pages()
    for page in pages:  # which grows while it is read
        for _, target, _ in LINK.findall(page.content_string):
            place = site_path(repository_path(page, target))
            if (ROOT / place).is_file() and not files.get_file_from_path(place):
                added = File(place, str(ROOT), config.site_dir, config.use_directory_urls)
                files.append(added)
                if added.is_documentation_page():
                    pages.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def rewritten(link: re.Match[str]) -> str:
        text, target, anchor = link.groups(default="")
        path = repository_path(page.file, target)
        if (ROOT / path).is_dir():
            return f"`{path}/`"
        if not (ROOT / path).is_file():
            return link[0]
        here = posixpath.dirname(page.file.src_uri)
        return f"[{text}]({posixpath.relpath(site_path(path), here or '.')}{anchor})"

    return LINK.sub(rewritten, markdown)


def repository_path(page: File, target: str) -> str:
    """The path, from the repository's root, of what a page links to."""
    folder = Path(page.abs_src_path).parent.relative_to(ROOT).as_posix()
    return posixpath.normpath(posixpath.join(folder, target))


def site_path(path: str) -> str:
    return path.removeprefix("docs/")
