// What is shown, as it stands in the address behind "#".

// next, in place of the number of an overlay, is the image that follows in the list.
export const next = -2;

// initial is what is shown where the address says nothing; null is found out from the image.
export const initial = {
  image: null, at: null, centre: null, scale: null, // µm; µm for each pixel of the page
  other: null, channels: null, windows: {}, percentiles: null, gamma: 1, map: 'gray', cross: true,
  overlay: null, mode: 'checkerboard', panel: 'all', place: null, // of the overlay, moved by hand
  voxel: null, lay: null, width: null, // where a link of a report leads, which becomes at, place and scale
};

const numbers = text => {
  const list = text.split(',').map(Number);
  return list.every(Number.isFinite) ? list : null;
};

// voxel returns z, y, x; an empty one is null, the middle.
const voxel = text => {
  const list = text.split(',').map(v => v === '' ? null : Number(v));
  return list.length === 3 && list.every(v => v === null || Number.isFinite(v)) ? list : null;
};

const short = v => String(+v.toPrecision(7));

// read returns the state of an address; what makes no sense in it is left out.
export function read(hash) {
  const s = structuredClone(initial);
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    const list = numbers(text);
    if (key === 'image' || key === 'overlay') { if (list) s[key] = list[0]; }
    else if (key === 'at' || key === 'centre') { if (list?.length === 3) s[key] = list; }
    else if (key === 'scale') { if (list && list[0] > 0) s.scale = list[0]; }
    else if (key === 'gamma') { if (list && list[0] >= 0.2 && list[0] <= 3) s.gamma = list[0]; }
    else if (key === 'other' || key === 'channels') { if (list?.every(v => Number.isInteger(v) && v >= 0)) s[key] = list; }
    else if (key === 'percentiles') { if (list?.length === 2 && list[0] >= 0 && list[0] < list[1] && list[1] <= 100) s.percentiles = list; }
    else if (/^window\d+$/.test(key)) { if (list?.length === 2 && list[0] < list[1]) s.windows[key.slice(6)] = list; }
    else if (key === 'cross') s.cross = text !== 'off';
    else if (key === 'map') s.map = text;
    else if (key === 'mode' && ['checkerboard', 'difference', 'flicker', 'curtain', 'blend', 'side by side'].includes(text)) s.mode = text;
    else if (key === 'place') { if (list?.length === 4) s.place = {by: list.slice(0, 3), angle: list[3] * Math.PI / 180}; }
    else if (key === 'voxel') s.voxel = voxel(text);
    else if (key === 'lay') { if (list?.length === 7) s.lay = list; }
    else if (key === 'width') { if (list && list[0] > 0) s.width = list[0]; }
    else if (key === 'panel' && ['all', 'xy', 'xz', 'yz'].includes(text)) s.panel = text;
  }
  return s;
}

// write returns the address of a state.
export function write(s) {
  const q = new URLSearchParams();
  const put = (key, list) => { if (list?.length) q.set(key, list.map(short).join(',')); };
  put('image', [s.image]);
  put('at', s.at);
  put('centre', s.centre);
  put('scale', [s.scale]);
  put('other', s.other);
  if (s.channels) put('channels', s.channels);
  put('percentiles', s.percentiles);
  for (const [k, w] of Object.entries(s.windows)) put('window' + k, w);
  if (s.gamma !== 1) put('gamma', [s.gamma]);
  if (s.map !== 'gray') q.set('map', s.map);
  if (!s.cross) q.set('cross', 'off');
  if (s.overlay !== null) put('overlay', [s.overlay]);
  if (s.place) put('place', [...s.place.by, s.place.angle * 180 / Math.PI]);
  if (s.mode !== 'checkerboard') q.set('mode', s.mode);
  if (s.panel !== 'all') q.set('panel', s.panel);
  return '#' + q.toString().replaceAll('%2C', ',');
}
