// Command kernelpack packs compiled kernels for the binaries (scripts/kernels.sh).
//
//	kernelpack FILE PACKED         writes FILE as a Zstandard frame
//	kernelpack -check FILE PACKED  fails if PACKED does not hold FILE
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"strata/pkg/zarr/codec"
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "kernelpack:", err)
		os.Exit(1)
	}
}

func run(check bool, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: kernelpack [-check] FILE PACKED")
	}
	plain, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if !check {
		packed, err := codec.Zstd(22, true).Encode(codec.NewScratch(), nil, plain)
		if err != nil {
			return err
		}
		return os.WriteFile(args[1], packed, 0o666)
	}
	packed, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return err
	}
	defer d.Close()
	got, err := d.DecodeAll(packed, nil)
	if err == nil && !bytes.Equal(got, plain) {
		err = fmt.Errorf("%d bytes are packed there, not the %d of %s", len(got), len(plain), args[0])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	return nil
}
