package provenance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/pattern"
	"strata/pkg/runrecord"
)

// Limits of reading records. The records of thousands of slices are far below them.
const (
	mostRecords     = 50_000
	mostRecordBytes = 4 << 20   // of one
	mostBytes       = 512 << 20 // of all
)

// entry is a record and where it was found.
type entry struct {
	file  string
	bases []string // folders that its relative paths may begin in, the likeliest first
	rec   *runrecord.Record
}

// output is one output of a record.
type output struct {
	*entry
	runrecord.Dataset
}

// library holds the records that were found, by the names of their outputs.
type library struct {
	byName  map[string][]output
	read    map[string]bool // files and folders
	records int
	bytes   int64
	notes   []string
}

func newLibrary() *library {
	return &library{byName: map[string][]output{}, read: map[string]bool{}}
}

// recordFolder is the folder in which the workflow keeps the records of a run.
const recordFolder = "reports"

// near reads the records near a file: beside it, in the folder above, and in folders "reports" up to three levels up.
func (l *library) near(ctx context.Context, place string) error {
	if isRemote(place) {
		return errors.Join(l.folder(ctx, "."), l.folder(ctx, recordFolder))
	}
	dir := filepath.Dir(place)
	for level := range 3 {
		if level < 2 {
			if err := l.folder(ctx, dir); err != nil {
				return err
			}
		}
		if err := l.folder(ctx, filepath.Join(dir, recordFolder)); err != nil {
			return err
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// named reads the records that the user names, as files or folders.
func (l *library) named(ctx context.Context, paths []string) error {
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			if err := l.folder(ctx, p); err != nil {
				return err
			}
			if err := l.folder(ctx, filepath.Join(p, recordFolder)); err != nil {
				return err
			}
		default:
			if _, err := runrecord.Read(ctx, p); err != nil {
				return err
			}
			if err := l.file(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// folder reads the records in a folder. It skips files that cannot be read or are no records.
func (l *library) folder(ctx context.Context, dir string) error {
	dir = identity(dir)
	if l.read[dir] {
		return nil
	}
	l.read[dir] = true
	f, err := os.Open(dir)
	if err != nil {
		return nil // there is none, or it is closed to this user
	}
	defer f.Close()
	names, _ := f.Readdirnames(4 * mostRecords) // those that come before an error
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			if err := l.file(ctx, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// file reads a record, once.
func (l *library) file(ctx context.Context, path string) error {
	path = identity(path)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || l.read[path] {
		return ctx.Err()
	}
	l.read[path] = true
	if info.Size() > mostRecordBytes || !isRecord(path) {
		return nil
	}
	if l.records >= mostRecords || l.bytes+info.Size() > mostBytes {
		l.note(fmt.Sprintf("%s: not read: there are more records than %d, or %d MiB of them: name fewer with --records", path, mostRecords, mostBytes>>20))
		return nil
	}
	l.bytes += info.Size()
	rec, err := runrecord.Read(ctx, path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			l.note(path + ": no permission to read it")
		}
		return ctx.Err() // another JSON document
	}
	l.records++
	l.add(path, rec)
	return nil
}

// beginning matches how records begin, whoever indents them.
var beginning = pattern.Lazy(`^\s*\{\s*"tool"\s*:`)

// isRecord reports whether a file begins like a record: a folder may hold any number of other JSON documents.
func isRecord(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return errors.Is(err, fs.ErrPermission) // reading it says so
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := io.ReadFull(f, head) // of a shorter file all
	return beginning().Match(head[:n])
}

// mostNotes is the maximum number of notes about records.
const mostNotes = 20

func (l *library) note(text string) {
	if len(l.notes) < mostNotes {
		l.notes = append(l.notes, text)
	}
}

// add puts a record into the library, unless its run failed and thus wrote nothing.
func (l *library) add(path string, rec *runrecord.Record) {
	if rec.ExitCode != 0 {
		return
	}
	e := &entry{file: path, rec: rec}
	if filepath.IsAbs(rec.Folder) {
		e.bases = append(e.bases, filepath.Clean(rec.Folder))
	}
	// Results may have been moved since, or published, with the folder of the records.
	for _, base := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path)), "."} {
		if abs, err := filepath.Abs(base); err == nil && !slices.Contains(e.bases, abs) {
			e.bases = append(e.bases, abs)
		}
	}
	outputs := slices.Clone(rec.Outputs)
	for _, f := range rec.Files {
		outputs = append(outputs, runrecord.Dataset{Path: address.Address(f.Path), Bytes: -1})
	}
	for _, d := range outputs {
		name := nameOf(d.Path.Reveal())
		l.byName[name] = append(l.byName[name], output{e, d})
	}
}

// ended returns when a run had ended.
func (e *entry) ended() time.Time {
	seconds := min(max(e.rec.WallSeconds, 0), 1e9)
	return e.rec.Started.Add(time.Duration(seconds * float64(time.Second)))
}

// places returns where a path of the record may lie, the likeliest first.
func (e *entry) places(path string) []string {
	if isRemote(path) {
		_, query, asked := strings.Cut(path, "?")
		if path = plain(path); asked {
			path += "?" + query
		}
		return []string{path}
	}
	if path = plain(path); filepath.IsAbs(path) {
		return []string{path}
	}
	var out []string
	for _, base := range e.bases {
		out = append(out, filepath.Join(base, path))
	}
	return out
}
