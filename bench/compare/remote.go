package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/tests/s3emu"
)

// latency is what the servers that are far away wait before each answer.
const latency = 20 * time.Millisecond

// servers are where the data of the remote part is: processes of their own.
type servers struct {
	web  string              // address of a web server that is far away
	s3   map[string][]string // environment that leads to an S3 server, by the group of cases
	stop func() error
}

// startServers starts the servers on the arrays in the folder served.
func (p *plan) startServers(served string) (*servers, error) {
	s := &servers{s3: map[string][]string{}}
	var stops []func() error
	s.stop = func() error {
		var err error
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return err
	}
	start := func(program string, args ...string) (string, error) {
		url, stop, err := s3emu.Process(nil, p.tool(program), args...)
		if err != nil {
			return "", errors.Join(err, s.stop())
		}
		stops = append(stops, stop)
		return url, nil
	}
	var err error
	if s.web, err = start("remote", "-dir", served, "-latency", latency.String()); err != nil {
		return nil, err
	}
	for group, wait := range map[string]time.Duration{"s3": 0, "s3far": latency} {
		e := s3emu.Server{Key: "a-key", Secret: "a-secret"}
		e.URL, err = start("s3server", "-bucket", s3emu.Bucket, "-load", served, "-key", e.Key, "-secret", e.Secret, "-latency", wait.String())
		if err != nil {
			return nil, err
		}
		for name, value := range e.Environment() {
			if value != "" { // some look for a profile of no name
				s.s3[group] = append(s.s3[group], name+"="+value)
			}
		}
	}
	return s, nil
}

// remoteArray is an array of the remote part.
type remoteArray struct{ name, label, codec, chunk, shard string }

// remoteUnits are the cases of data that is far away.
func (p *plan) remoteUnits(s *servers) []unit {
	shard, small := p.edges()
	arrays := []remoteArray{
		{"raw", fmt.Sprintf("raw %d³", small), "raw", cube(small), ""},
		{"zstd", fmt.Sprintf("zstd %d³", small), "zstd:3", cube(small), ""},
		{"shard", fmt.Sprintf("shards %d³ of %d³ zstd", shard, small), "zstd:3", cube(small), cube(shard)},
	}
	var all []unit
	add := func(group, op, array, label, path string, args ...string) *unit {
		u := unit{header: header{Name: group + "/" + op + "/" + array, Group: group, Label: label, Unit: "ms"}, env: s.s3[group]}
		u.large = op == "full" || op == "write"
		if u.large { // a box or a plane cannot take less than one wait for an answer, for anybody
			u.Goals = []target{{Against: peerNames["zarr"], Ratio: 2}}
			if group == "web" {
				u.Goals = append(u.Goals, target{Against: peerNames["tensorstore"], Ratio: 1.2})
			}
		}
		for _, c := range p.everybody(op, path, args...) {
			if c.who == strata || c.who == peerNames["zarr"] || c.who == peerNames["tensorstore"] {
				u.who = append(u.who, c)
			}
		}
		all = append(all, u)
		return &all[len(all)-1]
	}
	for _, a := range arrays {
		add("web", "full", a.name, "all, "+a.label, s.web+"/"+a.name+".zarr")
	}
	for _, a := range arrays {
		add("web", "random", a.name, fmt.Sprintf("40 boxes of %d³, %s", small, a.label), s.web+"/"+a.name+".zarr", "-edge", fmt.Sprint(small))
	}
	for _, a := range arrays {
		add("web", "slab", a.name, "a plane across each axis, "+a.label, s.web+"/"+a.name+".zarr")
	}
	for _, group := range []string{"s3", "s3far"} {
		const bucket = "s3://" + s3emu.Bucket + "/"
		for _, a := range arrays {
			add(group, "full", a.name, "read, "+a.label, bucket+a.name+".zarr")
		}
		written := slices.Concat(arrays, []remoteArray{{"blosc", fmt.Sprintf("blosc-zstd:1 %d³", small), "blosc-zstd:1", cube(small), ""}})
		for _, a := range written {
			args := []string{"-shape", join(p.shape), "-codec", a.codec, "-chunks", a.chunk, "-out", bucket + "written.zarr"}
			if a.shard != "" {
				args = append(args, "-shard", a.shard)
			}
			u := add(group, "write", a.name, "write, "+a.label, filepath.Join(p.data, "plain.f32"), args...)
			u.writes, u.output = true, bucket+"written.zarr"
		}
	}
	return all
}

// remoteGroups are the tables of the page.
var remoteGroups = []group{
	{"web", "HTTP, 20 ms", "A web server that waits 20 ms before each answer. Everything into fresh memory; boxes and planes one after the other, the array open: each of the 40 boxes waits for at least one answer, 0.8 s together, so that these have no target."},
	{"s3", "S3, no latency", "An S3 server in memory that checks signatures and shares the processors with its client: its work is part of the times. Writes are of everything, from memory; blosc-zstd:1 is what our stages write."},
	{"s3far", "S3, 20 ms", "The same with 20 ms before each answer."},
}

// reportRemote prints the page.
func reportRemote(out io.Writer, f *facts, all []*outcome, n notes, svg string) {
	p := func(format string, args ...any) { fmt.Fprintf(out, format, args...) }
	p("<!-- Written by `make bench PARTS=remote` (bench/compare) from measurements and bench/notes-remote.md: edit those. -->\n# Benchmarks of data that is far away\n\n")
	p("Strata beside other programs that read and write Zarr over HTTP and S3, measured by `make bench PARTS=remote`: two threads each, every measurement in a process of its own, the servers on the same two processors, over loopback. ")
	p("The programs take turns, in rounds that each begin with another one; numbers are medians over the rounds. **Ratios count, not times.** ")
	p("Each is used as its documentation shows, with as many requests at a time as it makes by itself: strata 64, zarr-python 10 (with fsspec and s3fs), tensorstore 32. ")
	p("Sampled sums over what was read are compared between all programs, and what others write is read by us.\n\n")
	p("Data: %d×%d×%d float32, 12-bit noise.\n\n![plot](%s)\n\n", f.Shape[0], f.Shape[1], f.Shape[2], svg)
	var text strings.Builder
	var stated, missed int
	for _, o := range all {
		for _, g := range o.Goals {
			stated++
			if r := o.times(g.Against); r < g.Ratio {
				missed++
				fmt.Fprintf(&text, "- **%s, %s** (%.2f × %s, wanted ≥ %g). %s\n", groupTitle(o.Group), o.Label, r, g.Against, g.Ratio, strings.Join(strings.Fields(n.cases[o.Name]), " "))
			}
		}
	}
	p("## Targets\n\n%d of %d are reached.", stated-missed, stated)
	if missed > 0 {
		p(" These are not:\n\n%s", text.String())
	} else {
		p("\n")
	}
	p("\n")
	who := []string{strata, peerNames["zarr"], peerNames["tensorstore"]}
	for _, g := range remoteGroups {
		p("## %s\n\n%s\n\n| | %s | × %s | × %s |\n|---|%s\n", g.title, g.text, strings.Join(who, " | "), who[1], who[2], strings.Repeat("---:|", len(who)+2))
		var memory strings.Builder
		for _, o := range all {
			if o.Group != g.name {
				continue
			}
			p("| %s", o.Label)
			fmt.Fprintf(&memory, "| %s", o.Label)
			for _, w := range who {
				p(" | %s", o.cell(w, func(summary) string { return number(o.speed(w), o.Unit) }))
				fmt.Fprintf(&memory, " | %s", o.cell(w, func(s summary) string { return fmt.Sprint(s.hwm >> 10) }))
			}
			for _, w := range who[1:] {
				p(" | %s", o.goalCell(w))
			}
			p(" |\n")
			memory.WriteString(" |\n")
		}
		p("\nMost resident memory, MiB:\n\n| | %s |\n|---|%s\n%s\n", strings.Join(who, " | "), strings.Repeat("---:|", len(who)), memory.String())
	}
	machine(p, f)
	p("## Commands\n\n```sh\nPARTS=remote make bench                # all of this: some minutes\nBENCH_SMOKE=1 PARTS=remote make bench  # small, one round, no report: does it still run?\n")
	p("BENCH_ONLY=web/full PARTS=remote make bench   # some cases, no report\n```\n\n")
	p("The web server is bench/remote, the S3 server tests/s3emu/server (gofakes3); bench/arrays (ours) and bench/peers.py (Python) measure.\n\n")
	p("%s", strings.TrimSpace(n.sections)+"\n")
}

// times is strata's speed in multiples of another's; 0: one of them failed.
func (o *outcome) times(who string) float64 {
	if who == bestInC {
		who = o.bestInC()
	}
	mine, its := o.median[strata], o.median[who]
	if mine.seconds == 0 {
		return 0
	}
	return its.seconds / mine.seconds
}

// goalCell is the speed in multiples of another's, with whether that is enough.
func (o *outcome) goalCell(who string) string {
	r := o.times(who)
	if r == 0 {
		return ""
	}
	for _, g := range o.Goals {
		if g.Against == who {
			return fmt.Sprintf("%.2f (≥ %g %s)", r, g.Ratio, map[bool]string{true: "✓", false: "✗"}[r >= g.Ratio])
		}
	}
	return fmt.Sprintf("%.2f", r)
}
