// Where voxels lie: pure functions of numbers. Positions are [z, y, x] in µm; voxel i of a level has its centre at
// origin + i·size.

// The three cuts: the axes that run down and to the right, and the one that is cut. Axes are 0 z, 1 y, 2 x.
export const planes = {
  xy: {name: 'xy', rows: 1, cols: 2, across: 0},
  xz: {name: 'xz', rows: 0, cols: 2, across: 1},
  yz: {name: 'yz', rows: 1, cols: 0, across: 2},
};

// bounds returns the two ends of an image along each axis.
export function bounds(description) {
  const l = description.levels[0];
  return [0, 1, 2].map(d => [l.origin[d] - l.size[d] / 2, l.origin[d] + (l.shape[d] - 0.5) * l.size[d]]);
}

// voxelAt returns the voxel of a level that a position lies in along an axis; it may be outside.
export function voxelAt(level, axis, position) {
  return Math.floor((position - level.origin[axis]) / level.size[axis] + 0.5);
}

// centreOf returns the position of a voxel's centre along an axis.
export function centreOf(level, axis, voxel) {
  return level.origin[axis] + voxel * level.size[axis];
}

// levelFor returns the coarsest level whose voxels are no larger than a pixel of the screen, else the finest.
export function levelFor(levels, plane, pixel) {
  let best = 0;
  levels.forEach((l, k) => {
    if (Math.min(l.size[plane.rows], l.size[plane.cols]) <= pixel * 1.0001) best = k;
  });
  return best;
}

// visibleTiles lists the tiles of a level that a rectangle in µm shows, those near its middle first. most bounds
// their number; cut says that there are more.
export function visibleTiles(level, plane, rectangle, side, most) {
  const range = (axis, from, to) => {
    const last = Math.floor((level.shape[axis] - 1) / side);
    const a = Math.max(0, Math.floor(voxelAt(level, axis, from) / side));
    const b = Math.min(last, Math.floor(voxelAt(level, axis, to) / side));
    return [a, b, (voxelAt(level, axis, (from + to) / 2)) / side - 0.5];
  };
  let [r0, r1, rm] = range(plane.rows, rectangle.top, rectangle.bottom);
  let [c0, c1, cm] = range(plane.cols, rectangle.left, rectangle.right);
  if (r1 < r0 || c1 < c0) return {tiles: [], cut: false};
  const reach = Math.ceil(Math.sqrt(most));
  const cut = (r1 - r0 + 1) * (c1 - c0 + 1) > most;
  if (cut) { // a block around the middle
    r0 = Math.max(r0, Math.min(r1, Math.round(rm)) - (reach >> 1)); r1 = Math.min(r1, r0 + reach - 1);
    c0 = Math.max(c0, Math.min(c1, Math.round(cm)) - (reach >> 1)); c1 = Math.min(c1, c0 + reach - 1);
  }
  const tiles = [];
  for (let row = r0; row <= r1; row++) for (let col = c0; col <= c1; col++) tiles.push({row, col, far: (row - rm) ** 2 + (col - cm) ** 2});
  tiles.sort((a, b) => a.far - b.far);
  return {tiles, cut};
}

// barLength returns the largest of 1, 2, 5 × 10ⁿ that is at most a length.
export function barLength(most) {
  const n = 10 ** Math.floor(Math.log10(most));
  for (const m of [5, 2, 1]) if (m * n <= most * (1 + 1e-12)) return m * n;
  return n;
}

// barLabel writes the length of a scale bar: "200 µm", "1 mm".
export const barLabel = um => um >= 1000 ? `${um / 1000} mm` : `${um} µm`;

// micrometres writes a length.
export function micrometres(um) {
  const a = Math.abs(um);
  if (a >= 1e4) return `${+(um / 1000).toPrecision(6)} mm`;
  return `${+um.toPrecision(6)} µm`;
}
