package oct

import (
	"fmt"

	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// devicePiece is how much is fetched at a time where that may be chosen: enough that the
// calls do not count, and that a batch of chunks keeps a device busy.
const devicePiece = 8 << 20

// deviceColumns brings the tiles of a mosaic, its chunk columns, to a device, some
// planes at a time in increasing z.
type deviceColumns struct {
	*zarrgpu.Reader
	mosaic  *mosaic
	res     *Resources
	count   *meter.Meter
	depth   int   // planes that are wanted, from the first
	rows    int   // of a tile, that come at a time
	planes  int   // of a region
	scratch int64 // host memory that a worker's decoders take
}

// newDeviceColumns plans the reading of a mosaic; what it costs is counted in the meter.
func newDeviceColumns(m *mosaic, res *Resources, count *meter.Meter) (*deviceColumns, error) {
	a := m.image.Levels[0].Array
	r, err := res.reader(a, count)
	if err != nil {
		return nil, err
	}
	c := &deviceColumns{Reader: r, mosaic: m, res: res, count: count, depth: m.shape[0], rows: m.chunk[1], planes: m.chunk[0]}
	plane := int(r.Bytes([]int{1, m.chunk[1], m.chunk[2]}))
	if len(a.Codecs()) == 0 && a.Order() == 'C' {
		c.planes = min(c.planes, max(1, devicePiece/plane))
	} else {
		c.planes *= min(max(1, devicePiece/(plane*c.planes)), (m.shape[0]-1)/c.planes+1)
	}
	c.scratch = r.Scratch()
	return c, nil
}

// slot is the shape of the regions in which a tile comes.
func (c *deviceColumns) slot() []int {
	return c.slotOf(c.depth)
}

// slotOf is slot where so many planes are wanted.
func (c *deviceColumns) slotOf(planes int) []int {
	return c.mosaic.boxShape(min(c.planes, c.depth, planes), c.rows, c.mosaic.chunk[2])
}

// regions are those of the tile at (y, x) of ny × nx voxels.
func (c *deviceColumns) regions(y, ny, x, nx int) []zarr.Region {
	return c.planesOf(0, c.depth, y, ny, x, nx)
}

// planesOf are the regions of planes z0 … z1−1 of that tile.
func (c *deviceColumns) planesOf(z0, z1, y, ny, x, nx int) (all []zarr.Region) {
	for z := z0; z < z1; {
		n := min(z1-z, c.planes)
		if c.planes < c.mosaic.chunk[0] {
			n = min(n, c.mosaic.chunk[0]-z%c.mosaic.chunk[0])
		} else {
			n = min(n, c.planes-z%c.mosaic.chunk[0])
		}
		all = append(all, zarr.Region{Start: c.mosaic.index(z, y, x), Shape: c.mosaic.boxShape(n, ny, nx)})
		z += n
	}
	return all
}

// workers is how many workers the memory of the host and of the device holds, of which
// each has so much of it beside its slots, and per slot. One that has no room for all
// its slots works with one; where the device has no room for that either, chunks come by way of the host.
func (c *deviceColumns) workers(res *Resources, hostMem int64, host, hostPlace, device int64, what string) (int, error) {
	limit := res.Device.Memory().Limit()
	pinned, onDevice := c.Memory(c.slot())
	if device <= limit && device+onDevice > limit && c.byHost() {
		pinned, onDevice = c.Memory(c.slot())
	}
	host += c.scratch
	all := func(slots int64) (n, most int64) {
		each := host + slots*(pinned+hostPlace)
		return each, hostMem / each
	}
	slots := int64(mostSlots)
	each, n := all(slots)
	if n < 1 || limit/(device+slots*onDevice) < 1 {
		slots = 1
		each, n = all(slots)
	}
	if n < 1 {
		return 0, fmt.Errorf("%s: %s takes %d MiB of buffers, --mem grants %d MiB", c.mosaic.where, what, (each+res.Mem-hostMem)>>20+1, res.Mem>>20)
	}
	return workersOnDevice(res.Device, int(min(int64(res.Workers), n)), device+slots*onDevice, c.mosaic.where, what)
}

// byHost lets chunks come by way of the host, which takes no memory of the device, unless
// they do, or the user wants it otherwise.
func (c *deviceColumns) byHost() bool {
	way, _ := c.Way()
	if way != zarrgpu.NVComp && way != zarrgpu.GDS || c.res.Backend != "" && c.res.Backend != "auto" {
		return false
	}
	res := *c.res
	res.Backend = "host"
	r, err := res.reader(c.mosaic.image.Levels[0].Array, c.count)
	if err != nil {
		return false
	}
	if c.res.Debug != nil {
		c.res.Debug(fmt.Sprintf("%s is read by way of %v: the GPU has no memory for a better one", c.mosaic.where, zarrgpu.Host))
	}
	c.Reader, c.scratch = r, r.Scratch()
	return true
}

// less lets a tile take less of the device: first the host decodes it, unless the user wants
// it otherwise; then fewer rows of it are there at a time, so many as divide it, each piece
// at most half of the one before. It reports whether there is less.
func (c *deviceColumns) less() bool {
	if c.byHost() {
		return true
	}
	for n := c.rows / 2; n > 0; n-- {
		if c.mosaic.chunk[1]%n == 0 {
			c.rows = n
			return true
		}
	}
	return false
}

// piece is the device memory that so many rows of a tile take in their full depth.
func (c *deviceColumns) piece() int64 {
	return c.Bytes([]int{c.depth, c.rows, c.mosaic.chunk[2]})
}

// pieces says in words what is on the device at a time.
func (c *deviceColumns) pieces() string {
	text := fmt.Sprintf("tiles of %v voxels", c.mosaic.tile())
	if c.rows < c.mosaic.chunk[1] {
		text += fmt.Sprintf(" in pieces of %v", []int{c.depth, c.rows, c.mosaic.chunk[2]})
	}
	return text
}
