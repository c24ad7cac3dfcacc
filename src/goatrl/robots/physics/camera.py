"""An off-screen camera for the robots. It draws a copy of a state, so that looking never changes a
trajectory.
"""

from __future__ import annotations

import atexit
import copy
import dataclasses
import weakref
from typing import Any

import mujoco
import numpy as np

from goatrl.robots.physics.simulator import Colour, Robot
from goatrl.types import GoatError

BLUE: Colour = (0.1, 0.35, 0.8)
MATERIALS = {
    "table_mat": (0.62, 0.56, 0.48),
    "block_mat": BLUE,
    "puck_mat": BLUE,
    "robot0:MatViz": (0.8, 0.8, 0.83),
}
BACKGROUND = 225  # grey, of 255
CLOSE = 0.2  # of the way from the camera to a goal: in front of everything
MOST_SHAPES = 1_000


class Camera:
    """Draws square pictures of one robot."""

    def __init__(self, robot: Robot, size: int) -> None:
        self.robot = robot
        self.size = size
        self._model = dressed(robot.model)
        self._scene = mujoco.MjvScene(self._model, MOST_SHAPES)
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0  # the model's own marks do not know the goal
        self._view = mujoco.MjvCamera()
        for name, value in dataclasses.asdict(robot.view).items():
            setattr(self._view, name, value)
        self._window = mujoco.MjrRect(0, 0, size, size)
        self._screen = off_screen()
        self._screen.make_current()
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_resizeOffscreen(size, size, self._context)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._release = weakref.finalize(self, release, self._screen, self._context)
        atexit.register(self._release)  # after EGL has registered its own end, hence before it

    def draw(self, state: mujoco.MjData, goal: np.ndarray) -> np.ndarray:
        """A picture of a state and of the goal it is after: (size, size, 3), uint8."""
        state = copy.copy(state)
        mujoco.mj_forward(self._model, state)
        shown = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            self._model, state, self._option, None, self._view, shown, self._scene
        )
        for place, radius, colour, is_goal in self.robot.marks(state, goal):
            if is_goal:
                self._add_goal(place, radius, colour)
            else:
                self._add_sphere(place, radius, (*colour, 0.3))
        self._screen.make_current()
        picture = np.empty((self.size, self.size, 3), np.uint8)
        mujoco.mjr_render(self._window, self._scene, self._context)
        mujoco.mjr_readPixels(picture, None, self._window, self._context)
        return picture[::-1].copy()  # OpenGL counts rows from below

    def close(self) -> None:
        atexit.unregister(self._release)
        self._release()

    def _add_goal(self, place: np.ndarray, radius: float, colour: Colour) -> None:
        """A sphere, and a faint one of the same outline close to the camera: a goal behind the
        robot shines through.
        """
        eye = np.mean([camera.pos for camera in self._scene.camera], axis=0)
        self._add_sphere(place, radius, (*colour, 1.0))
        self._add_sphere(eye + CLOSE * (place - eye), CLOSE * radius, (*colour, 0.3))

    def _add_sphere(self, place: np.ndarray, radius: float, colour: tuple[float, ...]) -> None:
        shape = self._scene.geoms[self._scene.ngeom]
        sphere, upright = mujoco.mjtGeom.mjGEOM_SPHERE, np.eye(3).ravel()
        mujoco.mjv_initGeom(
            shape, sphere, np.full(3, radius), place, upright, np.array(colour, np.float32)
        )
        shape.emission = 0.5  # bright in the arm's shadow too
        self._scene.ngeom += 1


def dressed(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of a model for the eye: calm colours, shadows that tell heights, no frame around the
    gripper's target.
    """
    model = copy.copy(model)
    sky = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)[0]
    first, last = model.tex_adr[sky], np.append(model.tex_adr, model.tex_data.size)[sky + 1]
    model.tex_data[first:last] = BACKGROUND
    for number in range(model.nmat):
        material = model.mat(number)
        material.rgba[:3] = MATERIALS.get(material.name, material.rgba[:3])
    model.geom_rgba[model.body_mocapid[model.geom_bodyid] >= 0, 3] = 0.0
    model.light_diffuse[:] = 0.5
    model.light_ambient[:] = 0.3
    model.light_castshadow[:] = any(
        model.mat(number).name == "table_mat" for number in range(model.nmat)
    )
    # From above and a little from the front. A steeper tilt, a coarser or a wider map draw speckles
    # on the table.
    model.light_pos[:] = 1.3, 0.75, 3.0
    model.light_dir[:] = -0.07, 0.03, -1.0
    model.vis.map.shadowclip = 0.3
    model.vis.quality.shadowsize = 2048
    return model


def off_screen() -> Any:
    """Where OpenGL can draw without a screen, whatever MUJOCO_GL says (it must be set before MuJoCo
    is imported).
    """
    try:
        from mujoco import egl

        class Screen(egl.GLContext):  # type: ignore[misc]
            _context = None  # MuJoCo's own stumbles over it in the end, if it could not be made

        return Screen(0, 0)
    except Exception as error:  # whatever is missing, another error tells
        raise GoatError(
            f"cannot draw without EGL ({error}); on Debian: apt-get install libegl1 libgl1-mesa-dri"
        ) from error


def release(screen: Any, context: mujoco.MjrContext) -> None:
    screen.make_current()
    context.free()
    screen.free()
