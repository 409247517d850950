// The viewer: what the reader does changes the state, the state is drawn and stands in the address.
import {bounds, centreOf, levelFor, micrometres, planes, voxelAt} from './geometry.js';
import {table} from './colours.js';
import {Tiles} from './tiles.js';
import {Picture} from './picture.js';
import {Panel} from './panel.js';
import {Controls} from './controls.js';
import {next, read, write} from './state.js';
import {placeOf, transformOf, under, unplaced} from './place.js';

const api = async address => {
  const r = await fetch(address);
  if (!r.ok) throw new Error((await r.text()).trim());
  return r.json();
};

class Viewer {
  async start() {
    this.server = await api('api/view');
    document.title = `${this.server.title} – view`;
    this.maps = Object.fromEntries(Object.entries(this.server.colormaps).map(([k, hex]) => [k, table(hex)]));
    this.pictures = new Map();
    this.tiles = new Tiles(() => this.redraw(), e => this.say(e));
    this.images = this.server.entries.filter(e => !e.page).map(e => e.id);
    this.state = read(location.hash);
    this.panels = ['xy', 'yz', 'xz'].map(name => new Panel(document.getElementById(name), this));
    this.controls = new Controls(this);
    addEventListener('hashchange', () => { if (location.hash !== this.written) { this.state = read(location.hash); this.load(); } });
    addEventListener('resize', () => this.redraw());
    document.addEventListener('keydown', e => this.key(e));
    this.flicker = setInterval(() => { if (this.overlay && this.state.mode === 'flicker' && !document.hidden) { this.flick = !this.flick; this.redraw(); } }, 500);
    await this.load();
  }

  // picture returns an image of the list, which is described once.
  async picture(id) {
    if (!this.pictures.has(id)) {
      const d = await api(`api/images/${id}`);
      this.pictures.set(id, new Picture(id, d, this.server.tileSide, () => this.redraw(), e => this.say(e)));
    }
    return this.pictures.get(id);
  }

  // load shows the images that the state names.
  async load() {
    const s = this.state, turn = this.turn = (this.turn ?? 0) + 1;
    this.loading = true;
    try {
      if (!this.images.includes(s.image)) s.image = this.server.first;
      if (s.overlay === null) s.overlay = this.server.overlay;
      if (!Object.hasOwn(this.maps, s.map)) s.map = 'gray';
      const main = await this.picture(s.image);
      const second = s.overlay === next ? this.images[this.images.indexOf(s.image) + 1] : s.overlay;
      const overlay = this.images.includes(second) ? await this.picture(second) : null;
      if (turn !== this.turn) return; // another one was chosen meanwhile
      [this.main, this.overlay] = [main, overlay];
      const {place} = this.server, given = place && overlay && s.overlay === this.server.overlay && s.image === this.server.first;
      this.begun = given ? placeOf(main.d, overlay.d, place) : unplaced;
      if (overlay && !s.place && given) s.place = this.begun;
      this.say(null);
      for (const w of main.d.warnings ?? []) console.info(w);
      const all = bounds(main.d), l = main.d.levels[0];
      if (s.voxel) this.land(s, main.d, overlay?.d);
      if (!s.at || s.at.some((p, d) => p < all[d][0] || p > all[d][1])) s.at = [0, 1, 2].map(d => centreOf(l, d, Math.floor(l.shape[d] / 2)));
      document.getElementById('panels').classList.toggle('flat', main.d.flat);
      document.getElementById('tabs').classList.toggle('flat', main.d.flat);
      if (main.d.flat) s.panel = 'xy';
      else if (s.panel === 'all' && innerWidth <= 700 && !location.hash) s.panel = 'xy';
      document.getElementById('panels').dataset.panel = s.panel;
      if (s.width) [s.centre, s.scale] = [[...s.at], s.width * l.size[2] / this.panels.find(p => p.shows()).element.clientWidth];
      s.width = null;
      if (!s.centre || !s.scale) this.fit();
      this.controls.image();
      this.redraw();
    } catch (e) {
      if (turn === this.turn) this.say(e);
    } finally {
      if (turn === this.turn) this.loading = false;
    }
  }

  // land goes to the voxel that a link of a report names, and lays the overlay as the report says.
  land(s, first, second) {
    const l = first.levels[0];
    s.at = l.shape.map((n, d) => centreOf(l, d, Math.min(Math.max(Math.floor(s.voxel[d] ?? n / 2), 0), n - 1)));
    if (second && s.lay) {
      const [angle, tx, ty, cx, cy, fixed_z, moving_z] = s.lay;
      s.place = this.begun = placeOf(first, second, {angle, tx, ty, cx, cy, fixed_z, moving_z});
    }
    s.voxel = s.lay = null;
  }

  // fit shows the whole image in every panel.
  fit() {
    const all = bounds(this.main.d), s = this.state;
    s.centre = all.map(([a, b]) => (a + b) / 2);
    s.scale = 0;
    for (const p of this.panels) {
      if (!p.shows()) continue;
      const room = axis => all[axis][1] - all[axis][0];
      s.scale = Math.max(s.scale, room(p.plane.cols) / p.element.clientWidth * p.parts() * 1.04, room(p.plane.rows) / p.element.clientHeight * 1.04);
    }
    s.scale ||= 1;
    this.redraw();
  }

  placeAt(p) {
    const all = bounds(this.main.d), l = this.main.d.levels[0];
    this.state.at = p.map((v, d) => {
      const last = centreOf(l, d, l.shape[d] - 1);
      return Math.min(Math.max(v, all[d][0]), Math.max(last, all[d][1] - l.size[d] * 1e-6));
    });
    this.pointAt(this.state.at);
    this.redraw();
  }

  pan(plane, dx, dy) {
    this.state.centre[plane.cols] += dx * this.state.scale;
    this.state.centre[plane.rows] += dy * this.state.scale;
    this.redraw();
  }

  // zoom keeps a position of a plane where it is.
  zoom(factor, position, plane = this.active()) {
    const s = this.state, all = bounds(this.main.d);
    const finest = Math.min(...this.main.d.levels[0].size) / 64, widest = Math.max(...all.map(([a, b]) => b - a)) / 8;
    const scale = Math.min(Math.max(s.scale * factor, finest), Math.max(widest, finest));
    for (const axis of [plane.rows, plane.cols]) s.centre[axis] = position[axis] + (s.centre[axis] - position[axis]) * scale / s.scale;
    s.scale = scale;
    this.redraw();
  }

  // through moves a cut by planes of the level that is shown.
  through(plane, n) {
    const levels = this.main.d.levels, d = plane.across;
    const l = levels[levelFor(levels, plane, this.state.scale / (devicePixelRatio || 1))];
    const p = [...this.state.at];
    p[d] = centreOf(l, d, Math.min(Math.max(voxelAt(l, d, p[d]) + n, 0), l.shape[d] - 1));
    this.placeAt(p);
  }

  // active is the plane that the keys move through.
  active() {
    const p = this.panels.find(k => k.canvas === document.activeElement) ?? this.panels.find(k => k.shows());
    return p?.plane ?? planes.xy;
  }

  // pointAt shows the position and the value below the pointer; null: of the cross-hair.
  pointAt(p) {
    this.pointed = p;
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.ask(), 40);
  }

  async ask() {
    this.asked?.abort();
    const control = this.asked = new AbortController();
    const p = this.pointed ?? this.state.at;
    const below = m => m === this.overlay && this.state.place ? under(m.d, this.state.place, p) : p;
    const text = `${[2, 1, 0].filter(d => d > 0 || !this.main.d.flat).map(d => `${'zyx'[d]} ${micrometres(p[d])}`).join('  ')}`;
    try {
      const parts = await Promise.all([this.main, this.overlay].filter(Boolean).map(m => m.values(this.state, below(m), control.signal)));
      const told = parts.map(v => v ? `voxel ${v.at.join(', ')}: ${v.list.join(', ')}` : 'outside');
      this.controls.readout(text, told);
    } catch (e) {
      if (!control.signal.aborted) this.controls.readout(text, [e.message]);
    }
  }

  // nudge moves the overlay by voxels along z, y, x, and turns it by degrees.
  nudge(voxels, degrees = 0) {
    if (!this.overlay) return;
    const l = this.overlay.d.levels[0], p = this.state.place ?? unplaced;
    this.state.place = {by: p.by.map((v, d) => v + voxels[d] * l.size[d]), angle: p.angle + degrees * Math.PI / 180};
    this.redraw();
  }

  // unplace puts the overlay back to where it was at first.
  unplace() { this.state.place = this.begun === unplaced ? null : this.begun; this.redraw(); }

  // placement returns the file that the program manual reads.
  placement() {
    const [first, second] = [this.main, this.overlay].map(p => p.d), place = this.state.place ?? unplaced;
    const t = transformOf(first, second, place, this.server.place?.moving_z ?? 0);
    return {
      kind: 'strata placement', fixed: first.name, moving: second.name, transform: t,
      displacement_um: place.by, rotation_deg: place.angle * 180 / Math.PI,
    };
  }

  // savePlace hands the placement to the reader as a file.
  savePlace() {
    if (!this.overlay) return;
    const text = JSON.stringify(this.placement(), null, 2) + '\n';
    const a = document.createElement('a');
    a.href = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
    a.download = `${this.overlay.d.name.replace(/[^A-Za-z0-9._-]+/g, '_').replace(/(\.ome)?\.zarr$/, '')}_place.json`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
  }

  step(n) {
    const i = this.images.indexOf(this.state.image) + n;
    if (i >= 0 && i < this.images.length) this.choose(this.images[i]);
  }

  // choose shows another image at the same place.
  choose(id) {
    this.state.image = id;
    this.state.windows = {};
    return this.load();
  }

  panel(name) {
    this.state.panel = name;
    document.getElementById('panels').dataset.panel = name;
    this.fit();
  }

  key(e) {
    if (e.target.matches('input[type=number], input[type=text], select, textarea') || e.ctrlKey || e.metaKey || e.altKey || !this.main) return;
    if (e.target.matches('input[type=range]') && e.key.startsWith('Arrow')) return;
    const plane = this.active(), s = this.state, l = this.main.d.levels[0], n = e.shiftKey ? 10 : 1;
    const by = (axis, k) => { const p = [...s.at]; p[axis] += k * l.size[axis]; this.placeAt(p); };
    const actions = {
      ArrowLeft: () => by(plane.cols, -n), ArrowRight: () => by(plane.cols, n), ArrowUp: () => by(plane.rows, -n), ArrowDown: () => by(plane.rows, n),
      ',': () => this.through(plane, -1), '.': () => this.through(plane, 1), PageUp: () => this.through(plane, -1), PageDown: () => this.through(plane, 1),
      '+': () => this.zoom(0.8, s.at, plane), '=': () => this.zoom(0.8, s.at, plane), '-': () => this.zoom(1.25, s.at, plane), 0: () => this.fit(),
      1: () => this.panel('xy'), 2: () => this.panel('xz'), 3: () => this.panel('yz'), 4: () => this.panel('all'),
      '[': () => this.step(-1), ']': () => this.step(1), c: () => { s.cross = !s.cross; this.redraw(); },
      m: () => this.controls.next('map'), o: () => this.controls.next('mode'), f: () => { this.flick = !this.flick; this.redraw(); }, '?': () => this.controls.keys(),
    };
    const move = {w: [0, -n, 0], s: [0, n, 0], a: [0, 0, -n], d: [0, 0, n], t: [-n, 0, 0], g: [n, 0, 0]}, letter = e.key.toLowerCase();
    if (this.overlay) {
      for (const [k, v] of Object.entries(move)) actions[k] = () => this.nudge(v);
      Object.assign(actions, {q: () => this.nudge([0, 0, 0], -n / 10), e: () => this.nudge([0, 0, 0], n / 10), u: () => this.unplace(), p: () => this.savePlace()});
    }
    const action = actions[e.key] ?? (e.shiftKey ? actions[letter] : undefined);
    if (!action) return;
    e.preventDefault();
    action();
  }

  // redraw draws at the next frame, however often it is called.
  redraw() {
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.draw(); });
  }

  draw() {
    if (!this.main || !this.state.centre) return;
    const wanted = [];
    const cuts = this.panels.map(p => p.draw(wanted));
    wanted.sort((a, b) => a.far - b.far);
    this.tiles.want(wanted);
    this.controls.update(cuts.some(Boolean));
    this.written = write(this.state);
    clearTimeout(this.saving);
    this.saving = setTimeout(() => history.replaceState(null, '', this.written), 150);
  }

  // say shows what went wrong; null takes it away.
  say(e) {
    const m = document.getElementById('message');
    m.hidden = !e;
    if (e) m.textContent = e instanceof TypeError ? 'the viewer does not answer: was it ended?' : e.message;
  }

  // settled reports whether all that is shown is here.
  settled() {
    return !this.loading && Boolean(this.main) && this.frame === undefined && this.tiles.idle() && [...this.pictures.values()].every(p => p.settled());
  }
}

const viewer = new Viewer();
globalThis.viewer = viewer; // for tests, and for the curious
viewer.start().catch(e => viewer.say(e));
