package store

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// zipMixed deflates every second member and stores the others.
func zipMixed(i int) uint16 { return []uint16{zip.Store, zip.Deflate}[i%2] }

func zipBytes(t testing.TB, members map[string][]byte, method func(i int) uint16) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i, name := range slices.Sorted(maps.Keys(members)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method(i)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(members[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SetComment("PK\x05\x06 is not the end of this file"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func writeZip(t testing.TB, members map[string][]byte, method func(i int) uint16) string {
	return writeFile(t, "x.zip", zipBytes(t, members, method))
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipOf(data []byte) (*ZipStore, error) {
	return openZip(bg, &memoryObject{data: data, where: "memory"}, "x.zip")
}

func stored(int) uint16 { return zip.Store }

// TestGoldenZips reads zip files that another program wrote.
func TestGoldenZips(t *testing.T) {
	files, err := filepath.Glob("../../../tests/golden/inputs/m_*.zip")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden zip files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			st, key, err := OpenURL(bg, file)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if want := strings.TrimSuffix(filepath.Base(file), ".zip") + ".ome.zarr"; key != want {
				t.Errorf("key %q, want %q", key, want)
			}
			sameAsArchiveZip(t, file, st)
		})
	}
}

func sameAsArchiveZip(t *testing.T, file string, st Store) {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		c, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		got, err := st.Get(bg, f.Name, nil, -1)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", f.Name, len(got), err, len(want))
		}
	}
}

func TestZipWithBytesInFront(t *testing.T) {
	data := append([]byte("#!/bin/sh\nexit 1\n"), zipBytes(t, objects(), zipMixed)...)
	z, err := zipOf(data)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range objects() {
		if got, err := z.Get(bg, key, nil, -1); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %d bytes, %v", key, len(got), err)
		}
	}
}

func TestZipFolderEntriesAndDuplicates(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, m := range [][2]string{{"./", ""}, {"a/", ""}, {"a/b", "old"}, {"./c/d", "x"}, {"a/b", "new"}, {"e/f/", ""}} {
		f, err := w.Create(m[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zipOf(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := z.Get(bg, "a/b", nil, -1); string(b) != "new" || err != nil {
		t.Errorf("%q, %v: want the member that was appended last", b, err)
	}
	if b, err := z.Get(bg, "c/d", nil, -1); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	got, err := z.List(bg, "")
	if want := []Entry{{"a", true, 0, false}, {"c", true, 0, false}, {"e", true, 0, false}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := z.List(bg, "e/f"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// zip64Bytes writes, by the specification, a zip file whose sizes and offsets
// stand in zip64 fields only.
func zip64Bytes(name string, data []byte) []byte {
	le := binary.LittleEndian
	sum := crc32.ChecksumIEEE(data)
	local := append([]byte("PK\x03\x04"), make([]byte, 26)...)
	le.PutUint16(local[4:], 45)
	le.PutUint32(local[14:], sum)
	le.PutUint32(local[18:], 1<<32-1)
	le.PutUint32(local[22:], 1<<32-1)
	le.PutUint16(local[26:], uint16(len(name)))
	le.PutUint16(local[28:], 20)
	b := append(local, name...)
	field := func(values ...uint64) []byte {
		f := le.AppendUint16(nil, 1)
		f = le.AppendUint16(f, uint16(8*len(values)))
		for _, v := range values {
			f = le.AppendUint64(f, v)
		}
		return f
	}
	n := uint64(len(data))
	b = append(b, field(n, n)...)
	b = append(b, data...)

	dir := uint64(len(b))
	entry := append([]byte("PK\x01\x02"), make([]byte, 42)...)
	le.PutUint16(entry[6:], 45)
	le.PutUint32(entry[16:], sum)
	le.PutUint32(entry[20:], 1<<32-1)
	le.PutUint32(entry[24:], 1<<32-1)
	le.PutUint32(entry[42:], 1<<32-1)
	extra := append(le.AppendUint32(nil, 0x00040bad), "abcd"...) // a field that nobody knows
	extra = append(extra, field(n, n, 0)...)
	le.PutUint16(entry[28:], uint16(len(name)))
	le.PutUint16(entry[30:], uint16(len(extra)))
	b = append(append(append(b, entry...), name...), extra...)

	end64 := uint64(len(b))
	r := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	le.PutUint64(r[4:], 44)
	le.PutUint64(r[24:], 1)
	le.PutUint64(r[32:], 1)
	le.PutUint64(r[40:], end64-dir)
	le.PutUint64(r[48:], dir)
	b = append(b, r...)
	l := append([]byte("PK\x06\x07"), make([]byte, 16)...)
	le.PutUint64(l[8:], end64)
	le.PutUint32(l[16:], 1)
	b = append(b, l...)
	return append(append(b, "PK\x05\x06\x00\x00\x00\x00"...), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
}

func TestZip64(t *testing.T) {
	data := zip64Bytes("a/b", []byte("content"))
	if r, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil || len(r.File) != 1 {
		t.Fatal("the test's zip64 file is wrong:", err)
	}
	z, err := zipOf(data)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := z.Get(bg, "a/b", nil, -1); string(b) != "content" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestStoredMembersAreFiles(t *testing.T) {
	z, err := Zip(writeZip(t, map[string][]byte{"a": []byte("0123456789")}, stored))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	o, err := z.Open(bg, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	fd, off := o.(FileObject).File()
	p := make([]byte, 4)
	if n, err := syscall.Pread(int(fd), p, off+3); n != 4 || err != nil || string(p) != "3456" {
		t.Errorf("%q, %v", p[:n], err)
	}
}

func TestDamagedZips(t *testing.T) {
	good := zipBytes(t, map[string][]byte{"a/b": content("x", 500), "c": []byte("text that is deflated, deflated, deflated")}, zipMixed)
	le := binary.LittleEndian
	edit := func(f func(b []byte)) []byte {
		b := slices.Clone(good)
		f(b)
		return b
	}
	end := bytes.LastIndex(good[:len(good)-40], []byte("PK\x05\x06"))
	if end < 0 {
		t.Fatal("no end record")
	}
	dir := int(le.Uint32(good[end+16:]))
	second := dir + bytes.Index(good[dir+4:], []byte("PK\x01\x02")) + 4
	named := func(name string) []byte {
		return zipBytes(t, map[string][]byte{name: []byte("x")}, stored)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "not a zip file"},
		"not a zip file":   {bytes.Repeat([]byte("x"), 1000), "not a zip file"},
		"cut":              {good[:len(good)/2], "not a zip file"},
		"front cut":        {good[100:], "in "},
		"no entries":       {edit(func(b []byte) { b[dir] = 'x' }), "member 0 of 2"},
		"too many entries": {edit(func(b []byte) { le.PutUint16(b[end+10:], 60000) }), "60000 members"},
		"three entries":    {edit(func(b []byte) { le.PutUint16(b[end+10:], 3) }), "3 members"},
		"one entry short":  {edit(func(b []byte) { le.PutUint32(b[end+12:], uint32(end-second)); le.PutUint32(b[end+16:], uint32(second)) }), "2 members"},
		"long name":        {edit(func(b []byte) { le.PutUint16(b[second+28:], 60000) }), "member 1 of 2: cut short"},
		"several parts":    {edit(func(b []byte) { b[end+4] = 1 }), "several parts"},
		"header offset":    {edit(func(b []byte) { le.PutUint32(b[dir+42:], 1<<31) }), "starts at byte"},
		"parent":           {named("../x"), "invalid key"},
		"absolute":         {named("/x"), "invalid key"},
		"inner parent":     {named("a/../../x"), "invalid key"},
		"file and folder":  {zipBytes(t, map[string][]byte{"a": nil, "a/b": nil}, stored), "not a directory"},
		"zip64 beyond":     {edit64(func(b []byte, l int) { le.PutUint64(b[l+8:], 1<<60) }), "zip64 record"},
		"zip64 elsewhere":  {edit64(func(b []byte, l int) { le.PutUint64(b[l+8:], 3) }), "no zip64 record at byte 3"},
		"zip64 size":       {edit64(func(b []byte, l int) { le.PutUint64(b[l-16:], 1<<63) }), "directory of"},
		"zip64 field":      {edit64(func(b []byte, l int) { le.PutUint16(b[l-56-28+2:], 4) }), "zip64 field cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := zipOf(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x.zip: ") {
				t.Errorf("%v, want the file and %q", err, c.want)
			}
		})
	}

	for name, c := range map[string]struct {
		data []byte
		key  string
		want string
	}{
		"stored bytes":   {edit(func(b []byte) { b[100] ^= 1 }), "a/b", "checksum"},
		"deflated bytes": {edit(func(b []byte) { copy(b[bytes.Index(b, []byte("PK\x07\x08"))+60:], "\xff\xff\xff") }), "c", "x.zip/c: "},
		"local header":   {edit(func(b []byte) { b[0] = 'x' }), "a/b", "no member starts at byte 0"},
		"method":         {edit(func(b []byte) { b[dir+10] = 12 }), "a/b", "method 12"},
		"encrypted":      {edit(func(b []byte) { b[dir+8] |= 1 }), "a/b", "encrypted"},
		"link":           {edit(func(b []byte) { b[dir+5] = 3; le.PutUint32(b[dir+38:], 0xa1ff0000) }), "a/b", "symbolic link"},
		"stored sizes":   {edit(func(b []byte) { le.PutUint32(b[dir+24:], 501) }), "a/b", "takes 500"},
		"bomb":           {edit(func(b []byte) { le.PutUint32(b[second+24:], 1<<31) }), "c", "cannot hold"},
		"too short":      {edit(func(b []byte) { le.PutUint32(b[second+24:], 42) }), "c", "inflates to 41 bytes"},
		"too long":       {edit(func(b []byte) { le.PutUint32(b[second+24:], 40) }), "c", "damaged member"},
		"beyond the end": {edit(func(b []byte) { le.PutUint32(b[dir+20:], 1<<30); le.PutUint32(b[dir+24:], 1<<30) }), "a/b", "beyond its end"},
	} {
		t.Run(name, func(t *testing.T) {
			z, err := zipOf(c.data)
			if err != nil {
				t.Fatal(err)
			}
			_, err = z.Get(bg, c.key, nil, -1)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.zip/"+c.key) {
				t.Errorf("Get: %v, want %q", err, c.want)
			}
			o, err := z.Open(bg, c.key)
			if err == nil && name != "stored bytes" { // parts have no checksum
				_, err = o.ReadAt(bg, make([]byte, 1), 0)
			}
			if err == nil && name != "stored bytes" {
				t.Error("Open and ReadAt found nothing wrong")
			}
		})
	}
}

// edit64 gives f a zip64 file and the offset of its locator.
func edit64(f func(b []byte, locator int)) []byte {
	b := zip64Bytes("a/b", []byte("content"))
	f(b, len(b)-endSize-locatorSize)
	return b
}

func TestZipMissing(t *testing.T) {
	if _, err := Zip(filepath.Join(t.TempDir(), "none.zip")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Zip(t.TempDir()); !errors.Is(err, syscall.EISDIR) {
		t.Error(err)
	}
	if _, err := ZipFrom(bg, Memory(), "none.zip"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzZip: a damaged zip file gives errors, never a panic or a wild allocation,
// and what is read without one has the checksum that archive/zip finds right.
func FuzzZip(f *testing.F) {
	f.Add(zipBytes(f, map[string][]byte{"a/b": content("x", 500), "c": []byte("deflated, deflated, deflated")}, zipMixed))
	f.Add(zip64Bytes("a/b", []byte("content")))
	if b, err := os.ReadFile("../../../tests/golden/inputs/m_u16_v3shard.zip"); err == nil && len(b) < 1<<20 {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := zipOf(data)
		if err != nil {
			return
		}
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		theirs := map[string]*zip.File{}
		for _, f := range r.File {
			theirs[f.Name] = f
		}
		for name, f := range theirs {
			got, err := z.Get(bg, name, nil, 1<<20)
			if err != nil {
				continue
			}
			c, err := f.Open()
			if err != nil {
				continue
			}
			want, err := io.ReadAll(io.LimitReader(c, 1<<20+1))
			if err == nil && !bytes.Equal(got, want) {
				t.Error(fmt.Errorf("%q: %d bytes, archive/zip reads %d", name, len(got), len(want)))
			}
		}
	})
}
