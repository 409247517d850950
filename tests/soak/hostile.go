package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Memory granted to programs, and the memory that they may take besides.
const (
	grantedMem = 128 << 20
	besideMem  = 256 << 20
)

// hostile damages one or several files of an input and runs a program on it. The program must succeed or name the
// input as the cause, in bounded memory, and never crash.
func (f *fixtures) hostile(ctx context.Context, dir string, r *rand.Rand) (string, error) {
	kind := r.IntN(5)
	in := filepath.Join(dir, "in.ome.zarr")
	args, err := f.victim(ctx, dir, in, kind, r)
	if err != nil {
		return "", err
	}
	var done []string
	for range 1 + r.IntN(3) {
		what, err := damage(in, r)
		if err != nil {
			return "", err
		}
		done = append(done, what)
	}
	p := program{bin: f.bin, dir: dir, args: append(args, "-q")}
	if args[0] != "qc-report" {
		p.args = append(p.args, "--mem", fmt.Sprint(grantedMem))
	}
	e, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s after %s", strings.Join(args[:2], " "), strings.Join(done, ", "))
	switch {
	case e.hung, e.crashed(), e.code > 128:
		return "", fmt.Errorf("%s: %v", name, e)
	case e.code != 0 && e.code != 3 && e.code != 1:
		return "", fmt.Errorf("%s: %v", name, e)
	case e.peak > grantedMem+besideMem:
		return "", fmt.Errorf("%s: %d MiB resident: %v", name, e.peak>>20, e)
	case strings.Count(strings.TrimSpace(e.stderr), "\n") > 200:
		return "", fmt.Errorf("%s: %d lines of messages", name, strings.Count(e.stderr, "\n"))
	}
	return fmt.Sprintf("exit code %d", e.code), nil
}

// victim makes the input of a hostile try and returns the command line that reads it.
func (f *fixtures) victim(ctx context.Context, dir, in string, kind int, r *rand.Rand) ([]string, error) {
	out := filepath.Join(dir, "out.ome.zarr")
	stacked := kind == 4
	if stacked {
		if err := copyTree(filepath.Join(f.dir, "slices"), in); err != nil {
			return nil, err
		}
		shifts := filepath.Join(in, "shifts_xy.csv")
		if err := copyTree(filepath.Join(f.dir, "ph", "shifts_xy.csv"), shifts); err != nil {
			return nil, err
		}
		return []string{"stack", in, shifts, out}, nil
	}
	forms := [][]string{
		{"--codec", "raw", "--zarr_format", "2"}, {"--codec", "zstd:1"}, {"--codec", "blosc-lz4", "--zarr_format", "2"},
		{"--codec", "gzip:1", "--chunks", "12,24,24", "--shard", "24,48,48"}, {"--codec", "lz4"},
	}
	line := append([]string{"zarr-tool", "reencode", f.old, in, "-q"}, forms[r.IntN(len(forms))]...)
	if err := mustRun(ctx, f.bin, dir, line...); err != nil {
		return nil, err
	}
	programs := [][]string{
		{"zarr-tool", "validate", in}, {"zarr-tool", "info", in}, {"aip", in, out}, {"resample", in, out, "--resolution", "10"},
		{"focal", in, out}, {"stitch", in, out}, {"crop", in, out}, {"preview", in, filepath.Join(dir, "out.png")},
		{"zarr-tool", "reencode", in, out}, {"zarr-tool", "ome", in, out},
		{"smooth", in, out, "--median", "3", "--gradient"},
	}
	return programs[r.IntN(len(programs))], nil
}

// damage changes one file below a folder and describes the change.
func damage(dir string, r *rand.Rand) (string, error) {
	var documents, data []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if strings.HasPrefix(d.Name(), ".z") || strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".csv") {
			documents = append(documents, path)
		} else {
			data = append(data, path)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	files := documents
	if len(files) == 0 || len(data) > 0 && r.IntN(3) == 0 {
		files = data
	}
	if len(files) == 0 {
		return "nothing", nil
	}
	slices.Sort(files)
	path := files[r.IntN(len(files))]
	name := strings.TrimPrefix(path, dir+"/")
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if r.IntN(12) == 0 {
		return replaceByOther(path, name, r)
	}
	how, damaged := mutate(b, r)
	return how + " in " + name, os.WriteFile(path, damaged, 0o666)
}

// replaceByOther replaces a file with something that is not a regular file.
func replaceByOther(path, name string, r *rand.Rand) (string, error) {
	if err := os.Remove(path); err != nil {
		return "", err
	}
	switch r.IntN(4) {
	case 0:
		return "a folder for " + name, os.Mkdir(path, 0o777)
	case 1:
		return "a fifo for " + name, syscall.Mkfifo(path, 0o666)
	case 2:
		return "a link to itself for " + name, os.Symlink(filepath.Base(path), path)
	default:
		return "nothing for " + name, nil
	}
}

// mutate damages the content of a file.
func mutate(b []byte, r *rand.Rand) (string, []byte) {
	b = bytes.Clone(b)
	var document any
	if json.Unmarshal(b, &document) == nil && r.IntN(4) > 0 {
		document = mutateJSON(document, r)
		if text, err := json.Marshal(document); err == nil {
			return "another value", text
		}
	}
	switch r.IntN(5) {
	case 0:
		return "a cut", b[:r.IntN(len(b)+1)]
	case 1:
		return "repetition", bytes.Repeat(b, 2+r.IntN(100))
	case 2:
		return "nothing but zeros", make([]byte, len(b))
	case 3:
		for range 1 + r.IntN(64) {
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
		}
		return "random bytes", b
	default:
		if len(b) > 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return "a flipped bit", b
	}
}

// strange lists values that no document should have.
var strange = []any{
	nil, true, "", "../../etc/passwd", strings.Repeat("x", 1<<16), 0.0, -1.0, 1e300, math.MaxInt64, float64(1 << 31), 1e-300,
	[]any{}, map[string]any{}, []any{0.0}, []any{-1.0, 1e18, 1e18}, "gzip", "zstd", "blosc", "uint128", "NaN", "\x1b[31m\u202e",
}

// mutateJSON replaces, repeats or removes one value of a document.
func mutateJSON(v any, r *rand.Rand) any {
	if r.IntN(6) == 0 {
		return strange[r.IntN(len(strange))]
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		if len(keys) == 0 {
			return strange[r.IntN(len(strange))]
		}
		slices.Sort(keys)
		k := keys[r.IntN(len(keys))]
		if r.IntN(8) == 0 {
			delete(v, k)
			return v
		}
		v[k] = mutateJSON(v[k], r)
		return v
	case []any:
		if len(v) == 0 {
			return strange[r.IntN(len(strange))]
		}
		if r.IntN(8) == 0 {
			for range r.IntN(2000) {
				v = append(v, v[0])
			}
			return v
		}
		i := r.IntN(len(v))
		v[i] = mutateJSON(v[i], r)
		return v
	case float64:
		return v * []float64{-1, 0, 0.5, 1 << 20, 1e17}[r.IntN(5)]
	}
	return strange[r.IntN(len(strange))]
}
