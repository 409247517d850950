package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// threadCounts are the columns of the page: those above the machine's processors are not measured.
var threadCounts = []int{1, 2, 4, 8, 16}

// Series of the stages: what stands before the number of threads in a program's name.
const (
	byDefault = "default"
	smallMem  = "--mem 512MiB"
	largeMem  = "--mem 4GiB"
)

// Goals of scaling.
const (
	busyOfTwo    = 1.8  // busy cores at two threads
	overLargeMem = 1.05 // time by default in multiples of that with 4 GiB
	efficient    = 0.75 // at 16 threads
	smallMemPeak = 512 + 256
	standardSize = "105"         // of chunks, in MB, that goals are for
	manyTiles    = "36x105-zstd" // mosaic for which seconds with 16 threads are goals
)

// scalingStage is a stage with its flags; most is the goal of seconds with 16 threads on 36 tiles of 105 MB.
type scalingStage struct {
	name string
	args []string
	most float64
}

var scalingStages = []scalingStage{
	{"aip", nil, 0.5}, {"resample", []string{"--resolution", "10"}, 0.6}, {"focal", nil, 3}, {"crop", nil, 2.5}, {"stitch", nil, 2},
}

// threaded names a program, or a series, that runs with a number of threads.
func threaded(series string, n int) string {
	if n == 1 {
		return series + ", 1 thread"
	}
	return fmt.Sprintf("%s, %d threads", series, n)
}

// seriesOf is the inverse of threaded; n is 0 for another name.
func seriesOf(who string) (series string, n int) {
	at := strings.LastIndex(who, ", ")
	if at < 0 {
		return who, 0
	}
	number, _, _ := strings.Cut(who[at+2:], " ")
	if n, _ = strconv.Atoi(number); n == 0 {
		return who, 0
	}
	return who[:at], n
}

// scalingUnits returns the benchmark of scaling on a machine with that many processors: the stages on every mosaic,
// then all programs that read the same mosaics.
func (p *plan) scalingUnits() ([]unit, error) { return p.scalingOf(runtime.NumCPU()) }

func (p *plan) scalingOf(cores int) ([]unit, error) {
	counts := slices.DeleteFunc(slices.Clone(threadCounts), func(n int) bool { return n > cores })
	var all []unit
	mosaics := strings.Split(p.mosaics, ",")
	for _, s := range scalingStages {
		for _, name := range mosaics {
			u, err := p.scalingUnit(&s, name, counts)
			if err != nil {
				return nil, err
			}
			all = append(all, *u)
		}
	}
	for _, name := range mosaics {
		if name == manyTiles {
			continue
		}
		label, err := mosaicLabel(p.mosaic(name))
		if err != nil {
			return nil, err
		}
		array := filepath.Join(p.mosaic(name), "0")
		u := unit{header: header{Name: "read/" + name, Group: "read", Label: label, Unit: "s"}, reads: p.mosaic(name)}
		for _, n := range counts {
			for _, c := range p.everybody("full", array, "-again", "1", "-threads", strconv.Itoa(n)) {
				if c.who != peerNames["zarr+zarrs"] {
					c.who = threaded(c.who, n)
					u.who = append(u.who, c)
				}
			}
		}
		all = append(all, u)
	}
	return all, nil
}

// scalingUnit returns the case of a stage on a mosaic. All numbers of threads take turns in a round. With less memory,
// chunks of 16 MB and less scale as by default, and one thread has enough of it.
func (p *plan) scalingUnit(s *scalingStage, name string, counts []int) (*unit, error) {
	label, err := mosaicLabel(p.mosaic(name))
	if err != nil {
		return nil, err
	}
	u := &unit{header: header{Name: s.name + "/" + name, Group: s.name, Label: label, Unit: "s"}, reads: p.mosaic(name)}
	add := func(series string, n int, flags ...string) {
		dir := filepath.Join(p.out, "out")
		record := filepath.Join(p.out, "record.json")
		argv := []string{filepath.Join(p.bin, s.name), p.mosaic(name), filepath.Join(dir, s.name+".ome.zarr"), "-q", "--no-use_gpu", "--threads", strconv.Itoa(n), "--report", record}
		u.who = append(u.who, contestant{who: threaded(series, n), argv: slices.Concat(argv, s.args, flags), wall: true, clear: dir, record: record})
	}
	goal := func(series string, n int, against string, ratio float64) {
		u.Targets = append(u.Targets, target{Who: threaded(series, n), Against: against, Ratio: ratio})
	}
	top, size := counts[len(counts)-1], sizeOf(name)
	if name == manyTiles {
		if add(byDefault, top); top == 16 {
			goal(byDefault, top, absolute, 1e3*s.most)
		}
		return u, nil
	}
	for _, n := range counts {
		if add(byDefault, n); n > 1 && (size == standardSize || size == "400") {
			add(smallMem, n, "--mem", "512MiB")
			if size == standardSize { // with larger chunks a stage may refuse to run
				goal(smallMem, n, resident, smallMemPeak)
			}
		}
	}
	if size == standardSize {
		goal(byDefault, 2, busy, busyOfTwo)
		goal(byDefault, 16, efficiency, efficient)
	}
	if name == standardSize+"-zstd" && top > 1 {
		add(largeMem, top, "--mem", "4GiB")
		u.Targets = append(u.Targets, target{Who: threaded(byDefault, top), Against: threaded(largeMem, top), Ratio: overLargeMem, Inverse: true})
	}
	return u, nil
}

func (p *plan) mosaic(name string) string { return filepath.Join(p.data, "mosaic_"+name+".ome.zarr") }

// sizeOf returns what the name of a mosaic says of the size of its chunks.
func sizeOf(name string) string {
	size, _, _ := strings.Cut(name, "-")
	return size
}

// mosaicLabel describes a mosaic of uint16 by its document: number and size of its tiles, and their codec.
func mosaicLabel(path string) (string, error) {
	file := filepath.Join(path, "0", "zarr.json")
	m, err := readJSON[struct {
		Shape []int `json:"shape"`
		Grid  struct {
			Configuration struct {
				Chunk []int `json:"chunk_shape"`
			} `json:"configuration"`
		} `json:"chunk_grid"`
		Codecs []struct {
			Name          string `json:"name"`
			Configuration struct {
				Level      int    `json:"level"`
				Compressor string `json:"cname"` // of blosc
				BloscLevel int    `json:"clevel"`
			} `json:"configuration"`
		} `json:"codecs"`
	}](file)
	if err != nil {
		return "", err
	}
	if m == nil {
		return "", fmt.Errorf("%s: %w", file, os.ErrNotExist)
	}
	codec := "raw"
	switch last := m.Codecs[len(m.Codecs)-1]; last.Name {
	case "zstd":
		codec = fmt.Sprintf("zstd:%d", last.Configuration.Level)
	case "blosc":
		codec = fmt.Sprintf("blosc-%s:%d", last.Configuration.Compressor, last.Configuration.BloscLevel)
	}
	chunk := m.Grid.Configuration.Chunk
	return fmt.Sprintf("%d × %.0f MB (%s), %s", volumeOf(m.Shape)/volumeOf(chunk), float64(2*volumeOf(chunk))/1e6, crossed(chunk), codec), nil
}

// busyCores returns how many processors a program used on average.
func (s summary) busyCores() float64 { return s.cpu / s.seconds }

// efficiency returns a program's speed in multiples of that of one thread, of the same series or else by default, per
// thread; 0 if one of them was not measured.
func (o *outcome) efficiency(who string) float64 {
	series, n := seriesOf(who)
	r := o.ratio(who, threaded(series, 1))
	if r == 0 {
		r = o.ratio(who, threaded(byDefault, 1))
	}
	return r / float64(max(n, 1))
}

// verdictOn returns the verdict on a target of a program that it names, if that was measured.
func (o *outcome) verdictOn(t target) (v verdict, measured bool) {
	s := o.median[t.Who]
	v.who = t.Who
	say := func(reached bool, want, got string, args ...any) (verdict, bool) {
		v.want, v.got, v.reached = want, t.Who+": "+fmt.Sprintf(got, args...), reached
		return v, true
	}
	switch {
	case s.failed != "":
		return say(false, "that it runs", "fails")
	case s.seconds == 0:
		return v, false
	}
	switch t.Against {
	case absolute:
		return say(1e3*s.seconds <= t.Ratio, fmt.Sprintf("≤ %g s", t.Ratio/1e3), "%s", number(s.seconds, "s"))
	case resident:
		return say(float64(s.hwm>>10) <= t.Ratio, fmt.Sprintf("≤ %g MiB", t.Ratio), "%d MiB resident", s.hwm>>10)
	case busy:
		return say(s.busyCores() >= t.Ratio, fmt.Sprintf("≥ %g busy cores", t.Ratio), "%.2f busy cores", s.busyCores())
	case efficiency:
		e := o.efficiency(t.Who)
		if e == 0 {
			return v, false
		}
		return say(e >= t.Ratio, fmt.Sprintf("efficiency ≥ %.0f %%", 100*t.Ratio), "efficiency %.0f %%", 100*e)
	}
	r := o.ratio(t.Who, t.Against)
	if r == 0 {
		return v, false
	}
	other, _ := seriesOf(t.Against)
	return say(1/r <= t.Ratio, fmt.Sprintf("≤ %g × that of %s", t.Ratio, other), "%.2f × the time of %s", 1/r, other)
}
