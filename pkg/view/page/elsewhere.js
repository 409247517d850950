// Links and lines that open the image in other programs.

const pages = [
  ['Neuroglancer', 'https://neuroglancer-demo.appspot.com', (origin, url, name) => `${origin}/#!${encodeURIComponent(JSON.stringify({layers: [{type: 'image', source: `zarr://${url}`, name}]}))}`],
  ['vizarr', 'https://hms-dbmi.github.io', (origin, url) => `${origin}/vizarr/?source=${encodeURIComponent(url)}`],
];

// elsewhere fills an element.
export function elsewhere(element, description, id, server, make) {
  if (!description.stored) {
    element.replaceChildren('This file is not stored as Zarr: ', make('code', {textContent: `zarr-tool import '${description.location}' image.ome.zarr --keep_levels`}), 'makes a copy that other programs open.');
    return;
  }
  const url = new URL(`zarr/${id}.ome.zarr/`, location.href.replace(/#.*/, '')).href;
  const list = [];
  for (const [name, origin, link] of pages) {
    if (server.origins.includes(origin)) list.push(make('p', {}, make('a', {href: link(origin, url, description.name), target: '_blank', rel: 'noreferrer', textContent: name})));
    else list.push(make('p', {}, `${name}: start view with`, make('code', {textContent: `--allow_origin ${origin}`})));
  }
  list.push(make('p', {}, 'napari, with its plugin napari-ome-zarr:', make('code', {textContent: `napari --plugin napari-ome-zarr ${url}`})));
  list.push(make('p', {}, 'Fiji: File > Import > HDF5/N5/Zarr/OME-NGFF, with this address:', make('code', {textContent: url})));
  element.replaceChildren(...list);
}
