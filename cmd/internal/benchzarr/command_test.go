package benchzarr

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"strata/cmd/internal/zarrtool"
	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"bench-zarr": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command), "false-python": falsePython,
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// falsePython answers as the peers' script does; what it is told to do wrong stands in the
// variable PEERS, a word for each peer: "zarr=missing tensorstore=wrong".
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
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out := map[string]any{"s": 0.5, "cpu": 0.25, "hwm": 1 << 20}
		switch {
		case q.Do == "hello" && mode == "missing":
			out = map[string]any{"missing": "No module named " + os.Args[3]}
		case q.Do == "hello" && mode == "dies", q.Do == "read" && mode == "dies-later":
			fmt.Fprintln(os.Stderr, "Segmentation fault")
			os.Exit(139)
		case q.Do == "hello" && mode == "babbles":
			fmt.Println("Welcome!")
			continue
		case q.Do == "hello":
			out = map[string]any{"version": "1.2.3"}
		case q.Do != "check" && mode == "fails":
			out = map[string]any{"error": "ValueError: no"}
		case q.Do == "read" && mode == "hangs":
			fmt.Fprintln(os.Stderr, "hanging")
			time.Sleep(time.Hour) // a select without cases is a deadlock, which ends the process
		case q.Do == "check":
			out = map[string]any{"ck": referenceCheck(ctx, q)}
			if mode == "wrong" {
				out = map[string]any{"ck": 1}
			}
		case q.Do == "write":
			writeFor(ctx, q, mode)
		}
		_ = json.NewEncoder(os.Stdout).Encode(out)
	}
}

// referenceCheck is the checksum by its definition, element by element.
func referenceCheck(ctx context.Context, q request) uint32 {
	a, err := zarr.OpenArray(ctx, store.Folder(q.Array), "")
	if err != nil {
		panic(err)
	}
	var list [][]byte
	for _, b := range q.Boxes {
		r := zarr.Region{Start: b[0], Shape: b[1]}
		data := make([]byte, int64(a.DType().Size())*Volume(r.Shape))
		if err := a.Read(ctx, r, data); err != nil {
			panic(err)
		}
		list = append(list, data)
	}
	step := boxStep
	if q.Whole {
		step = WholeStep
		data := make([]byte, int64(a.DType().Size())*Volume(a.Shape()))
		if err := a.Read(ctx, a.Bounds(), data); err != nil {
			panic(err)
		}
		list = [][]byte{data}
	}
	return naive(list, a.DType().Size(), step)
}

// naive is the checksum of boxes.
func naive(boxes [][]byte, size, step int) uint32 {
	sum := uint64(0)
	for _, data := range boxes {
		for k := 0; k*step*size < len(data); k++ {
			b := data[k*step*size:][:size]
			u := uint64(0)
			for half := 0; half < size; half += 8 {
				for i := min(half+8, size) - 1; i >= half; i-- {
					u += uint64(b[i]) << (8 * (i - half))
				}
			}
			sum += uint64(k+1) * u
		}
	}
	return uint32(sum ^ sum>>32)
}

// writeFor writes an array as a peer does.
func writeFor(ctx context.Context, q request, mode string) {
	p := plan{format: q.Format, codec: q.Codec, chunks: q.Chunks, shard: q.Shard, shape: q.Shape}
	var err error
	if p.elem, err = dtype.Parse(q.DType); err != nil {
		panic(err)
	}
	a, err := p.create(ctx, q.Array, false)
	if err != nil {
		panic(err)
	}
	data, err := os.ReadFile(q.Data)
	if err != nil {
		panic(err)
	}
	if mode == "wrong" {
		data[0] ^= 1
	}
	if err := a.Write(ctx, a.Bounds(), data); err != nil {
		panic(err)
	}
}
