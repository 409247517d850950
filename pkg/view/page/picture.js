// An image of the server: its description, its statistics, and how the tiles of a cut are painted.
import {levelFor, planes, visibleTiles, voxelAt} from './geometry.js';
import {paint, paintLabels, tint} from './colours.js';

const mostTiles = 300; // of one cut
const defaultColours = ['ff0000', '00ff00', '0000ff', 'ffff00', 'ff00ff', '00ffff', 'ffffff'];
const defaultPercentiles = [0.1, 99.9];
const fullRange = {uint8: '0,255', uint16: '0,65535'}; // what programs state that looked at no voxel
const tints = new Map();

export class Picture {
  constructor(id, description, side, changed, failed) {
    this.id = id;
    this.d = description;
    this.side = side;
    this.changed = changed;
    this.failed = failed;
    this.statistics = new Map();
    this.labels = new Map((description.colors ?? []).map(([v, r, g, b]) => [v, [r, g, b]]));
    const c = description.channels;
    this.rgb = description.served === 'uint8' && c.length === 3 && c.map(k => k.color.toUpperCase()).join() === 'FF0000,00FF00,0000FF';
    this.several = c.length > 1 && c.every(k => k.color !== '');
  }

  // channelsShown returns the channels that a state shows of this image.
  channelsShown(state) {
    const {channel, channels} = this.d;
    if (channel < 0) return [0];
    const all = channels.map((_, i) => i);
    const chosen = state.channels?.filter(i => all.includes(i));
    if (chosen?.length) return chosen.slice(0, 7);
    const active = all.filter(i => channels[i].active).slice(0, 7);
    return this.several && active.length ? active : [active[0] ?? 0];
  }

  // others returns the indices beside z, y, x of a channel.
  others(state, channel) {
    return this.d.others.map((o, i) => i === this.d.channel ? channel : Math.min(state.other?.[i] ?? 0, o.size - 1));
  }

  // stats returns the statistics of a channel once they are here.
  stats(state, channel) {
    const key = this.others(state, channel).join(',');
    const s = this.statistics.get(key);
    if (s === undefined) {
      this.statistics.set(key, null);
      fetch(`api/images/${this.id}/statistics?other=${key}`).then(async r => {
        if (!r.ok) throw new Error((await r.text()).trim());
        this.statistics.set(key, await r.json());
        this.changed();
      }).catch(e => this.failed(e));
    }
    return s ?? null;
  }

  // settled reports whether no statistics are on their way.
  settled() { return [...this.statistics.values()].every(s => s !== null); }

  // stated returns the window that the image's metadata give a channel; null if there is none, or one that says nothing.
  stated(channel) {
    const w = this.d.channels[channel]?.window;
    return w && String(w) !== fullRange[this.d.dtype] ? w : null;
  }

  // window returns the range of values of a channel that is shown; null while it is not known.
  window(state, channel, main) {
    if (main && state.windows[channel]) return state.windows[channel];
    if (this.rgb) return [0, 255];
    if (!state.percentiles && this.stated(channel)) return this.stated(channel);
    const q = this.stats(state, channel)?.quantiles;
    if (!q) return null;
    if (!q.length) return [0, 1];
    let [lo, hi] = (state.percentiles ?? defaultPercentiles).map(p => q[Math.round(p * 10)]);
    if (!(lo < hi)) [lo, hi] = [q[0], q[1000]];
    return lo < hi ? [lo, hi] : [lo, lo + 1];
  }

  // layers returns how the channels are painted; null while a window is not known.
  layers(state, maps, main) {
    if (this.d.labels) return [{other: this.others(state, 0), key: 'labels'}];
    const shown = this.channelsShown(state);
    const list = [];
    for (const c of shown) {
      const window = this.window(state, c, main);
      if (!window) return null;
      let colours = maps[state.map];
      let name = state.map;
      if (shown.length > 1) {
        name = this.d.channels[c].color || defaultColours[c % defaultColours.length];
        if (!tints.has(name)) tints.set(name, tint(name));
        colours = tints.get(name);
      }
      list.push({other: this.others(state, c), window, gamma: state.gamma, colours, key: [c, ...window, state.gamma, name].join()});
    }
    return list;
  }

  address(level, plane, at, t, other) {
    return `api/images/${this.id}/tile?level=${level}&plane=${plane.name}&at=${at}&row=${t.row}&col=${t.col}&other=${other.join(',')}`;
  }

  // draw paints what is here of a cut, the coarsest level first, and adds what is missing to wanted. place turns
  // µm along the rows and the columns into pixels of the canvas. It returns whether tiles were left out.
  draw(context, planeName, view, layers, tiles, wanted) {
    const plane = planes[planeName];
    const best = levelFor(this.d.levels, plane, view.pixel);
    const last = this.d.levels.length - 1;
    let cut = false;
    const levels = [];
    for (let k = last; k >= best; k--) levels.push(k);
    for (const k of levels) {
      const l = this.d.levels[k];
      const at = voxelAt(l, plane.across, view.at);
      if (at < 0 || at >= l.shape[plane.across]) continue;
      const list = visibleTiles(l, plane, view.rectangle, this.side, mostTiles);
      if (k === best) cut = list.cut;
      for (const t of list.tiles) {
        const parts = layers.map(y => this.address(k, plane, at, t, y.other));
        const here = parts.map(a => tiles.get(a));
        if (here.every(Boolean)) this.paste(context, l, plane, view, t, here, layers);
        else if (k === best || k === last) parts.forEach((address, i) => { if (!here[i]) wanted.push({address, description: this.d, far: k === last ? -1 : t.far}); });
      }
    }
    return cut;
  }

  // paste paints a tile and draws it where it lies.
  paste(context, level, plane, view, t, parts, layers) {
    const h = Math.min(this.side, level.shape[plane.rows] - t.row * this.side);
    const w = Math.min(this.side, level.shape[plane.cols] - t.col * this.side);
    const key = layers.map(y => y.key).join(';');
    const tile = parts[0];
    if (tile.shown !== key) {
      const single = parts.every(p => p.values.length === 1);
      tile.pixels ??= document.createElement('canvas');
      tile.pixels.width = single ? 1 : w;
      tile.pixels.height = single ? 1 : h;
      const image = new ImageData(tile.pixels.width, tile.pixels.height);
      if (this.d.labels) paintLabels(image.data, tile.values, this.labels);
      else { layers.forEach((y, i) => { y.values = parts[i].values; }); paint(image.data, layers); }
      tile.pixels.getContext('2d').putImageData(image, 0, 0);
      tile.shown = key;
    }
    const edge = (axis, i) => level.origin[axis] + (i - 0.5) * level.size[axis];
    const x0 = Math.round(view.x(edge(plane.cols, t.col * this.side))), x1 = Math.round(view.x(edge(plane.cols, t.col * this.side + w)));
    const y0 = Math.round(view.y(edge(plane.rows, t.row * this.side))), y1 = Math.round(view.y(edge(plane.rows, t.row * this.side + h)));
    context.imageSmoothingEnabled = x1 - x0 < w;
    context.drawImage(tile.pixels, x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
  }

  // values asks for the voxel of level 0 at a position, of every channel that is shown; null outside of the image.
  async values(state, position, signal) {
    const l = this.d.levels[0];
    const at = [0, 1, 2].map(d => voxelAt(l, d, position[d]));
    if (at.some((i, d) => i < 0 || i >= l.shape[d])) return null;
    const list = await Promise.all(this.channelsShown(state).map(async c => {
      const r = await fetch(`api/images/${this.id}/value?z=${at[0]}&y=${at[1]}&x=${at[2]}&other=${this.others(state, c).join(',')}`, {signal});
      if (!r.ok) throw new Error((await r.text()).trim());
      return (await r.json()).value;
    }));
    return {at, list};
  }
}
