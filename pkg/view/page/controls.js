// The controls beside the cuts.
import {Histogram} from './histogram.js';
import {elsewhere} from './elsewhere.js';
import {next} from './state.js';
import {micrometres} from './geometry.js';
import {unplaced} from './place.js';

const $ = id => document.getElementById(id);

// make makes an element.
function make(tag, properties = {}, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

export class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    this.channel = 0; // that the histogram and the window are of
    const {server} = viewer, names = new Map(server.entries.map(e => [e.id, e.name]));
    this.histogram = new Histogram($('histogram'), w => this.setWindow(w));
    for (const id of viewer.images) {
      $('image').add(new Option(names.get(id), id));
      $('overlay').add(new Option(names.get(id), id));
    }
    $('images').hidden = viewer.images.length < 2;
    $('slide').max = viewer.images.length - 1;
    for (const name of server.colormapNames) $('map').add(new Option(name, name));
    const pages = server.entries.filter(e => e.page);
    $('reports').append(...pages.flatMap(p => [make('a', {href: `pages/${p.id}`, target: '_blank', rel: 'noreferrer', textContent: p.name}), ' ']));
    const on = (id, type, f) => $(id).addEventListener(type, f);
    on('image', 'change', () => viewer.choose(+$('image').value));
    on('slide', 'input', () => viewer.choose(viewer.images[$('slide').value]));
    on('previous', 'click', () => viewer.step(-1));
    on('next', 'click', () => viewer.step(1));
    on('fit', 'click', () => viewer.fit());
    on('closer', 'click', () => viewer.zoom(0.7, viewer.state.at));
    on('farther', 'click', () => viewer.zoom(1 / 0.7, viewer.state.at));
    on('help', 'click', () => this.keys());
    on('gamma', 'input', () => this.set('gamma', +$('gamma').value));
    on('map', 'change', () => this.set('map', $('map').value));
    on('cross', 'change', () => this.set('cross', $('cross').checked));
    on('mode', 'change', () => this.set('mode', $('mode').value));
    on('save', 'click', () => viewer.savePlace());
    on('unplace', 'click', () => viewer.unplace());
    on('overlay', 'change', () => { viewer.state.overlay = +$('overlay').value; viewer.state.place = null; viewer.load(); });
    on('percentiles', 'change', () => { const v = $('percentiles').value; if (v) { viewer.state.windows = {}; this.set('percentiles', v === 'stated' ? null : v.split(',').map(Number)); } });
    on('reset', 'click', () => { Object.assign(viewer.state, {windows: {}, percentiles: null, gamma: 1, map: 'gray', channels: null}); this.image(); viewer.redraw(); });
    for (const id of ['low', 'high']) on(id, 'change', () => this.setWindow([+$('low').value, +$('high').value]));
    for (const b of document.querySelectorAll('#tabs button')) b.addEventListener('click', () => viewer.panel(b.dataset.panel));
    $('about').textContent = `strata view ${server.version}`;
  }

  set(key, value) { this.viewer.state[key] = value; this.viewer.redraw(); }

  setWindow(w) {
    if (!(w[0] < w[1])) return;
    this.viewer.state.windows = {...this.viewer.state.windows, [this.channel]: w};
    this.viewer.redraw();
  }

  // next takes the next colours or overlay mode.
  next(id) {
    const s = $(id);
    s.selectedIndex = (s.selectedIndex + 1) % s.options.length;
    this.set(id, s.value);
  }

  keys() { $('keys').showModal(); }

  // readout writes a position and values.
  readout(position, values) { $('readout').replaceChildren(position, ...values.flatMap(v => [make('br'), v])); }

  // image builds what depends on the image that is shown.
  image() {
    const {main, state, server} = this.viewer, {d} = main;
    $('title').textContent = this.viewer.images.length > 1 ? server.title : d.name;
    $('image').value = state.image;
    $('slide').value = this.viewer.images.indexOf(state.image);
    $('overlay').value = this.viewer.overlay || state.overlay === next ? state.overlay : -1;
    $('overlay').options[1].hidden = this.viewer.images.length < 2;
    this.channel = main.channelsShown(state)[0];
    const shown = main.channelsShown(state);
    $('channels').replaceChildren(...(d.channels.length < 2 ? [] : d.channels.map((c, i) => {
      const box = make('input', {type: 'checkbox', checked: shown.includes(i)});
      box.addEventListener('change', () => this.channels());
      const swatch = make('span', {className: 'swatch'});
      if (c.color) swatch.style.background = '#' + c.color;
      const name = make('button', {textContent: c.name, title: 'set the window of this channel'});
      name.addEventListener('click', () => { this.channel = i; this.viewer.redraw(); });
      return make('label', {}, box, swatch, name);
    })));
    $('others').replaceChildren(...d.others.map((o, i) => [o, i]).filter(([o, i]) => i !== d.channel && o.size > 1).map(([o, i]) => {
      const slider = make('input', {type: 'range', min: 0, max: o.size - 1, value: state.other?.[i] ?? 0});
      slider.addEventListener('input', () => {
        state.other = d.others.map((_, k) => k === i ? +slider.value : state.other?.[k] ?? 0);
        this.viewer.redraw();
      });
      return make('div', {className: 'row'}, make('label', {}, `${o.name} `, slider));
    }));
    elsewhere($('elsewhere'), d, state.image, server, make);
    this.viewer.pointAt(null);
  }

  // channels takes over which ones are ticked.
  channels() {
    const boxes = [...document.querySelectorAll('#channels input')];
    const chosen = boxes.flatMap((b, i) => b.checked ? [i] : []);
    if (!chosen.length) return;
    if (!chosen.includes(this.channel)) this.channel = chosen[0];
    this.set('channels', chosen);
  }

  // update shows the state in the controls.
  update(cut) {
    const {state, main} = this.viewer, c = this.channel;
    const window = main.d.labels ? null : main.window(state, c, true);
    this.histogram.draw(main.d.labels ? null : main.stats(state, c), window);
    for (const [id, v] of [['low', window?.[0]], ['high', window?.[1]]]) if (document.activeElement !== $(id)) $(id).value = v === undefined ? '' : +v.toPrecision(6);
    $('percentiles').value = state.windows[c] ? '' : state.percentiles?.join() ?? (main.stated(c) ? 'stated' : '0.1,99.9');
    $('gamma').value = state.gamma;
    $('gammaValue').textContent = state.gamma.toFixed(2);
    $('map').value = state.map;
    $('cross').checked = state.cross;
    $('mode').value = state.mode;
    $('place').hidden = !this.viewer.overlay;
    const p = state.place ?? unplaced;
    $('placed').textContent = `moved by x ${micrometres(p.by[2])}, y ${micrometres(p.by[1])}, z ${micrometres(p.by[0])}, turned by ${+(p.angle * 180 / Math.PI).toFixed(3)}°`;
    for (const b of document.querySelectorAll('#tabs button')) b.setAttribute('aria-pressed', b.dataset.panel === state.panel);
    $('about').textContent = cut ? 'Zoom in: the image has no level that is coarse enough to show all of it.' : `strata view ${this.viewer.server.version}`;
  }
}
