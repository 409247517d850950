package transfer

import (
	"fmt"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// DevicePiece is the number of bytes fetched at a time if that can be chosen: enough to make the overhead of calls
// negligible and to keep a device busy with a batch of chunks.
const DevicePiece = 8 << 20

// DeviceColumns uploads the tiles of a mosaic, its chunk columns, to a device, a few planes at a time in
// increasing z.
type DeviceColumns struct {
	*zarrgpu.Reader
	mosaic  *oct.Mosaic
	res     *oct.Resources
	count   *meter.Meter
	Depth   int   // number of planes wanted, from the first
	Rows    int   // rows of a tile uploaded at a time
	Planes  int   // of a region
	Slots   int   // of a worker; set by Workers
	Scratch int64 // host memory of a worker's decoders
}

// NewDeviceColumns plans the reading of a mosaic. Reading is counted in the meter count.
func NewDeviceColumns(m *oct.Mosaic, res *oct.Resources, count *meter.Meter) (*DeviceColumns, error) {
	a := m.Image.Levels[0].Array
	r, err := res.Reader(a, count)
	if err != nil {
		return nil, err
	}
	c := &DeviceColumns{Reader: r, mosaic: m, res: res, count: count, Depth: m.Shape[0], Rows: m.Chunk[1], Planes: m.Chunk[0], Slots: MostSlots}
	plane := int(r.Bytes([]int{1, m.Chunk[1], m.Chunk[2]}))
	if len(a.Codecs()) == 0 && a.Order() == 'C' {
		c.Planes = min(c.Planes, max(1, DevicePiece/plane))
	} else {
		c.Planes *= min(max(1, DevicePiece/(plane*c.Planes)), (m.Shape[0]-1)/c.Planes+1)
	}
	c.Scratch = r.Scratch()
	return c, nil
}

// SlotShape returns the shape of the largest region of a tile.
func (c *DeviceColumns) SlotShape() []int {
	return c.SlotOf(c.Depth)
}

// SlotOf returns the shape of the largest region if at most the given number of planes is wanted.
func (c *DeviceColumns) SlotOf(planes int) []int {
	return c.mosaic.BoxShape(min(c.Planes, c.Depth, planes), c.Rows, c.mosaic.Chunk[2])
}

// Regions returns the regions of the tile at (y, x) with ny × nx voxels.
func (c *DeviceColumns) Regions(y, ny, x, nx int) []zarr.Region {
	return c.PlanesOf(0, c.Depth, y, ny, x, nx)
}

// PlanesOf returns the regions of planes z0 … z1−1 of the tile at (y, x) with ny × nx voxels.
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

// Needs describes the memory, in bytes, that a worker on a device needs in addition to its slots.
type Needs struct {
	What      string // the work, for messages
	Mem       int64  // host memory of all workers
	Host      int64  // of it, for each
	Pinned    int64  // page-locked memory
	Device    int64
	Shared    int64 // device memory that all workers share
	Place     int64 // page-locked memory for each slot
	PlaceHost int64 // host memory for each slot
	Leaving   int64 // device memory for each slot to encode output in; without it, the host encodes
	Leaves    int64 // page-locked memory for each slot through which output leaves the device
	Elements  int64 // the same if it leaves as elements, for the host to encode
}

// Workers returns how many workers the host, page-locked and device memory hold, and sets Slots. If they do not hold as
// many as there may be, a worker gets a slot less, and another if not even one has room. If there is room for no slot,
// the host encodes output and decodes chunks, which takes less of the device. The error is [gpu.ErrMemory].
func (c *DeviceColumns) Workers(n Needs) (int, error) {
	d := c.res.Device
	for {
		pinned, onDevice := c.Memory(c.SlotShape())
		host := n.Host + c.Decoding(n.Host+n.PlaceHost, n.Mem)
		locked, limit := PinnedFor(d), d.Memory().Limit()-n.Shared
		need := func() [3]int64 { // of a worker
			k := int64(c.Slots)
			return [3]int64{max(1, host+k*n.PlaceHost), n.Pinned + k*(pinned+n.Place+n.Leaves), n.Device + k*(onDevice+n.Leaving)}
		}
		fits := func() int64 {
			of := need()
			return min(int64(c.res.Workers), n.Mem/of[0], locked/of[1], limit/of[2])
		}
		for c.Slots = MostSlots; c.Slots > 1 && fits() < int64(c.res.Workers) && (c.Slots > SlotsInTurn || fits() < 1); {
			c.Slots--
		}
		if workers := fits(); workers > 0 {
			return int(workers), nil
		}
		switch of := need(); {
		case of[2] > limit && n.Leaving > 0, of[1] > locked && n.Leaves > n.Elements:
			n.Leaving, n.Leaves = 0, n.Elements
		case (of[1] > locked || of[2] > limit && n.Device <= limit) && c.ByHost():
		case of[2] > limit:
			return 0, NoDeviceMemory(d, of[2]+n.Shared, c.mosaic.Where+": "+n.What)
		case of[1] > locked:
			return 0, NoPinnedMemory(d, of[1], c.mosaic.Where+": "+n.What)
		default:
			return 0, NoHostMemory(c.res, of[0]+c.res.Mem-n.Mem, c.mosaic.Where+": "+n.What)
		}
	}
}

// Decoding returns Scratch for a worker that also needs the given bytes of host memory. If hostMem is too small
// for both, the worker does not try to decode on the host.
func (c *DeviceColumns) Decoding(besides, hostMem int64) int64 {
	if besides+c.Scratch > hostMem {
		c.Untried()
		c.Scratch = c.Reader.Scratch()
	}
	return c.Scratch
}

// ByHost switches to decoding chunks on the host, which takes no device memory. It returns false if they already
// are, or if the user chose another backend.
func (c *DeviceColumns) ByHost() bool {
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

// Less reduces the device memory of a tile and reports whether that was possible. First it switches to decoding on
// the host, unless the user chose another backend; then it reduces the rows on the device to the next smaller
// divisor of the tile's, at most half as many.
func (c *DeviceColumns) Less() bool {
	if c.ByHost() {
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

// Piece returns the device memory for Rows rows of a tile in their full depth.
func (c *DeviceColumns) Piece() int64 {
	return c.Bytes([]int{c.Depth, c.Rows, c.mosaic.Chunk[2]})
}

// Pieces describes the part of a tile that is on the device at a time, for messages.
func (c *DeviceColumns) Pieces() string {
	text := fmt.Sprintf("tiles of %v voxels", c.mosaic.Tile())
	if c.Rows < c.mosaic.Chunk[1] {
		text += fmt.Sprintf(" in pieces of %v", []int{c.Depth, c.Rows, c.mosaic.Chunk[2]})
	}
	return text
}
