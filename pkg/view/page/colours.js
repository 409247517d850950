// From numbers to colours: a tile's elements and what the reader chose become the pixels of a canvas.

// table decodes a colour map: 256 times three hexadecimal bytes.
export function table(hex) {
  const t = new Uint8Array(hex.length / 2);
  for (let i = 0; i < t.length; i++) t[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return t;
}

// tint makes a colour map of one colour, from black.
export function tint(hex) {
  const t = new Uint8Array(768);
  const c = table(hex);
  for (let i = 0; i < 256; i++) for (let k = 0; k < 3; k++) t[3 * i + k] = Math.round(c[k] * i / 255);
  return t;
}

// labelTable gives each label a colour of its own: that of the image's metadata, else one by its number. 0 is black.
export function labelColour(value, stated) {
  if (stated.has(value)) return stated.get(value);
  if (!value) return [0, 0, 0];
  const h = (value * 0.618033988749895) % 1 * 6;
  const f = h - Math.floor(h);
  const [p, q, t] = [70, Math.round(255 - 185 * f), Math.round(70 + 185 * f)];
  return [[255, t, p], [q, 255, p], [p, 255, t], [p, q, 255], [t, p, 255], [255, p, q]][Math.floor(h)];
}

// shader returns a function from a value to one of the 256 entries of a colour map.
export function shader(window, gamma) {
  const [lo, hi] = window, width = hi - lo || 1;
  return v => {
    const s = (v - lo) / width;
    if (!(s > 0)) return 0; // NaN, too
    return s >= 1 ? 255 : Math.floor(255 * s ** gamma + 0.5);
  };
}

// paint colours elements: layers is a list of {values, colours, window, gamma}, which are added up.
export function paint(pixels, layers) {
  const n = pixels.length / 4;
  layers.forEach((layer, first) => {
    const {values, colours} = layer;
    const shade = shader(layer.window, layer.gamma);
    const single = values.length === 1;
    const k0 = single ? shade(values[0]) : 0;
    // Integers of 8 and 16 bits are looked up.
    let lookup = null;
    const offset = values instanceof Int8Array ? 128 : values instanceof Int16Array ? 32768 : 0;
    if (!single && values.BYTES_PER_ELEMENT <= 2) {
      lookup = layer.lookup ??= Uint8Array.from({length: 1 << (8 * values.BYTES_PER_ELEMENT)}, (_, i) => shade(i - offset));
    }
    for (let i = 0, o = 0; i < n; i++, o += 4) {
      const k = 3 * (single ? k0 : lookup ? lookup[values[i] + offset] : shade(values[i]));
      if (first === 0) {
        pixels[o] = colours[k]; pixels[o + 1] = colours[k + 1]; pixels[o + 2] = colours[k + 2]; pixels[o + 3] = 255;
      } else { // clamped by the array
        pixels[o] += colours[k]; pixels[o + 1] += colours[k + 1]; pixels[o + 2] += colours[k + 2];
      }
    }
  });
}

// paintLabels colours the elements of a label image.
export function paintLabels(pixels, values, stated) {
  const n = pixels.length / 4;
  let last, c;
  for (let i = 0, o = 0; i < n; i++, o += 4) {
    const v = values[values.length === 1 ? 0 : i];
    if (v !== last) { last = v; c = labelColour(v, stated); }
    pixels[o] = c[0]; pixels[o + 1] = c[1]; pixels[o + 2] = c[2]; pixels[o + 3] = 255;
  }
}
