// Package tile streams an image that does not fit in memory as views.
//
// An image is stored in tiles: equal boxes of pixels, all with their own place
// in a file. A [Source] knows the tiles of one file format and loads one at a
// time. A view is a tile with a halo around it, whose width is the radius: what
// a filter needs to compute every pixel of the tile. Where the halo reaches
// over the image's edge lies the border, which is filled by a rule ([Border]).
// The order in which all views of an image are visited is the traversal
// ([Traverse]).
//
// A [Loader] makes views of any [dtype.Element] from a source:
//
//	l, err := tile.New[float32](src, tile.Radius(3), tile.Border(tile.Mirror),
//		tile.ViewsAvailable(4), tile.LoaderThreads(2))
//	defer l.Close()
//	for v, err := range l.AllViews(ctx, 0) {
//		if err != nil { … }
//		compute(v.Data(), v.ViewShape)
//		v.Release()
//	}
//
// AllViews and [Loader.Views] load ahead in goroutines of their own, which end
// with the loop. [Loader.View] loads one view in the goroutine that asks: many
// workers may share a loader that way.
//
// # Memory and cost
//
// A loader holds at most ViewsAvailable views and CacheBytes of tiles per
// level; [Loader.MaxMemory] is their sum. Tiles are shared by all views that
// need them: each is loaded once for as long as the cache holds it, however
// many streams ask for it at once. To read every tile once, a cache must hold
// as many as lie between its first and its last use: in C order
// about two rows of the grid.
//
// A view of radius 0 is a tile: it is loaded straight into the view's memory
// and not cached.
//
// A large tile with a narrow halo is cached where its view shows it, in the
// middle of memory of a view's shape, which the view takes over: its pixels are
// not copied. The neighbours' halos show only the ends of the tile, the first
// and the last planes along each axis. These are copied before the tile goes and
// have a third of the cache. What costs more than reading the tiles alone is the
// halo: its bytes are copied twice at most. Where tiles lie in their file as they
// lie in memory ([BoxSource]), ends that are planes of it are read on their own,
// so that C order reads a tile once and its first planes twice, with a cache of a
// few tiles. Where several streams share a loader, where the cache holds all
// tiles, where tiles are small (256 KiB) or halos wide (ends of more than half
// the tile), tiles stay in the cache, and each pixel of a view is copied once.
//
// # What cannot happen
//
// Every set of requests is a stream of its own and ends when all of its views
// were delivered: there is nothing to finish and nothing to forget. Streams
// that run at the same time share the views available. A view that was loaded
// ahead gives way to one that somebody waits for, so streams can be read in
// any order by one goroutine. Only views that were delivered and not released
// are out of reach: who waits for more views than ViewsAvailable without
// releasing one waits until its context ends.
package tile
