// Command kernelpack packs compiled kernels for the binaries (scripts/kernels.sh).
//
//	kernelpack FILE PACKED         writes FILE as a Zstandard frame
//	kernelpack -check FILE PACKED  fails if PACKED does not hold FILE
//	kernelpack -unpack FILE PACKED writes FILE, which PACKED holds
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
	unpack := flag.Bool("unpack", false, "the other way round")
	flag.Parse()
	if err := run(*check, *unpack, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "kernelpack:", err)
		os.Exit(1)
	}
}

func run(check, unpack bool, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: kernelpack [-check|-unpack] FILE PACKED")
	}
	if unpack {
		plain, err := unpacked(args[1])
		if err != nil {
			return err
		}
		return os.WriteFile(args[0], plain, 0o666)
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
	got, err := unpacked(args[1])
	if err == nil && !bytes.Equal(got, plain) {
		err = fmt.Errorf("%s: %d bytes are packed there, not the %d of %s", args[1], len(got), len(plain), args[0])
	}
	return err
}

func unpacked(file string) ([]byte, error) {
	packed, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	plain, err := d.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return plain, nil
}
