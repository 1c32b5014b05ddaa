"""Render a scene as a frontal radiograph: soft shapes added to an attenuation map.

Coordinates run from -1 to 1, x to the right of the picture and y downwards. The patient faces the
viewer: the patient's right side lies on the left of the picture.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from vlscore.data.phantom.scene import Acquisition, PhantomFinding, Scene

Field = NDArray[np.float32]

_LEVELS = 4095
_ZONE_HEIGHT = {"upper": -0.38, "middle": -0.02, "lower": 0.32}


def render(scene: Scene, size: int = 256) -> NDArray[np.uint16]:
    """Render the scene as a (size, size) image of 12 bits, bright where the body is dense.

    The same scene gives the same picture.
    """
    canvas = _Canvas(scene.acquisition, size, {f.kind: f for f in scene.findings})
    canvas.draw_body()
    for finding in scene.findings:
        if (draw := _DRAW.get(finding.kind)) is not None:
            draw(canvas, finding)
    return canvas.expose()


def _smooth_step(signed_distance: Field, softness: float) -> Field:
    """Return 1 inside (negative distance), 0 outside, with an edge of that softness."""
    edge: Field = np.tanh(signed_distance * np.float32(0.5 / softness))
    return np.float32(0.5) - np.float32(0.5) * edge


class _Canvas:
    """The attenuation map while it is drawn, and the positions of the organs in it."""

    def __init__(
        self, acquisition: Acquisition, size: int, findings: dict[str, PhantomFinding]
    ) -> None:
        self.acquisition = acquisition
        self.rng = np.random.default_rng(acquisition.seed)
        axis = np.linspace(-1, 1, size, dtype=np.float32)
        self.y: Field
        self.x: Field
        self.y, self.x = np.meshgrid(axis, axis, indexing="ij")
        self.x = self.x / np.float32(acquisition.habitus)
        self.density: Field = np.zeros((size, size), dtype=np.float32)
        inflation = _severity(findings.get("hyperinflation")) / 3
        heart = _severity(findings.get("cardiomegaly")) / 3
        self.base = 0.5 + 0.05 * acquisition.inspiration + 0.16 * inflation
        self.dome = 0.14 * (1 - 0.75 * inflation)
        self.air = 0.34 + 0.12 * inflation
        self.heart_width = 0.26 - 0.05 * inflation + 0.17 * heart
        self.shift = 0.03 * acquisition.rotation
        self._lungs: dict[str, Field] = {}

    def sign(self, side: str | None) -> int:
        """Return the direction of a side in the picture: the patient's left is at positive x."""
        return 1 if side == "left" else -1

    def lung(self, side: str) -> Field:
        """Return the mask of one lung in [0, 1]."""
        if side not in self._lungs:
            self._lungs[side] = self._lung(side)
        return self._lungs[side]

    def _lung(self, side: str) -> Field:
        sign = self.sign(side)
        u = sign * (self.x - self.shift)
        across = (u - 0.42) / 0.33
        up = (self.y + 0.1) / 0.68
        inside = np.sqrt(across**2 + np.where(up < 0, up**2, 0.35 * up**2)) - 1
        floor = self.y - (self.base - self.dome * np.cos(np.clip((u - 0.4) * 3, -1.5, 1.5)))
        return _smooth_step(inside, 0.05) * _smooth_step(floor, 0.02)

    def point(self, side: str, zone: str) -> tuple[float, float]:
        """Return a random point in that zone of a lung."""
        x = self.sign(side) * (0.44 + self.rng.uniform(-0.08, 0.08)) + self.shift
        return x, _ZONE_HEIGHT[zone] + self.rng.uniform(-0.06, 0.06)

    def add(self, shape: Field, amount: float) -> None:
        self.density += np.float32(amount) * shape

    def blob(self, x: float, y: float, rx: float, ry: float, softness: float = 0.15) -> Field:
        distance = np.sqrt(((self.x - x) / rx) ** 2 + ((self.y - y) / ry) ** 2) - 1
        return _smooth_step(distance, softness)

    def stroke(self, points: list[tuple[float, float]], width: float) -> Field:
        """Return a line through the points."""
        nearest = np.full_like(self.x, np.inf)
        for (x0, y0), (x1, y1) in pairwise(points):
            dx, dy = x1 - x0, y1 - y0
            along = ((self.x - x0) * dx + (self.y - y0) * dy) / (dx * dx + dy * dy)
            along = np.clip(along, 0, 1)
            distance = np.hypot(self.x - x0 - along * dx, self.y - y0 - along * dy)
            nearest = np.minimum(nearest, distance)
        return _smooth_step(nearest - width, 0.005)

    def texture(self, grain: float) -> Field:
        """Return a smooth random field of mean 0 and standard deviation 1."""
        noise: Field = gaussian_filter(
            self.rng.standard_normal(self.x.shape, dtype=np.float32), grain, truncate=2.5
        )
        unit: Field = noise / noise.std()
        return unit

    def draw_body(self) -> None:
        trunk = self.blob(0, 0.35, 0.97, 1.5, 0.03)
        neck = self.blob(0, -0.95, 0.24, 0.45, 0.05)
        self.add(np.maximum(trunk, neck), 0.52)
        for side in ("left", "right"):
            self.add(self.lung(side) * (1 + 0.06 * self.texture(3)), -self.air)
            self._draw_ribs(side)
            self._draw_vessels(side)
        self.add(_smooth_step(np.abs(self.x - self.shift) - 0.11, 0.02), 0.1)
        self._draw_spine()
        centre = 0.1 + self.shift
        self.add(self.blob(centre, 0.2, self.heart_width, 0.27, 0.08), 0.17)

    def _draw_spine(self) -> None:
        discs = np.float32(0.04) * np.cos(self.y * np.float32(34))
        from_middle: Field = np.abs(self.x)
        self.add(_smooth_step(from_middle - 0.06, 0.015) * (1 + discs), 0.05)

    def _draw_ribs(self, side: str) -> None:
        sign = self.sign(side)
        u = sign * self.x
        arc = self.y + 0.62 - 0.28 * (u - 0.35) ** 2 - 0.14 * (u - 0.1)
        nearest = arc - 0.16 * np.clip(np.rint(arc / 0.16), 0, 7)
        cage = _smooth_step(np.abs(u - 0.45) - 0.4, 0.03)
        self.add(np.exp(-((nearest / 0.016) ** 2)) * cage, 0.045)
        clavicle = self.stroke([(0.07 * sign, -0.6), (0.72 * sign, -0.72)], 0.018)
        self.add(clavicle, 0.08)

    def _draw_vessels(self, side: str) -> None:
        hilum = self.sign(side) * 0.17 + self.shift
        distance = np.hypot(self.x - hilum, self.y - 0.02)
        branches = np.clip(self.texture(2.5), 0, 3) * np.exp(-((distance / 0.3) ** 2))
        self.add(branches * self.lung(side), 0.05)
        self.add(self.blob(hilum, 0.0, 0.07, 0.11, 0.3), 0.07)

    def expose(self) -> NDArray[np.uint16]:
        light = self.density / np.float32(self.acquisition.exposure)
        light = light + self.rng.standard_normal(light.shape, dtype=np.float32) * np.float32(
            self.acquisition.noise
        )
        levels: NDArray[np.float32] = np.rint(np.clip(0.06 + light, 0, 1) * _LEVELS)
        return levels.astype(np.uint16)


def _severity(finding: PhantomFinding | None) -> float:
    return float(finding.severity or 0) if finding is not None else 0.0


def _sides(finding: PhantomFinding) -> tuple[str, ...]:
    return ("left", "right") if finding.side == "bilateral" else (str(finding.side),)


def _draw_effusion(canvas: _Canvas, finding: PhantomFinding) -> None:
    for side in _sides(finding):
        u = canvas.sign(side) * (canvas.x - canvas.shift)
        height = {1: 0.13, 2: 0.33, 3: 0.62}[int(_severity(finding))]
        level = canvas.base - height - 0.25 * (u - 0.35)
        below = _smooth_step(level - canvas.y, 0.02)
        chest = _smooth_step(np.abs(u - 0.42) - 0.33, 0.03) * _smooth_step(canvas.y - 0.62, 0.03)
        canvas.add(below * chest * np.maximum(canvas.lung(side), 0.15), 0.34)


def _draw_pneumothorax(canvas: _Canvas, finding: PhantomFinding) -> None:
    side = str(finding.side)
    depth = {1: 0.08, 2: 0.15, 3: 0.23}[int(_severity(finding))]
    u = canvas.sign(side) * (canvas.x - canvas.shift)
    across = (u - 0.4 + depth / 2) / (0.34 - depth)
    up = (canvas.y + 0.06 - depth / 3) / (0.66 - depth)
    collapsed = np.sqrt(across**2 + np.where(up < 0, up**2, 0.2 * up**2)) - 1
    outside = _smooth_step(-collapsed, 0.02) * canvas.lung(side)
    canvas.add(outside, -0.13)
    edge = np.exp(-((collapsed / 0.03) ** 2)) * canvas.lung(side)
    canvas.add(edge, 0.1)


def _draw_consolidation(canvas: _Canvas, finding: PhantomFinding) -> None:
    side = str(finding.side)
    x, y = canvas.point(side, str(finding.zone))
    radius = {1: 0.11, 2: 0.17, 3: 0.24}[int(_severity(finding))]
    patch = canvas.blob(x, y, radius, 0.75 * radius, 0.3) * (1 + 0.25 * canvas.texture(3))
    canvas.add(patch * canvas.lung(side), 0.16 + 0.04 * _severity(finding))


def _draw_nodule(canvas: _Canvas, finding: PhantomFinding) -> None:
    x, y = canvas.point(str(finding.side), str(finding.zone))
    radius = {1: 0.028, 2: 0.048, 3: 0.075}[int(_severity(finding))]
    canvas.add(canvas.blob(x, y, radius, radius, 0.12), 0.22)


def _draw_atelectasis(canvas: _Canvas, finding: PhantomFinding) -> None:
    side = str(finding.side)
    x, y = canvas.point(side, str(finding.zone))
    tilt = canvas.rng.uniform(-0.03, 0.03)
    width = {1: 0.008, 2: 0.018, 3: 0.032}[int(_severity(finding))]
    band = canvas.stroke([(x - 0.2, y + tilt), (x + 0.2, y - tilt)], width)
    canvas.add(band * canvas.lung(side), 0.2)


def _draw_edema(canvas: _Canvas, finding: PhantomFinding) -> None:
    strength = _severity(finding) / 3
    for side in ("left", "right"):
        hilum = canvas.sign(side) * 0.27 + canvas.shift
        haze = np.exp(-(((canvas.x - hilum) / 0.24) ** 2 + ((canvas.y - 0.02) / 0.34) ** 2))
        lines = 1 + 0.35 * canvas.texture(1.6)
        canvas.add(haze * lines * canvas.lung(side), 0.24 * strength)


def _draw_fracture(canvas: _Canvas, finding: PhantomFinding) -> None:
    sign = canvas.sign(str(finding.side))
    y = _ZONE_HEIGHT[str(finding.zone)] + canvas.rng.uniform(-0.05, 0.05)
    x = sign * (0.7 + canvas.rng.uniform(-0.02, 0.02)) + canvas.shift
    canvas.add(canvas.stroke([(x - 0.05, y - 0.03), (x, y)], 0.02), 0.22)
    canvas.add(canvas.stroke([(x, y + 0.05), (x + 0.05, y + 0.07)], 0.02), 0.22)
    canvas.add(canvas.stroke([(x - 0.03, y + 0.035), (x + 0.04, y + 0.01)], 0.008), -0.2)


def _draw_pacemaker(canvas: _Canvas, finding: PhantomFinding) -> None:
    sign = canvas.sign(str(finding.side))
    x, y = 0.55 * sign, -0.5
    box = np.maximum(np.abs(canvas.x - x) - 0.09, np.abs(canvas.y - y) - 0.075)
    canvas.add(_smooth_step(box, 0.01), 0.4)
    lead = [(x - 0.08 * sign, y - 0.06), (0.12 * sign, -0.55), (-0.07, -0.1), (0.14, 0.32)]
    canvas.add(canvas.stroke(lead, 0.009), 0.25)


# Kind of line -> its width, its density, and its path, by the direction of its side and the shift.
_LINES: dict[str, tuple[float, float, Callable[[int, float], list[tuple[float, float]]]]] = {
    "endotracheal_tube": (0.012, 0.25, lambda sign, x: [(x, -1.0), (x, -0.32)]),
    "nasogastric_tube": (
        0.009,
        0.25,
        lambda sign, x: [(x + 0.05, -1.0), (x + 0.05, 0.45), (0.25, 0.68), (0.42, 0.72)],
    ),
    "central_line": (
        0.009,
        0.25,
        lambda sign, x: [(0.5 * sign, -1.0), (0.32 * sign, -0.66), (-0.09, -0.5), (-0.1, -0.05)],
    ),
    "chest_tube": (
        0.018,
        0.22,
        lambda sign, x: [(0.98 * sign, 0.3), (0.6 * sign, 0.16), (0.42 * sign, -0.42)],
    ),
}


def _draw_line(canvas: _Canvas, finding: PhantomFinding) -> None:
    width, amount, path = _LINES[finding.kind]
    points = path(canvas.sign(finding.side), canvas.shift)
    canvas.add(canvas.stroke(points, width), amount)


# Cardiomegaly and hyperinflation change the heart and lungs themselves.
_DRAW = {
    "effusion": _draw_effusion,
    "pneumothorax": _draw_pneumothorax,
    "consolidation": _draw_consolidation,
    "nodule": _draw_nodule,
    "atelectasis": _draw_atelectasis,
    "edema": _draw_edema,
    "fracture": _draw_fracture,
    "pacemaker": _draw_pacemaker,
    **dict.fromkeys(_LINES, _draw_line),
}
