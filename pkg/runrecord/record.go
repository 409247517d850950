// Package runrecord defines the run record: the JSON file that every binary writes with --report, even if the
// run fails.
//
// Other programs read it with [Read] or by the field names below. Fields are never renamed or removed, only
// added. Times are in seconds, sizes in bytes, shapes in the order of the array's axes.
package runrecord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/host"
	"strata/pkg/meter"
	"strata/pkg/smallfile"
	"strata/pkg/zarr/store"
)

// Record describes one run.
type Record struct {
	Tool      string            `json:"tool"`                // the binary's name
	CalledAs  string            `json:"called_as,omitempty"` // another name that it was started by
	Command   string            `json:"command,omitempty"`   // sub-command, if any
	Version   string            `json:"version"`
	Commit    string            `json:"commit"` // version control revision, "+dirty" when changed; empty if unknown
	Arguments []address.Address `json:"arguments"`
	Started   time.Time         `json:"started"`
	Folder    string            `json:"folder,omitempty"` // in which the run was started: relative paths begin there
	Settings  []Setting         `json:"settings"`         // flags that differ from their defaults and change what is computed; null: not noted
	Batch     *Batch            `json:"batch,omitempty"`  // which pair of --batch the record is of

	Host     string      `json:"host"`
	Platform string      `json:"platform"` // "linux/amd64"
	CPUModel string      `json:"cpu_model"`
	Cgroup   host.Limits `json:"cgroup_limits"`
	GPU      *GPU        `json:"gpu"`    // null: none was used
	Choice   *Choice     `json:"choice"` // null: no choice was needed, since the command line decides or there is no GPU

	Threads int   `json:"threads"`    // workers of this run
	Mem     int64 `json:"mem_budget"` // ceiling for buffers

	Workers   int   `json:"workers,omitempty"`           // most that were busy at a time: that computed, or helped those
	MemForAll int64 `json:"mem_for_all_cores,omitempty"` // ceiling that would let as many compute as have work; absent if they did

	Inputs  []Dataset `json:"inputs"`
	Outputs []Dataset `json:"outputs"`
	Files   []File    `json:"files,omitempty"` // further files that were written

	Phases            Phases  `json:"phases"`
	WallSeconds       float64 `json:"wall_seconds"`
	PeakResidentBytes int64   `json:"peak_resident_bytes"`
	PeakDeviceBytes   int64   `json:"peak_device_bytes"`
	BytesRead         int64   `json:"bytes_read"`     // from storage, as stored
	BytesWritten      int64   `json:"bytes_written"`  // to storage, as stored
	NonFinite         int64   `json:"non_finite"`     // NaN and infinite voxels of the input
	MissingChunks     int64   `json:"missing_chunks"` // chunks of inputs that were read and are not stored: they have the fill value

	Found map[string]any `json:"found,omitempty"` // what the program measured, by names that docs/stages/ explains

	Warnings []string  `json:"warnings"`
	Fallback *Fallback `json:"fallback"` // null: none was taken
	Error    string    `json:"error,omitempty"`
	ExitCode int       `json:"exit_code"`
}

// Setting is a flag whose value is not the program's default.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`          // as typed, of a file its last part
	Unit  string `json:"unit,omitempty"` // "µm"
	File  bool   `json:"file,omitempty"` // the value names a file or folder
}

// Batch names the pair of --batch that a record describes.
type Batch struct {
	List  string          `json:"list"`
	Line  int             `json:"line"`  // of the list, counted from 1
	Pairs int             `json:"pairs"` // in the list
	In    address.Address `json:"in"`
	Out   address.Address `json:"out"`
}

// GPU is the device that a run used.
type GPU struct {
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	Driver string `json:"driver"` // newest CUDA that the driver knows, "12.4"

	BytesToDevice   int64 `json:"bytes_to_device"`
	BytesFromDevice int64 `json:"bytes_from_device"`

	// BytesStraightToDevice and the following count bytes that went straight between files and the device
	// (GPUDirect Storage), a part of the above, and pieces that should have and went through host memory.
	BytesStraightToDevice   int64 `json:"bytes_straight_to_device"`
	BytesStraightFromDevice int64 `json:"bytes_straight_from_device"`
	GDSFallbacks            int64 `json:"gds_fallbacks"`

	// BytesByBackend, ReadAgain and BackendReasons tell how chunks came to the device: bytes of elements by
	// backend ("host", "bounce", "gds", "nvcomp"), regions that the host had to read again, and why no better
	// backend was used.
	BytesByBackend map[string]int64 `json:"bytes_by_backend"`
	ReadAgain      int64            `json:"regions_read_again"`
	BackendReasons []string         `json:"backend_reasons"`

	Trials []Trial `json:"trials"` // measurements that decided who decodes and encodes
}

// Choice explains why a run that could have used a GPU computed where it did.
type Choice struct {
	On         string  `json:"on"` // "gpu" or "cpu"
	CPUSeconds float64 `json:"cpu_seconds"`
	GPUSeconds float64 `json:"gpu_seconds"` // these are estimates
	Reason     string  `json:"reason"`      // figures behind them
}

// Trial holds the speeds of two ways to do the same work, measured on the first pieces of an array.
type Trial struct {
	What           string             `json:"what"`             // "read", with decoding, or "write", with encoding
	Array          string             `json:"array"`            // location
	BytesPerSecond map[string]float64 `json:"bytes_per_second"` // decoded bytes, by way
	Chosen         string             `json:"chosen"`
}

// Dataset describes a file or array that was read or written. Fields that do not apply are omitted.
type Dataset struct {
	Path   address.Address `json:"path"`
	Shape  []int           `json:"shape,omitempty"`
	DType  string          `json:"dtype,omitempty"` // "uint16"
	Chunks []int           `json:"chunks,omitempty"`
	Shard  []int           `json:"shard,omitempty"`
	Codecs []string        `json:"codecs,omitempty"`
	Format int             `json:"zarr_format,omitempty"`
	Bytes  int64           `json:"bytes"` // size on storage; -1 if unknown

	Modified *time.Time `json:"modified,omitempty"` // when the newest of its files was modified, where Bytes was measured
	Metadata string     `json:"metadata,omitempty"` // of an input: see [MetadataDigest]

	LinksTo address.Address `json:"links_to,omitempty"` // of an input whose path has links in it: the path without them

	VoxelSize []float64 `json:"voxel_size_um,omitempty"` // along the axes of space, which are the last ones
	Levels    int       `json:"levels,omitempty"`        // of an image with a pyramid, level 0 included
}

// Phases holds busy seconds, summed over workers.
type Phases struct {
	Read    float64 `json:"read"`
	Decode  float64 `json:"decode"`
	Compute float64 `json:"compute"`
	Encode  float64 `json:"encode"`
	Write   float64 `json:"write"`
}

// Fallback records that a run continued in a slower way, and why.
type Fallback struct {
	From   string `json:"from"` // "gpu"
	To     string `json:"to"`   // "cpu"
	Reason string `json:"reason"`
}

// Measure copies a meter's counts into the record; a nil meter counted nothing.
func (r *Record) Measure(m *meter.Meter) {
	r.Phases = Phases{
		Read:    m.Busy(meter.Read).Seconds(),
		Decode:  m.Busy(meter.Decode).Seconds(),
		Compute: m.Busy(meter.Compute).Seconds(),
		Encode:  m.Busy(meter.Encode).Seconds(),
		Write:   m.Busy(meter.Write).Seconds(),
	}
	r.BytesRead, r.BytesWritten, r.NonFinite = m.BytesRead(), m.BytesWritten(), m.NonFinite()
	r.MissingChunks = m.Missing()
}

// Write writes the record to a file, whole or not at all, under the rules of [Check]. It writes to a device
// or a pipe (/dev/stdout) directly.
func (r *Record) Write(path string, overwrite bool) error {
	r.fill()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	text = append(text, '\n')
	if asItIs(path) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return fmt.Errorf("record %w", err)
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("record %w", err)
		}
		return nil
	}
	g := atomic.NewGroup(atomic.Options{Overwrite: overwrite})
	defer g.Abort()
	out, err := begin(g, path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out.Work(), text, 0o666); err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	if err := g.Commit(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// Check tells in advance whether a record can be written to a path: the path is not in a Zarr hierarchy, its
// folder is writable, and the file does not exist or, with overwrite, is a record itself.
func Check(path string, overwrite bool) error {
	if asItIs(path) {
		return nil
	}
	g := atomic.NewGroup(atomic.Options{Overwrite: overwrite})
	defer g.Abort()
	_, err := begin(g, path)
	return err
}

// asItIs reports whether a path must be written to directly: it is neither a regular file nor a folder, or it is one of
// the process's own streams.
func asItIs(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && (!info.Mode().IsRegular() || strings.HasPrefix(filepath.Clean(path), "/dev/"))
}

// begin starts the file of a record.
func begin(g *atomic.Group, path string) (*atomic.Output, error) {
	folder := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		folder = filepath.Dir(real)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	for ; ; folder = filepath.Dir(folder) {
		if store.IsNode(folder) {
			return nil, &placeError{atomic.ErrPlace, fmt.Sprintf("record %s lies inside the Zarr hierarchy %s: write to another place", path, folder)}
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	out, err := g.File(path, nil)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if _, err := Read(context.Background(), path); err != nil { // a regular file, of which little is read
			return nil, &placeError{atomic.ErrNotOurs, fmt.Sprintf("record %s exists and is something else, no record of a run: not replaced", path)}
		}
	}
	return out, nil
}

// placeError is a place that a record cannot have, of a kind that package atomic names.
type placeError struct {
	kind error
	text string
}

func (e *placeError) Error() string { return e.text }
func (e *placeError) Unwrap() error { return e.kind }

// fill replaces missing lists by empty ones, so that readers in other languages need not handle null.
func (r *Record) fill() {
	if r.Arguments == nil {
		r.Arguments = []address.Address{}
	}
	if r.Inputs == nil {
		r.Inputs = []Dataset{}
	}
	if r.Outputs == nil {
		r.Outputs = []Dataset{}
	}
	r.Warnings = redacted(r.Warnings)
	r.Error = address.Redact(r.Error)
	if r.Fallback != nil {
		r.Fallback.Reason = address.Redact(r.Fallback.Reason)
	}
	if r.GPU != nil {
		r.GPU.BackendReasons = redacted(r.GPU.BackendReasons)
		if r.GPU.Trials == nil {
			r.GPU.Trials = []Trial{}
		}
		for i, t := range r.GPU.Trials {
			r.GPU.Trials[i].Array = address.Redact(t.Array)
		}
	}
}

// redacted returns texts without the secrets of addresses that they may quote.
func redacted(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = address.Redact(t)
	}
	return out
}

// Read parses a record file. It ignores unknown fields, which later versions may add.
func Read(ctx context.Context, path string) (*Record, error) {
	text, err := smallfile.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("record %s: %w", path, err)
	}
	if r.Tool == "" {
		return nil, fmt.Errorf("record %s: field tool is missing: not a run record", path)
	}
	return r, nil
}

// errMany ends a walk.
var errMany = errors.New("too many files")

// LinksTo returns the absolute path to which a path leads if it goes through links, below the current folder or, if
// absolute, anywhere. It returns "" without links, and for an address.
func LinksTo(path string) address.Address {
	here, err := filepath.EvalSymlinks(".")
	if err == nil {
		here, err = filepath.Abs(here)
	}
	if err != nil || address.Address(path).Scheme() != "" {
		return ""
	}
	plain := filepath.Clean(path)
	if !filepath.IsAbs(plain) {
		plain = filepath.Join(here, plain)
	}
	if real, err := filepath.EvalSymlinks(plain); err == nil && real != plain {
		return address.Address(real)
	}
	return ""
}

// OnDisk returns the size of a file, or the total size of all files below a folder, for [Dataset], and when the
// newest of them was modified. It returns -1 and a zero time if they are unknown: of a URL, a file that vanished, a
// folder of more than most files (0: any number).
func OnDisk(path string, most int) (size int64, modified time.Time) {
	files := 0
	add := func(info fs.FileInfo) {
		size += info.Size()
		if info.ModTime().After(modified) {
			modified = info.ModTime()
		}
	}
	err := fs.WalkDir(os.DirFS(path), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; most > 0 && files > most {
			return errMany
		}
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			add(info)
		}
		return nil
	})
	if err != nil {
		size, modified = 0, time.Time{}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return -1, time.Time{}
		}
		add(info)
	}
	return size, modified
}

// Measure measures a dataset on disk whose size is not known yet.
func (d *Dataset) Measure() {
	if d.Bytes != 0 {
		return
	}
	size, modified := OnDisk(d.Path.Reveal(), 0)
	d.Bytes = size
	if !modified.IsZero() {
		modified = modified.UTC()
		d.Modified = &modified
	}
}

// MetadataDigest returns a hash of an image's metadata: the attributes of its group, and the shape and type of its
// voxels. It is the same wherever the image lies and however its metadata are spaced.
func MetadataDigest(attributes map[string]json.RawMessage, shape []int, dtype string) string {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%v %s", shape, dtype)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		fmt.Fprintf(&text, "\n%q ", name)
		if json.Compact(&text, attributes[name]) != nil {
			text.Write(attributes[name])
		}
	}
	return smallfile.Digest(text.Bytes())
}
