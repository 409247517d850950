// The histogram with two lines that set the window.

export class Histogram {
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed; // called with a window
    canvas.addEventListener('pointerdown', e => {
      if (!this.statistics) return;
      canvas.setPointerCapture(e.pointerId);
      const v = this.valueAt(e);
      this.end = Math.abs(v - this.window[0]) < Math.abs(v - this.window[1]) ? 0 : 1;
      this.drag(e);
    });
    canvas.addEventListener('pointermove', e => { if (this.end !== undefined) this.drag(e); });
    for (const type of ['pointerup', 'pointercancel']) canvas.addEventListener(type, () => { this.end = undefined; });
  }

  valueAt(e) {
    const box = this.canvas.getBoundingClientRect(), {from, to} = this.statistics;
    return from + (e.clientX - box.left) / box.width * (to - from);
  }

  drag(e) {
    const w = [...this.window];
    w[this.end] = this.valueAt(e);
    if (w[0] < w[1]) this.changed(w);
  }

  // draw shows statistics and a window; nothing while there are none.
  draw(statistics, window) {
    [this.statistics, this.window] = [statistics, window];
    const {canvas} = this, c = canvas.getContext('2d'), {width, height} = canvas;
    c.clearRect(0, 0, width, height);
    if (!statistics || !window || !(statistics.from < statistics.to)) { this.statistics = null; return; }
    const style = getComputedStyle(document.documentElement), bins = statistics.histogram;
    const most = Math.log1p(Math.max(...bins));
    c.fillStyle = style.getPropertyValue('--quiet');
    bins.forEach((n, i) => {
      const h = Math.log1p(n) / most * (height - 4);
      c.fillRect(i * width / bins.length, height - h, width / bins.length, h);
    });
    const x = v => (v - statistics.from) / (statistics.to - statistics.from) * width;
    c.fillStyle = style.getPropertyValue('--link');
    for (const v of window) c.fillRect(Math.max(0, Math.min(width - 4, x(v) - 2)), 0, 4, height);
  }
}
