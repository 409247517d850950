package main

import (
	"bytes"
	"fmt"
	"strings"

	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/unzstd"
	"strata/tests/enzstdtest"
)

// compareDecoders returns the speeds at which libzstd and strata decode the frames that each of them makes of the
// sets at one level. Both decode into the same memory, alternately, and the least processor time of each counts.
func compareDecoders(z *libzstd, sets []enzstdtest.Set, level, reps int) (rows [][]string, err error) {
	var (
		e enzstd.Encoder
		d unzstd.Decoder
	)
	seen := map[string]bool{}
	for _, s := range sets {
		if seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		room := make([]byte, 0, len(s.Bytes)+len(s.Bytes)/128+4096)
		decoded := make([]byte, len(s.Bytes))
		for _, maker := range []string{"strata", "libzstd"} {
			frame := e.Encode(room[:0], s.Bytes, level, false)
			if maker == "libzstd" {
				frame = z.encode(room, s.Bytes, level)
			}
			t, err := timeDecoders(z, &d, decoded, frame, s.Bytes, reps)
			if err != nil {
				return nil, fmt.Errorf("%s, frame of %s: %w", s.Name, maker, err)
			}
			n := float64(len(s.Bytes))
			rows = append(rows, []string{s.Name, maker, fmt.Sprintf("%.3f", float64(len(frame))/n), fmt.Sprintf("%.0f", n/t[0]/1e6), fmt.Sprintf("%.0f", n/t[1]/1e6), fmt.Sprintf("%.2f", t[0]/t[1])})
		}
	}
	return rows, nil
}

// timeDecoders returns the least processor times of libzstd and of d, in seconds. Small frames are decoded several
// times in a row.
func timeDecoders(z *libzstd, d *unzstd.Decoder, decoded, frame, want []byte, reps int) (least [2]float64, err error) {
	times := max(1, 4<<20/len(want))
	decoders := []func() error{
		func() error {
			if n := z.decode(decoded, frame); n != uint64(len(decoded)) {
				return fmt.Errorf("libzstd does not decode it (%d)", int64(n))
			}
			return nil
		},
		func() error {
			_, err := d.Decode(decoded, frame)
			return err
		},
	}
	least = [2]float64{1e9, 1e9}
	for range reps {
		for i, decode := range decoders {
			decoded[0]++ // to notice a decoder that does nothing
			start := processorTime()
			for range times {
				if err := decode(); err != nil {
					return least, err
				}
			}
			least[i] = min(least[i], (processorTime()-start)/float64(times))
			if !bytes.Equal(decoded, want) {
				return least, fmt.Errorf("decoder %d returns other bytes", i)
			}
		}
	}
	return least, nil
}

// chosen returns the sets whose names begin with one of the prefixes, which are separated by commas.
func chosen(sets []enzstdtest.Set, prefixes string) (some []enzstdtest.Set) {
	for _, s := range sets {
		for p := range strings.SplitSeq(prefixes, ",") {
			if strings.HasPrefix(s.Name, p) {
				some = append(some, s)
				break
			}
		}
	}
	return some
}
