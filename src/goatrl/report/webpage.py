"""The report: one HTML file that needs nothing else, from raw records alone. Its text, style and
script lie in `page/`; what it shows comes from the presentations of all kinds of records.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import goatrl
from goatrl.report import (
    comparison,
    kinds,  # noqa: F401 (they register themselves)
)
from goatrl.report.presentation import Json, OnPage, presentations
from goatrl.report.shared import MEDIA, is_media, media_key, page_part
from goatrl.types import GoatError

# First word of a suite's name, or the kind of what has no suite → the family it is listed in.
FAMILIES = {
    "paper": "The paper's benchmark",
    "slide": "The paper's benchmark",
    "pointreach": "PointReach",
    "frontier": "Beyond the paper",
    "newer": "Beyond the paper",
    "ogbench": "OGBench",
    "ablation": "Ablations",
    "finetune": "Online fine-tuning",
    "training": "Training time",
    "runs": "Own runs",
}


def page(*places: Path) -> str:
    """The whole report of folders of records or runs, or of folders of such folders."""
    folders = [folder for place in places for folder in record_folders(place)]
    shown_by: list[OnPage] = [*presentations().values(), comparison]
    described = [section for each in presentations().values() for section in each.sections(folders)]
    try:
        described += comparison.sections([run for place in places for run in run_folders(place)])
    except GoatError:
        if not described:  # there is nothing else to show
            raise
    if not described:
        where = ", ".join(map(str, places))
        raise GoatError(
            f"no records in {where} or its subfolders; create some with `goat bench`, or runs with "
            "`goat train` and `goat evaluate`"
        )
    files = {
        media_key(path): path
        for each in folders
        for path in (each / "media").glob("*")
        if is_media(path)
    }
    groups = [group for each in described for group in each["groups"]]
    shown = {
        each["source"]
        for group in groups
        for kind in ("pictures", "clips")
        for each in group.get(kind, ())
    }
    data = {
        "folder": ", ".join(place.resolve().name for place in places),
        "version": goatrl.__version__,
        "experiments": [{**each, "family": family(each)} for each in described],
        "media": {
            key: _data_address(files[key]) for key in sorted(shown)
        },  # once, however many experiments show it
    }
    # "<" as an escape: no text inside can end the script element.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )
    scripts = "\n".join([page_part("kinds.js"), *(each.script for each in shown_by)])
    html = page_part("page.html")
    for place, content in (
        ('<link rel="stylesheet" href="page.css">', f"<style>\n{page_part('page.css')}</style>"),
        (
            '<script type="application/json" id="data">{}</script>',
            f'<script type="application/json" id="data">{text}</script>',
        ),
        ('<script src="kinds.js"></script>', f"<script>\n{scripts}</script>"),
        ('<script src="page.js"></script>', f"<script>\n{page_part('page.js')}</script>"),
    ):
        before, found_place, after = html.partition(place)
        assert found_place, f"page.html has no {place}"
        html = before + content + after
    return html


def family(section: Json) -> str:
    """What an experiment is listed with."""
    word = str(section.get("suite") or section["kind"]).partition("-")[0]
    return FAMILIES.get(word, word.capitalize())


def record_folders(folder: Path) -> list[Path]:
    """The folder itself, if it holds records, or the folders inside it."""
    if not folder.is_dir():
        raise GoatError(f"no such folder: {folder}")
    if _is_run(folder):
        return []
    if any(folder.glob("*.parquet")):
        return [folder]
    return _others(folder)


def run_folders(folder: Path) -> list[Path]:
    """The folder itself, if it is a run, or the runs inside it and its folders."""
    if _is_run(folder):
        return [folder]
    inside = [folder, *_others(folder)]
    return [path for each in inside for path in sorted(each.iterdir()) if _is_run(path)]


def _others(folder: Path) -> list[Path]:
    """The folders inside that are no runs."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not _is_run(path))


def _is_run(folder: Path) -> bool:
    return (folder / "config.json").exists()


def _data_address(path: Path) -> str:
    return f"data:{MEDIA[path.suffix][0]};base64,{base64.b64encode(path.read_bytes()).decode()}"
