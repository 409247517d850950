// Tiles from the server, cached; those that no panel wants any more are not waited for.

const arrays = {uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array};
const mostBytes = 96 << 20; // of elements and pixels
const atOnce = 6;           // requests that browsers send to one server

export class Tiles {
  constructor(arrived, failed) {
    this.arrived = arrived;
    this.failed = failed;
    this.cache = new Map(); // address → tile, the one used longest ago first
    this.bytes = 0;
    this.wanted = new Map(); // address → {description, address}, in order of importance
    this.flying = new Map(); // address → AbortController
    this.broken = new Map(); // address → time after which it may be asked for again
  }

  // get returns a tile if it is here.
  get(address) {
    const t = this.cache.get(address);
    if (t) { this.cache.delete(address); this.cache.set(address, t); }
    return t;
  }

  // want replaces the list of what is wanted: what is on its way and not in it is given up.
  want(list) {
    this.wanted = new Map(list.filter(w => !this.cache.has(w.address)).map(w => [w.address, w]));
    for (const [address, control] of this.flying) {
      if (!this.wanted.has(address)) { this.flying.delete(address); control.abort(); }
    }
    this.fetch();
  }

  // idle reports whether all that is wanted is here.
  idle() { return this.flying.size === 0 && [...this.wanted.keys()].every(a => this.broken.has(a)); }

  fetch() {
    for (const [address, w] of this.wanted) {
      if (this.flying.size >= atOnce) return;
      if (this.flying.has(address) || (this.broken.get(address) ?? 0) > performance.now()) continue;
      this.load(address, w);
    }
  }

  async load(address, w) {
    const control = new AbortController();
    this.flying.set(address, control);
    try {
      const answer = await fetch(address, {signal: control.signal});
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const values = new arrays[w.description.served](await answer.arrayBuffer());
      this.broken.delete(address);
      this.put(address, {values, pixels: null, shown: ''});
    } catch (e) {
      if (control.signal.aborted) return;
      this.broken.set(address, performance.now() + 5000);
      this.failed(e);
    }
    if (this.flying.get(address) === control) this.flying.delete(address);
    this.wanted.delete(address);
    this.fetch();
    this.arrived();
  }

  put(address, tile) {
    this.cache.set(address, tile);
    this.bytes += cost(tile);
    for (const [old, t] of this.cache) {
      if (this.bytes <= mostBytes || old === address) break;
      this.cache.delete(old);
      this.bytes -= cost(t);
    }
  }
}

// cost is the memory of a tile with its pixels.
function cost(t) { return t.values.byteLength + 4 * 256 * 256; }
