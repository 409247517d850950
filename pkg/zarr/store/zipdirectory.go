package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/mem"
)

// Sizes and signatures of APPNOTE 4.3: local header (4.3.7), central directory
// header (4.3.12), its end (4.3.16), the zip64 end (4.3.14) and locator (4.3.15).
const (
	localHeaderSize  = 30
	localHeaderMagic = 0x04034b50
	entrySize        = 46
	entryMagic       = 0x02014b50
	endSize          = 22
	endMagic         = 0x06054b50
	end64Size        = 56
	end64Magic       = 0x06064b50
	locatorSize      = 20
	locatorMagic     = 0x07064b50
	maxComment       = 1<<16 - 1
	maxEntry         = entrySize + 3*maxComment // with name, extra fields and comment

	zip64Extra = 1 // id of the extra field with 64-bit sizes (4.5.3)
)

// directoryPiece is the amount of a directory that is read at a time; an entry is shorter.
const directoryPiece = 1 << 20

// memberBytes and folderBytes estimate the memory of a member, without its name, and of a folder.
const (
	memberBytes = 160
	folderBytes = 320
)

// directoryBytes returns the memory limit for the members of a directory.
func directoryBytes() int64 {
	if n := mem.Limit(); n > 0 {
		return max(n/2, 64<<20)
	}
	return 2 << 30
}

var (
	le16 = binary.LittleEndian.Uint16
	le32 = binary.LittleEndian.Uint32
	le64 = binary.LittleEndian.Uint64
)

var errNoZip = errors.New("not a zip file: it has no end-of-directory record")

// readDirectory fills the tree.
func (s *ZipStore) readDirectory(ctx context.Context) error {
	d, err := findDirectory(ctx, s.file)
	if err != nil {
		return err
	}
	var b []byte // read and not parsed
	piece := make([]byte, min(d.size, directoryPiece))
	at, left, room := d.base+d.offset, d.size, directoryBytes()
	for n := range d.entries {
		if len(b) < maxEntry && left > 0 {
			k := copy(piece, b)
			b = piece[:min(int64(len(piece)), int64(k)+left)]
			if err := readFull(ctx, s.file, b[k:], at); err != nil {
				return err
			}
			at, left = at+int64(len(b)-k), left-int64(len(b)-k)
		}
		name, m, rest, err := parseEntry(b)
		if err != nil {
			return fmt.Errorf("damaged zip directory: member %d of %d: %w", n, d.entries, err)
		}
		b = rest
		m.header += d.base
		if m.header > s.file.Size()-localHeaderSize {
			return fmt.Errorf("damaged zip directory: member %q starts at byte %d of %d", name, m.header, s.file.Size())
		}
		if room -= int64(len(name)) + memberBytes + folderBytes*int64(max(s.tree.missing(name)-1, 0)); room < 0 {
			return fmt.Errorf("the zip directory has %d members: %w of %d bytes", d.entries, mem.ErrBudget, directoryBytes())
		}
		if err := s.add(name, m); err != nil {
			return fmt.Errorf("zip member %q: %w", name, err)
		}
		if m.method == zipDeflated {
			s.inflates = max(s.inflates, m.size)
		}
	}
	return nil
}

// add puts a member into the tree. Of members with the same name the last one counts, as for other readers:
// members are replaced by appending.
func (s *ZipStore) add(name string, m *member) error {
	key := strings.TrimPrefix(name, "./")
	folder := strings.HasSuffix(key, "/")
	key = strings.TrimSuffix(key, "/")
	if key == "" && folder || name == "./" {
		return nil
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if folder {
		_, err := s.tree.folder(key)
		return err
	}
	return s.tree.put(key, m)
}

// directory locates the central directory.
type directory struct {
	entries      uint64
	size, offset int64
	base         int64 // bytes that somebody put in front of the zip file
}

func findDirectory(ctx context.Context, file Object) (d directory, err error) {
	size := file.Size()
	tail := make([]byte, min(size, endSize+maxComment+locatorSize))
	at := size - int64(len(tail)) // offset of tail
	if err := readFull(ctx, file, tail, at); err != nil {
		return d, err
	}
	i := len(tail) - endSize
	for ; i >= 0; i-- {
		if le32(tail[i:]) == endMagic && i+endSize+int(le16(tail[i+20:])) <= len(tail) {
			break
		}
	}
	if i < 0 {
		return d, errNoZip
	}
	end := tail[i:]
	disk, disks := le16(end[4:]), le16(end[6:])
	d = directory{entries: uint64(le16(end[10:])), size: int64(le32(end[12:])), offset: int64(le32(end[16:]))}
	stop := at + int64(i) // where the directory ends
	if l := i - locatorSize; l >= 0 && le32(tail[l:]) == locatorMagic {
		pos := le64(tail[l+8:])
		if pos > uint64(stop) {
			return d, fmt.Errorf("damaged zip file: its zip64 record is said to be at byte %d of %d", pos, size)
		}
		var r [end64Size]byte
		if err := readFull(ctx, file, r[:], int64(pos)); err != nil {
			return d, err
		}
		if le32(r[:]) != end64Magic {
			return d, fmt.Errorf("damaged zip file: no zip64 record at byte %d", pos)
		}
		disk, disks = uint16(min(le32(r[16:]), 1)), uint16(min(le32(r[20:]), 1))
		entries, bytes, off := le64(r[32:]), le64(r[40:]), le64(r[48:])
		stop = int64(pos)
		if bytes > uint64(stop) || off > uint64(stop) {
			return d, fmt.Errorf("damaged zip file: a directory of %d bytes at byte %d, in %d bytes", bytes, off, size)
		}
		d = directory{entries: entries, size: int64(bytes), offset: int64(off)}
	}
	d.base = stop - d.size - d.offset
	switch {
	case disk != 0 || disks != 0:
		return d, errors.New("zip files in several parts are not supported")
	case d.base < 0:
		return d, fmt.Errorf("damaged zip file: a directory of %d bytes at byte %d, in %d bytes", d.size, d.offset, size)
	case d.entries > uint64(d.size/entrySize):
		return d, fmt.Errorf("damaged zip file: %d members in a directory of %d bytes", d.entries, d.size)
	}
	return d, nil
}

// parseEntry reads one central directory header and returns the bytes that follow it.
func parseEntry(b []byte) (name string, m *member, rest []byte, err error) {
	if len(b) < entrySize || le32(b) != entryMagic {
		return "", nil, nil, errors.New("no directory entry where one should start")
	}
	nameLen, extraLen, commentLen := int(le16(b[28:])), int(le16(b[30:])), int(le16(b[32:]))
	if len(b) < entrySize+nameLen+extraLen+commentLen {
		return "", nil, nil, errors.New("cut short")
	}
	name = string(b[entrySize : entrySize+nameLen])
	extra := b[entrySize+nameLen : entrySize+nameLen+extraLen]
	rest = b[entrySize+nameLen+extraLen+commentLen:]

	const unix, typeMask, symlink = 3, 0xf000, 0xa000
	mode := le32(b[38:]) >> 16
	m = &member{
		method:    le16(b[10:]),
		crc:       le32(b[16:]),
		encrypted: le16(b[8:])&1 != 0,
		link:      b[5] == unix && mode&typeMask == symlink,
	}
	sizes := [3]uint64{uint64(le32(b[24:])), uint64(le32(b[20:])), uint64(le32(b[42:]))} // in the order of the zip64 field
	for len(extra) >= 4 {
		id, n := le16(extra), int(le16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			break // other programs pad here, too
		}
		if field := extra[:n]; id == zip64Extra {
			for i, v := range sizes {
				if v != 1<<32-1 {
					continue
				}
				if len(field) < 8 {
					return "", nil, nil, fmt.Errorf("%q: zip64 field cut short", name)
				}
				sizes[i], field = le64(field), field[8:]
			}
		}
		extra = extra[n:]
	}
	for _, v := range sizes {
		if v > 1<<62 {
			return "", nil, nil, fmt.Errorf("%q: impossible size or offset %d", name, v)
		}
	}
	m.size, m.packed, m.header = int64(sizes[0]), int64(sizes[1]), int64(sizes[2])
	return name, m, rest, nil
}
