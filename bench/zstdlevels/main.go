package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"strata/pkg/zarr/codec/enzstd"
)

func user() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Sec) + float64(r.Utime.Usec)*1e-6 + float64(r.Stime.Sec) + float64(r.Stime.Usec)*1e-6
}

func main() {
	lib := flag.String("lib", "/tmp/zstd/libzstd157.so", "")
	reps := flag.Int("reps", 5, "")
	lo := flag.Int("lo", 1, "")
	hi := flag.Int("hi", 9, "")
	flag.Parse()
	z, err := openLibzstd(*lib)
	if err != nil {
		panic(err)
	}
	var e enzstd.Encoder
	for _, f := range flag.Args() {
		src, _ := os.ReadFile(f)
		a, b := make([]byte, 0, len(src)+len(src)/128+4096), make([]byte, 0, len(src)+len(src)/128+4096)
		back := make([]byte, len(src))
		for l := *lo; l <= *hi; l++ {
			ta, tb := 1e9, 1e9
			for range *reps {
				k := max(1, 1<<20/len(src))
				t := user()
				for range k {
					a = z.encode(a, src, l)
				}
				ta = min(ta, (user()-t)/float64(k))
				t = user()
				for range k {
					b = e.Encode(b[:0], src, l, false)
				}
				tb = min(tb, (user()-t)/float64(k))
			}
			note := ""
			if n := z.decode(back, b); n != uint64(len(src)) || !bytes.Equal(src, back) {
				note = "BAD"
			}
			fmt.Fprintf(os.Stdout, "%-8s %d  lib %.4f %6.0f MB/s  ours %.4f %6.0f MB/s  size %.3f speed %.2f %s\n", filepath.Base(f), l, float64(len(a))/float64(len(src)), float64(len(src))/ta/1e6,
				float64(len(b))/float64(len(src)), float64(len(src))/tb/1e6, float64(len(b))/float64(len(a)), ta/tb, note)
		}
	}
}
