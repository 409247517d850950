package benchtiff

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"strata/cmd/internal/benchzarr"
	"strata/cmd/internal/zarrtool"
	"strata/pkg/dtype"
	"strata/pkg/images"
	"strata/pkg/tiff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"bench-tiff": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command), "false-python": falsePython, "damage": damage,
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// damage is "damage zero|cut FILE PAGE TILE": half of a tile is zeroed, or the file ends there.
func damage() {
	ctx, name := context.Background(), os.Args[2]
	err := func() error {
		o, err := store.Folder(".").Open(ctx, name)
		if err != nil {
			return err
		}
		f, err := tiff.Open(ctx, o, name)
		if err != nil {
			return err
		}
		page, _ := strconv.Atoi(os.Args[3])
		n, _ := strconv.ParseInt(os.Args[4], 10, 64)
		off, bytes, err := f.Pages[page].Segment(ctx, n)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if os.Args[1] == "cut" {
			text = text[:off+bytes/2]
		} else {
			clear(text[off+bytes/2 : off+bytes])
		}
		return os.WriteFile(name, text, 0o666)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// question is what the script of the peers is asked.
type question struct {
	Do, Array, Source string
	Format            int
	Shape, Chunks     []int
	Boxes             [][2][]int
	Whole             bool
	DType, Codec      string
	Level             int
}

// falsePython answers as the peers' script does; PEERS says what it is told to do wrong, a word for each peer:
// "tifffile=missing".
func falsePython() {
	if len(os.Args) < 6 || os.Args[1] != "-c" || !strings.Contains(os.Args[2], "def check(") {
		fmt.Fprintln(os.Stderr, "want -c SCRIPT WHO THREADS IN_FLIGHT")
		os.Exit(2)
	}
	mode := ""
	for word := range strings.FieldsSeq(os.Getenv("PEERS")) {
		if who, m, _ := strings.Cut(word, "="); who == os.Args[3] {
			mode = m
		}
	}
	ctx := context.Background()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var q question
		out := map[string]any{"s": 0.5, "cpu": 0.25, "hwm": 1 << 20}
		err := json.Unmarshal(in.Bytes(), &q)
		switch {
		case err != nil:
		case q.Do == "hello" && mode == "missing":
			out = map[string]any{"missing": "No module named " + os.Args[3]}
		case q.Do == "hello":
			out = map[string]any{"version": "1.2.3"}
		case mode == "fails":
			out = map[string]any{"error": "ValueError: no"}
		case q.Do == "check":
			sum, e := checksum(ctx, q)
			if err = e; mode == "wrong" {
				sum++
			}
			out = map[string]any{"ck": sum}
		case q.Do == "copy":
			err = duplicate(ctx, q, mode == "wrong")
		}
		if err != nil {
			out = map[string]any{"error": err.Error()}
		}
		_ = json.NewEncoder(os.Stdout).Encode(out)
	}
}

func read(ctx context.Context, path string, box func(a *zarr.Array) []zarr.Region, take func(a *zarr.Array, r zarr.Region, data []byte)) error {
	st, key, err := images.Open(ctx, path)
	if err != nil {
		return err
	}
	defer st.Close()
	a, err := zarr.OpenArray(ctx, st, key)
	if err != nil {
		return err
	}
	defer a.Close()
	for _, r := range box(a) {
		data := make([]byte, int64(a.DType().Size())*benchzarr.Volume(r.Shape))
		if err := a.Read(ctx, r, data); err != nil {
			return err
		}
		take(a, r, data)
	}
	return nil
}

func checksum(ctx context.Context, q question) (uint32, error) {
	var c benchzarr.Checksum
	err := read(ctx, q.Array, func(*zarr.Array) []zarr.Region {
		var list []zarr.Region
		for _, b := range q.Boxes {
			list = append(list, zarr.Region{Start: b[0], Shape: b[1]})
		}
		return list
	}, func(a *zarr.Array, r zarr.Region, data []byte) {
		l := benchzarr.Layout{Shape: a.Shape(), Chunks: a.Chunks(), Size: a.DType().Size()}
		benchzarr.Boxes{Whole: q.Whole}.Check(&c, l, r, data)
	})
	return c.Value(), err
}

func duplicate(ctx context.Context, q question, wrong bool) error {
	elem, err := dtype.Parse(q.DType)
	if err != nil {
		return err
	}
	chain, err := codec.FromFlag(q.Codec, elem, q.Format)
	if err != nil {
		return err
	}
	dst, err := zarr.CreateArray(ctx, store.Folder(q.Array), "", zarr.Spec{Format: q.Format, Shape: q.Shape, Chunks: q.Chunks, DType: elem, Codecs: chain})
	if err != nil {
		return err
	}
	defer dst.Close()
	var failed error
	err = read(ctx, q.Source, func(a *zarr.Array) []zarr.Region { return []zarr.Region{a.Bounds()} }, func(_ *zarr.Array, r zarr.Region, data []byte) {
		if wrong {
			data[0]++
		}
		failed = dst.Write(ctx, r, data)
	})
	return errors.Join(err, failed)
}
