package squashfs

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// Entry is a file, folder or link of an image.
type Entry struct {
	Path    string      // from the root, without a slash in front; "" is the root
	Mode    fs.FileMode // type and permissions
	Size    int64       // of a file, bytes
	ModTime time.Time
	UID     uint32
	GID     uint32
	Target  string // of a symbolic link
	Inode   uint32 // entries with the same number are one file
	Links   uint32 // how many there are

	blocks     int64    // of a file: place of the first block,
	sizes      []uint32 // their packed sizes,
	fragment   uint32   // the fragment block with the rest, or noFragment,
	fragOffset uint32   // and where in it

	listing       int64 // of a folder: place of the block with its listing,
	listingOffset int   // where in it,
	listingSize   int64 // and how long it is
}

const (
	noFragment  = ^uint32(0)
	maxTarget   = 1 << 16
	maxListing  = 1 << 24 // bytes of a folder's names; a file of maxBlocks has half a TiB
	maxBlocks   = 1 << 22
	stored      = 1 << 24 // of a data block's size: it is not packed
	extendedDir = 8
)

// Types of inodes; extended ones are 7 higher.
var types = map[uint64]fs.FileMode{1: fs.ModeDir, 2: 0, 3: fs.ModeSymlink, 4: fs.ModeDevice, 5: fs.ModeDevice | fs.ModeCharDevice,
	6: fs.ModeNamedPipe, 7: fs.ModeSocket}

// inode reads the inode that a reference names.
func (s *Reader) inode(ref uint64, path string) (*Entry, error) {
	c := &cursor{s, int64(s.super.InodeTable + ref>>16), int(ref & 0xffff)}
	head, err := c.numbers(2, 2, 2, 2, 4, 4)
	if err != nil {
		return nil, err
	}
	kind := head[0]
	basic := kind
	if kind >= extendedDir {
		basic -= 7
	}
	mode, ok := types[basic]
	if !ok {
		return nil, bad("%s: inode of type %d", path, kind)
	}
	e := &Entry{Path: path, Mode: mode | permissions(head[1]), ModTime: time.Unix(int64(head[4]), 0), Inode: uint32(head[5]), Links: 1}
	if e.UID, err = s.id(int(head[2])); err != nil {
		return nil, err
	}
	if e.GID, err = s.id(int(head[3])); err != nil {
		return nil, err
	}
	switch kind {
	case 1:
		err = e.dir(c, 4, 4, 2, 2, 4)
	case extendedDir:
		err = e.dir(c, 4, 4, 4, 4, 2, 2)
	case 2:
		err = s.file(e, c, 4, 4, 4, 4)
	case 9:
		err = s.file(e, c, 8, 8, 8, 4, 4, 4, 4)
	case 3, 10:
		err = e.link(c)
	default: // devices, pipes and sockets: links, device
		_, err = c.number(4)
	}
	return e, err
}

func permissions(mode uint64) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	if mode&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if mode&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if mode&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

func (s *Reader) id(index int) (uint32, error) {
	if index >= int(s.super.IDs) {
		return 0, bad("owner %d of %d", index, s.super.IDs)
	}
	b, err := s.element(s.super.IDTable, index, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (e *Entry) dir(c *cursor, sizes ...int) error {
	v, err := c.numbers(sizes...)
	if err != nil {
		return err
	}
	if len(sizes) == 6 { // links, size, place, parent, index entries, offset
		v = []uint64{v[2], v[0], v[1], v[5]}
	}
	e.listing, e.listingSize, e.listingOffset = int64(v[0]), int64(v[2])-3, int(v[3])
	if e.listingSize > maxListing {
		return bad("%s: a listing of %d bytes", e.Path, e.listingSize)
	}
	return nil
}

func (s *Reader) file(e *Entry, c *cursor, sizes ...int) error {
	v, err := c.numbers(sizes...)
	if err != nil {
		return err
	}
	if len(sizes) == 7 { // place, size, holes, links, fragment, offset, attributes
		e.Links = uint32(v[3])
		v = []uint64{v[0], v[4], v[5], v[1]}
	}
	e.blocks, e.fragment, e.fragOffset, e.Size = int64(v[0]), uint32(v[1]), uint32(v[2]), int64(v[3])
	size := int64(s.super.BlockSize)
	n := e.Size / size
	if e.fragment == noFragment && e.Size%size != 0 {
		n++
	}
	// A block that is a hole costs 4 bytes here, and those compress well.
	if e.Size < 0 || n*4 > int64(s.super.BytesUsed)*1024 || n > maxBlocks {
		return bad("%s: a file of %d bytes", e.Path, e.Size)
	}
	var list []byte
	for left := n * 4; left > 0; { // grows with what is really there
		part := make([]byte, min(left, metaSize))
		if err := c.read(part); err != nil {
			return err
		}
		list = append(list, part...)
		left -= int64(len(part))
	}
	e.sizes = make([]uint32, n)
	for i := range e.sizes {
		e.sizes[i] = binary.LittleEndian.Uint32(list[4*i:])
	}
	return nil
}

func (e *Entry) link(c *cursor) error {
	v, err := c.numbers(4, 4)
	if err != nil {
		return err
	}
	if v[1] == 0 || v[1] > maxTarget {
		return bad("%s: a link's target of %d bytes", e.Path, v[1])
	}
	target := make([]byte, v[1])
	err = c.read(target)
	e.Target = string(target)
	return err
}
