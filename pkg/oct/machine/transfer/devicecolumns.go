package transfer

import (
	"fmt"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// DevicePiece is how much is fetched at a time where that may be chosen: enough that the
// calls do not count, and that a batch of chunks keeps a device busy.
const DevicePiece = 8 << 20

// DeviceColumns brings the tiles of a mosaic, its chunk columns, to a device, some
// planes at a time in increasing z.
type DeviceColumns struct {
	*zarrgpu.Reader
	mosaic  *oct.Mosaic
	res     *oct.Resources
	count   *meter.Meter
	Depth   int   // planes that are wanted, from the first
	Rows    int   // of a tile, that come at a time
	Planes  int   // of a region
	Scratch int64 // host memory that a worker's decoders take
}

// NewDeviceColumns plans the reading of a mosaic; what it costs is counted in the meter.
func NewDeviceColumns(m *oct.Mosaic, res *oct.Resources, count *meter.Meter) (*DeviceColumns, error) {
	a := m.Image.Levels[0].Array
	r, err := res.Reader(a, count)
	if err != nil {
		return nil, err
	}
	c := &DeviceColumns{Reader: r, mosaic: m, res: res, count: count, Depth: m.Shape[0], Rows: m.Chunk[1], Planes: m.Chunk[0]}
	plane := int(r.Bytes([]int{1, m.Chunk[1], m.Chunk[2]}))
	if len(a.Codecs()) == 0 && a.Order() == 'C' {
		c.Planes = min(c.Planes, max(1, DevicePiece/plane))
	} else {
		c.Planes *= min(max(1, DevicePiece/(plane*c.Planes)), (m.Shape[0]-1)/c.Planes+1)
	}
	c.Scratch = r.Scratch()
	return c, nil
}

// slot is the shape of the regions in which a tile comes.
func (c *DeviceColumns) SlotShape() []int {
	return c.SlotOf(c.Depth)
}

// SlotOf is slot where so many planes are wanted.
func (c *DeviceColumns) SlotOf(planes int) []int {
	return c.mosaic.BoxShape(min(c.Planes, c.Depth, planes), c.Rows, c.mosaic.Chunk[2])
}

// Regions are those of the tile at (y, x) of ny × nx voxels.
func (c *DeviceColumns) Regions(y, ny, x, nx int) []zarr.Region {
	return c.PlanesOf(0, c.Depth, y, ny, x, nx)
}

// PlanesOf are the regions of planes z0 … z1−1 of that tile.
func (c *DeviceColumns) PlanesOf(z0, z1, y, ny, x, nx int) (all []zarr.Region) {
	for z := z0; z < z1; {
		n := min(z1-z, c.Planes)
		if c.Planes < c.mosaic.Chunk[0] {
			n = min(n, c.mosaic.Chunk[0]-z%c.mosaic.Chunk[0])
		} else {
			n = min(n, c.Planes-z%c.mosaic.Chunk[0])
		}
		all = append(all, zarr.Region{Start: c.mosaic.Index(z, y, x), Shape: c.mosaic.BoxShape(n, ny, nx)})
		z += n
	}
	return all
}

// Workers is how many workers the memory of the host and of the device holds, of which
// each has so much of it beside its slots, and per slot. One that has no room for all
// its slots works with fewer; where the device has no room for that either, chunks come by way of the host.
func (c *DeviceColumns) Workers(res *oct.Resources, hostMem int64, host, hostPlace, device int64, what string) (int, error) {
	limit := res.Device.Memory().Limit()
	pinned, onDevice := c.Memory(c.SlotShape())
	if device <= limit && device+onDevice > limit && c.byHost() {
		pinned, onDevice = c.Memory(c.SlotShape())
	}
	host += c.Decoding(host+pinned+hostPlace, hostMem)
	all := func(slots int64) (n, most int64) {
		each := host + slots*(pinned+hostPlace)
		return each, hostMem / each
	}
	slots := int64(MostSlots)
	each, n := all(slots)
	for slots > 1 && (n < 1 || limit < device+slots*onDevice) {
		slots--
		each, n = all(slots)
	}
	if n < 1 {
		return 0, res.TooLittle(each+res.Mem-hostMem, "%s: %s", c.mosaic.Where, what)
	}
	return workersOnDevice(res.Device, int(min(int64(res.Workers), n)), device+slots*onDevice, c.mosaic.Where, what)
}

// Decoding is Scratch, for a worker that takes so much besides. Where the host's memory holds no such worker, it does not
// try to decode there.
func (c *DeviceColumns) Decoding(besides, hostMem int64) int64 {
	if besides+c.Scratch > hostMem {
		c.Untried()
		c.Scratch = c.Reader.Scratch()
	}
	return c.Scratch
}

// byHost lets chunks come by way of the host, which takes no memory of the device, unless
// they do, or the user wants it otherwise.
func (c *DeviceColumns) byHost() bool {
	way, _ := c.Way()
	if way != zarrgpu.NVComp && way != zarrgpu.GDS || c.res.Backend != "" && c.res.Backend != "auto" {
		return false
	}
	res := *c.res
	res.Backend = "host"
	r, err := res.Reader(c.mosaic.Image.Levels[0].Array, c.count)
	if err != nil {
		return false
	}
	if c.res.Debug != nil {
		c.res.Debug(fmt.Sprintf("%s is read by way of %v: the GPU has no memory for a better one", c.mosaic.Where, zarrgpu.Host))
	}
	c.Reader, c.Scratch = r, r.Scratch()
	return true
}

// Less lets a tile take less of the device: first the host decodes it, unless the user wants
// it otherwise; then fewer rows of it are there at a time, so many as divide it, each piece
// at most half of the one before. It reports whether there is less.
func (c *DeviceColumns) Less() bool {
	if c.byHost() {
		return true
	}
	for n := c.Rows / 2; n > 0; n-- {
		if c.mosaic.Chunk[1]%n == 0 {
			c.Rows = n
			return true
		}
	}
	return false
}

// Piece is the device memory that so many rows of a tile take in their full depth.
func (c *DeviceColumns) Piece() int64 {
	return c.Bytes([]int{c.Depth, c.Rows, c.mosaic.Chunk[2]})
}

// Pieces says in words what is on the device at a time.
func (c *DeviceColumns) Pieces() string {
	text := fmt.Sprintf("tiles of %v voxels", c.mosaic.Tile())
	if c.Rows < c.mosaic.Chunk[1] {
		text += fmt.Sprintf(" in pieces of %v", []int{c.Depth, c.Rows, c.mosaic.Chunk[2]})
	}
	return text
}
