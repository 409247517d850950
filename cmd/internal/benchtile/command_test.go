package benchtile

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"strata/cmd/internal/benchzarr"
	"strata/cmd/internal/zarrtool"
	"strata/pkg/bench"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"samechecksum": sameChecksum, "bench-tile": clitest.Of(Command), "bench-zarr": clitest.Of(benchzarr.Command), "zarr-tool": clitest.Of(zarrtool.Command), "peer": falsePeer,
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// sameChecksum is "samechecksum A.json B.json": the first results of two documents show the same pixels.
func sameChecksum() {
	var got [2]string
	for i := range got {
		text, err := os.ReadFile(os.Args[1+i])
		var d bench.Document
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil || len(d.Results) == 0 {
			fmt.Fprintln(os.Stderr, os.Args[1+i], err)
			os.Exit(1)
		}
		got[i] = d.Results[0].Checksum
	}
	if got[0] != got[1] || got[0] == "" {
		fmt.Fprintf(os.Stderr, "the checksums are %q and %q\n", got[0], got[1])
		os.Exit(1)
	}
}
