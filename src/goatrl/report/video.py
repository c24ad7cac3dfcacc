"""Clips: several episodes of a policy side by side, as MP4 or GIF."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from goatrl.disk.files import write_atomically
from goatrl.robots.physics.camera import Camera
from goatrl.robots.physics.simulator import SECONDS
from goatrl.tasks import Task, TaskGroup
from goatrl.types import GoatError, reached

# Without this, imageio starts ffmpeg by a fork that can hang beside JAX's threads.
os.environ["IMAGEIO_FFMPEG_NO_PREVENT_SIGINT"] = "1"

Policy = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # (episodes, ·) observations and goals → actions
FRAMES_PER_SECOND = round(1 / SECONDS)  # as fast as the robot
WRITERS: dict[str, dict[str, Any]] = {
    # One thread: with several, the bytes depend on how many cores there are.
    ".mp4": {
        "plugin": "FFMPEG",
        "fps": FRAMES_PER_SECOND,
        "quality": 8,
        "macro_block_size": 2,
        "output_params": ["-threads", "1"],
    },
    ".gif": {"plugin": "pillow", "duration": 1_000 * SECONDS, "loop": 0},
}
VERDICT_FRAMES = 20  # how long the last step stays, framed
MET, MISSED = (40, 160, 60), (210, 40, 40)
GAP, CAPTION_HEIGHT, FONT_SIZE = 6, 30, 17


def check_kind(path: Path) -> None:
    if path.suffix.lower() not in WRITERS:
        raise GoatError(f"cannot write {path}: name a file that ends in {' or '.join(WRITERS)}")


def record(
    policy: Policy,
    group: TaskGroup,
    task: Task,
    caption: str,
    episodes: int,
    size: int,
    on_step: Callable[[], None] | None = None,
) -> list[np.ndarray]:
    """Frames of the first episodes by which agents are evaluated on a task; a green border in the
    end means success, a red one not.
    """
    starts, goals = (drawn[:episodes] for drawn in task.evaluation())
    simulator = group.family.simulator(len(goals))
    camera = Camera(simulator.robot, size)
    frames = []

    def show(colours: Sequence[tuple[int, int, int]] = ()) -> None:
        pictures = [
            camera.draw(state, goal) for state, goal in zip(simulator.states, goals, strict=True)
        ]
        frames.append(frame(pictures, caption, colours))
        if on_step is not None:
            on_step()

    try:
        observations, achieved = simulator.reset(starts)
        show()
        for _ in range(group.spec.horizon):
            observations, achieved = simulator.step(policy(observations, goals))
            show()
        met = reached(achieved, goals, group.spec.goal_threshold)
        show([MET if each else MISSED for each in met])
    finally:
        camera.close()
        simulator.close()
    return frames + frames[-1:] * (VERDICT_FRAMES - 1)


def frame(
    pictures: Sequence[np.ndarray], caption: str, colours: Sequence[tuple[int, int, int]] = ()
) -> np.ndarray:
    """Pictures in a grid below a caption, each with a border if there are colours."""
    size = len(pictures[0])
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    width, height = columns * (size + GAP) + GAP, rows * (size + GAP) + CAPTION_HEIGHT
    canvas = Image.new(
        "RGB", (width + width % 2, height + height % 2), "white"
    )  # MP4 needs even sides
    pen = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(FONT_SIZE)
    font = ImageFont.load_default(
        min(FONT_SIZE, FONT_SIZE * (width - 2 * GAP) / font.getlength(caption))
    )
    pen.text((GAP, CAPTION_HEIGHT / 2), caption, "black", font, anchor="lm")
    for place, picture in enumerate(pictures):
        left, top = (
            GAP + place % columns * (size + GAP),
            CAPTION_HEIGHT + place // columns * (size + GAP),
        )
        canvas.paste(Image.fromarray(picture), (left, top))
        if colours:
            pen.rectangle(
                (left, top, left + size - 1, top + size - 1),
                outline=colours[place],
                width=max(2, size // 40),
            )
    return np.asarray(canvas)


def save(frames: Sequence[np.ndarray], path: Path) -> None:
    check_kind(path)
    suffix = path.suffix.lower()
    encoded = imageio.imwrite("<bytes>", np.stack(frames), extension=suffix, **WRITERS[suffix])
    write_atomically(path, lambda file: file.write(encoded))
