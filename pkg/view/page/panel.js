// One cut on a canvas: drawing, and what mouse, pen and fingers do.
import {barLabel, barLength, micrometres, planes} from './geometry.js';
import {isPlaced, middle} from './place.js';

const square = 64; // of the checkerboard, pixels of the page

export class Panel {
  // viewer has state, main, overlay, maps, tiles, and what the gestures call: placeAt, pan, zoom, through, pointAt.
  constructor(element, viewer) {
    this.viewer = viewer;
    this.plane = planes[element.id];
    this.element = element;
    this.canvas = element.querySelector('canvas');
    this.label = element.querySelector('.label');
    this.slider = element.querySelector('.through');
    this.behind = document.createElement('canvas');
    this.fingers = new Map();
    this.listen();
  }

  // shows reports whether the panel is visible.
  shows() { return this.element.clientWidth > 0 && this.element.clientHeight > 0; }

  // parts returns how many pictures of the same place lie side by side on the canvas.
  parts() { return this.viewer.overlay && this.viewer.state.mode === 'side by side' ? 2 : 1; }

  // view says where what lies on a part of the canvas, in device pixels.
  view(part = 0) {
    const {state} = this.viewer, ratio = devicePixelRatio || 1;
    const w = this.canvas.width / this.parts(), h = this.canvas.height, pixel = state.scale / ratio;
    const left = state.centre[this.plane.cols] - w / 2 * pixel, top = state.centre[this.plane.rows] - h / 2 * pixel;
    return {
      ratio, pixel, at: state.at[this.plane.across], from: part * w, width: w,
      x: um => part * w + (um - left) / pixel, y: um => (um - top) / pixel,
      rectangle: {left, top, right: left + w * pixel, bottom: top + h * pixel},
    };
  }

  // draw draws the cut and adds the tiles that are missing to wanted.
  draw(wanted) {
    if (!this.shows()) return false;
    const ratio = devicePixelRatio || 1, {canvas, viewer} = this;
    const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = canvas.getContext('2d');
    context.clearRect(0, 0, w, h);
    const cuts = [viewer.main, viewer.overlay].slice(0, this.parts()).map((picture, i) => {
      const view = this.view(i);
      context.save();
      context.beginPath();
      context.rect(view.from, 0, view.width, h);
      context.clip();
      const cut = this.layer(context, picture, view, i === 0, wanted);
      if (viewer.overlay && this.parts() === 1) this.lay(context, view, wanted);
      this.cross(context, view);
      context.restore();
      return cut;
    });
    this.marks(context, this.view(this.parts() - 1));
    return cuts.some(Boolean);
  }

  layer(context, picture, view, main, wanted) {
    const layers = picture.layers(this.viewer.state, this.viewer.maps, main);
    if (!layers) return false;
    context.save();
    const cut = picture.draw(context, this.plane.name, main ? view : this.placed(context, picture, view), layers, this.viewer.tiles, wanted);
    context.restore();
    return cut;
  }

  // placed returns the view of the second image, where it was moved to. Cuts along z show the displacement only, not the rotation.
  placed(context, picture, view) {
    const {place} = this.viewer.state, {rows, cols, across} = this.plane;
    if (!place || !isPlaced(place)) return view;
    const {by, angle} = place, r = view.rectangle;
    let grow = 0;
    if (angle && across === 0) {
      const c = middle(picture.d), x = view.x(c[1] + by[2]), y = view.y(c[0] + by[1]);
      context.translate(x, y);
      context.rotate(angle);
      context.translate(-x, -y);
      grow = Math.abs(Math.sin(angle)) * (r.right - r.left + r.bottom - r.top);
    }
    return {
      ...view, at: view.at - by[across], x: um => view.x(um + by[cols]), y: um => view.y(um + by[rows]),
      rectangle: {left: r.left - by[cols] - grow, right: r.right - by[cols] + grow, top: r.top - by[rows] - grow, bottom: r.bottom - by[rows] + grow},
    };
  }

  // lay puts the second image over the first.
  lay(context, view, wanted) {
    const {behind, canvas, viewer} = this, mode = viewer.state.mode;
    [behind.width, behind.height] = [canvas.width, canvas.height];
    this.layer(behind.getContext('2d'), viewer.overlay, view, false, wanted);
    const s = Math.round(square * view.ratio);
    context.save();
    if (mode === 'checkerboard') {
      context.beginPath();
      for (let y = 0; y < canvas.height; y += s) for (let x = (y / s) % 2 ? 0 : s; x < canvas.width; x += 2 * s) context.rect(x, y, s, s);
      context.clip();
    } else if (mode === 'curtain') {
      const x = view.x(viewer.state.at[this.plane.cols]);
      context.beginPath();
      context.rect(x, 0, canvas.width - x, canvas.height);
      context.clip();
    } else if (mode === 'difference') context.globalCompositeOperation = 'difference';
    else if (mode === 'blend') context.globalAlpha = 0.5;
    if (mode !== 'flicker') context.drawImage(behind, 0, 0);
    else if (viewer.flick) { context.clearRect(0, 0, canvas.width, canvas.height); context.drawImage(behind, 0, 0); }
    context.restore();
  }

  // cross draws the cross-hair.
  cross(context, view) {
    const {state} = this.viewer, {rows, cols} = this.plane, {width, height} = this.canvas;
    if (!state.cross) return;
    const x = Math.floor(view.x(state.at[cols])) + 0.5, y = Math.floor(view.y(state.at[rows])) + 0.5, gap = 12 * view.ratio;
    context.strokeStyle = 'rgba(255,210,60,.75)';
    context.lineWidth = 1;
    context.beginPath();
    for (const [a, b, c, d] of [[x, 0, x, y - gap], [x, y + gap, x, height], [0, y, x - gap, y], [x + gap, y, width, y]]) { context.moveTo(a, b); context.lineTo(c, d); }
    context.stroke();
  }

  // marks draws the scale bar, and writes where the cut lies.
  marks(context, view) {
    const {state, main} = this.viewer, {across} = this.plane, {width, height} = this.canvas;
    const length = barLength(view.width / 4 * view.pixel), px = length / view.pixel;
    const right = width - 12 * view.ratio, bottom = height - 12 * view.ratio;
    context.fillStyle = 'rgba(0,0,0,.55)';
    context.fillRect(right - px - 4, bottom - 20 * view.ratio, px + 8, 26 * view.ratio);
    context.fillStyle = '#fff';
    context.fillRect(right - px, bottom - 3 * view.ratio, px, 3 * view.ratio);
    context.font = `${12 * view.ratio}px system-ui, sans-serif`;
    context.textAlign = 'right';
    context.fillText(barLabel(length), right, bottom - 6 * view.ratio);
    this.bar = {length, px: px / view.ratio};
    this.label.textContent = main.d.flat ? '' : `${this.plane.name.toUpperCase()}  ${'zyx'[across]} = ${micrometres(state.at[across])}`;
    const l = main.d.levels[0];
    [this.slider.min, this.slider.max, this.slider.step] = [0, l.shape[across] - 1, 1];
    this.slider.value = Math.round((state.at[across] - l.origin[across]) / l.size[across]);
  }

  // position returns where an event lies, µm along z, y, x.
  position(e) {
    const box = this.canvas.getBoundingClientRect(), {state} = this.viewer, p = [...state.at];
    const width = box.width / this.parts();
    p[this.plane.cols] = state.centre[this.plane.cols] + ((e.clientX - box.left) % width - width / 2) * state.scale;
    p[this.plane.rows] = state.centre[this.plane.rows] + (e.clientY - box.top - box.height / 2) * state.scale;
    return p;
  }

  listen() {
    const {canvas, viewer, fingers} = this;
    canvas.addEventListener('pointerdown', e => {
      if (e.button > 0) return;
      canvas.setPointerCapture(e.pointerId);
      fingers.set(e.pointerId, {x: e.clientX, y: e.clientY});
      this.moved = fingers.size > 1 ? Infinity : 0;
    });
    canvas.addEventListener('pointermove', e => this.move(e));
    const up = e => {
      if (fingers.delete(e.pointerId) && e.type === 'pointerup' && this.moved < 5 && fingers.size === 0) viewer.placeAt(this.position(e));
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('pointerleave', () => viewer.pointAt(null));
    canvas.addEventListener('wheel', e => {
      e.preventDefault();
      if (e.ctrlKey || e.metaKey || viewer.main.d.flat) viewer.zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.01), this.position(e), this.plane);
      else viewer.through(this.plane, Math.sign(e.deltaY));
    }, {passive: false});
    this.slider.addEventListener('input', () => {
      const l = viewer.main.d.levels[0], d = this.plane.across, p = [...viewer.state.at];
      p[d] = l.origin[d] + this.slider.value * l.size[d];
      viewer.placeAt(p);
    });
  }

  move(e) {
    const {fingers, viewer, plane} = this, before = fingers.get(e.pointerId);
    if (!before) { viewer.pointAt(this.position(e)); return; }
    const now = {x: e.clientX, y: e.clientY};
    const others = [...fingers].filter(([id]) => id !== e.pointerId).map(([, f]) => f);
    fingers.set(e.pointerId, now);
    this.moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (this.moved < 5) return;
    if (others.length) { // a pinch
      const f = others[0], far = p => Math.hypot(p.x - f.x, p.y - f.y) || 1;
      viewer.zoom(far(before) / far(now), this.position({clientX: (now.x + f.x) / 2, clientY: (now.y + f.y) / 2}), plane);
    }
    const share = others.length ? 0.5 : 1;
    viewer.pan(plane, (before.x - now.x) * share, (before.y - now.y) * share);
  }
}
