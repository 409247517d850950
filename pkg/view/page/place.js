// Where the second image lies on the first, moved by hand: pure functions of numbers. A place is a rotation about the
// middle of the image, from x towards y, and then a displacement along z, y, x in µm.
import {bounds} from './geometry.js';

export const unplaced = {by: [0, 0, 0], angle: 0};

// isPlaced reports whether a place moves anything.
export function isPlaced(p) { return p.angle !== 0 || p.by.some(v => v !== 0); }

// middle returns the middle of an image in the plane, µm along y and x.
export function middle(description) {
  const all = bounds(description);
  return [1, 2].map(d => (all[d][0] + all[d][1]) / 2);
}

// turn returns a vector [y, x] turned by an angle.
function turn([y, x], angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return [x * s + y * c, x * c - y * s];
}

// under returns the position in the second image that lies under a position of the first.
export function under(description, place, p) {
  const c = middle(description), d = place.by;
  const [y, x] = turn([p[1] - d[1] - c[0], p[2] - d[2] - c[1]], -place.angle);
  return [p[0] - d[0], y + c[0], x + c[1]];
}

// placeOf returns the place that a transform gives the second image: pixels of the first image to pixels of the second by
// a rotation about (cx, cy) and a translation, and the planes that lie on each other.
export function placeOf(first, second, t) {
  const f = first.levels[0], m = second.levels[0], c = middle(second);
  const centre = [t.cy, t.cx], i = [1, 2].map((d, k) => (c[k] - m.origin[d]) / m.size[d] - centre[k]);
  const [y, x] = turn([i[0] - t.ty, i[1] - t.tx], -t.angle);
  return {
    by: [f.origin[0] + f.size[0] * t.fixed_z - m.origin[0] - m.size[0] * t.moving_z,
      f.origin[1] + f.size[1] * (y + centre[0]) - c[0], f.origin[2] + f.size[2] * (x + centre[1]) - c[1]],
    angle: -t.angle,
  };
}

// transformOf returns the transform of a place; moving_z is the plane of the second image to name.
export function transformOf(first, second, place, moving_z = 0) {
  const f = first.levels[0], m = second.levels[0];
  const centre = [1, 2].map(d => Math.floor(f.shape[d] / 2));
  const p = under(second, place, [0, f.origin[1] + f.size[1] * centre[0], f.origin[2] + f.size[2] * centre[1]]);
  const t = [1, 2].map((d, k) => (p[d] - m.origin[d]) / m.size[d] - centre[k]);
  const z = (m.origin[0] + m.size[0] * moving_z + place.by[0] - f.origin[0]) / f.size[0];
  return {angle: -place.angle, tx: t[1], ty: t[0], cx: centre[1], cy: centre[0], fixed_z: Math.min(Math.max(Math.round(z), 0), f.shape[0] - 1), moving_z};
}
