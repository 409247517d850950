// Package tile streams an image that does not fit in memory as views.
//
// An image is stored in tiles: equal boxes of pixels, each with its own place in a file. A [Source] reads the
// tiles of one file format. A view is a tile with a halo around it, as wide as the radius: all the pixels
// that a filter needs to compute every pixel of the tile. Where the halo extends over the image's edge lies
// the border, which is filled by a rule ([Border]). The order in which all views of an image are visited is
// the traversal ([Traverse]).
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
// AllViews and [Loader.Views] load ahead in goroutines of their own, which end with the loop. [Loader.View]
// loads one view in the caller's goroutine, so that many workers may share a loader.
//
// # Memory and cost
//
// A loader holds at most ViewsAvailable views and CacheBytes of tiles per level; [Loader.MaxMemory] returns
// their sum. All views that need a tile share it: it is loaded once for as long as the cache holds it,
// however many streams request it. To read every tile only once, a cache must hold the tiles between the
// first and the last use of one: in C order, about two rows of the grid.
//
// A view of radius 0 is a tile: it is loaded straight into the view's memory and not cached.
//
// A large tile with a narrow halo is cached in memory of a view's shape, at the place where its view shows
// it, and the view takes that memory over without copying. The neighbours' halos show only the ends of the
// tile, the first and the last planes along each axis; these are copied before the tile goes, to caches that
// have a third of the memory. Beyond reading the tiles, only the halo costs something: its bytes are copied
// at most twice. If tiles have the same layout in file and memory ([BoxSource]), ends that are planes of the
// file are read separately, so that C order reads a tile once and its first planes twice, with a cache of a
// few tiles. If several streams share a loader, if the cache holds all tiles, if tiles are small (256 KiB) or
// halos wide (ends of more than half the tile), tiles stay in the cache and each pixel of a view is copied
// once.
//
// # Streams
//
// Every set of requests is a separate stream, which ends when all of its views have been delivered; nothing
// needs to be finished. Concurrent streams share the views available. A view loaded ahead gives way to one
// that somebody waits for, so that one goroutine can read several streams in any order. Only views that were
// delivered and not released are out of reach: a caller that waits for more views than ViewsAvailable without
// releasing one waits until its context ends.
package tile
