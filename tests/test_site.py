"""The documentation as a site, as `make docs` builds it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import goatrl
from helpers import ROOT

# pages of the site that are not in docs/
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "results/README.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*build, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_first_page_leads_to_every_page(site: Path) -> None:
    links = re.findall(r'href="([^"#]+)', (site / "index.html").read_text())
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "README.md":  # which is the first page
            assert f"{page.stem}.html" in links
    for outside in OUTSIDE:
        assert re.sub(r"README\.md$", "index.md", outside).replace(".md", ".html") in links


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    """Also those to files outside of docs/, from pages outside of it too."""
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()):
            if page.name != "404.html" and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
    assert "results/robots/media/" in (site / "ablations.html").read_text()
    assert "<code>examples/</code>" in (site / "index.html").read_text(), "a folder is no page"


def test_the_reference_shows_docstrings(site: Path) -> None:
    page = (site / "reference.html").read_text()
    for name in goatrl.__all__:
        assert f'id="goatrl.{name}"' in page
    assert "one per seed" in page  # what `train` returns
    assert ":::" not in page


def test_reading_it_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="https?:', text), page
        assert not re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+https?:', text), page


@pytest.mark.parametrize(
    "page",
    [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in OUTSIDE)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_lists_are_lists_on_the_site_too(page: Path) -> None:
    """Python-Markdown wants an empty line before a list, and four spaces before what is in one."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    assert not re.findall(r"^ {1,3}(?:-|\d+\.|\|) .*", text, re.MULTILINE)
    assert not re.findall(r"^(?![- ]|\d+\. ).+\n(?:-|\d+\.) .*", text, re.MULTILINE)
