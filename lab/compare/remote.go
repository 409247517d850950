package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"strata/tests/s3emu"
)

// latency is the delay before each answer of the distant servers.
const latency = 20 * time.Millisecond

// servers holds the data of the remote part, in separate processes.
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

// remoteArray is an array of the remote part; kinds are those of its data.
type remoteArray struct {
	name, label, codec, chunk, shard string
	kinds                            []string
}

// remoteUnits returns the cases of data on servers.
func (p *plan) remoteUnits(s *servers) []unit {
	shard, small := p.edges()
	both := kindsOf("")
	raw := remoteArray{"raw", fmt.Sprintf("raw %d³", small), "raw", cube(small), "", both[:1]}
	zstd := remoteArray{"zstd", fmt.Sprintf("zstd:3 %d³", small), "zstd:3", cube(small), "", both}
	shards := remoteArray{"shard", fmt.Sprintf("shards %d³ of %d³ zstd:3", shard, small), "zstd:3", cube(small), cube(shard), both}
	blosc := remoteArray{"blosc", fmt.Sprintf("blosc-zstd:1 %d³", small), "blosc-zstd:1", cube(small), "", both}
	var all []unit
	add := func(group, op, label, place string, arrays []remoteArray, args ...string) {
		for _, a := range arrays {
			for _, kind := range a.kinds {
				all = append(all, p.remoteUnit(s, group, op, a, kind, label, place+"/"+a.name+kind+".zarr", args...))
			}
		}
	}
	// boxes and planes wait more than they decode: one kind of data, one repetition
	one := []remoteArray{raw, zstd, shards}
	for i := range one {
		one[i].kinds = one[i].kinds[:1]
	}
	bucket := "s3://" + s3emu.Bucket
	add("web", "full", "all, ", s.web, []remoteArray{raw, zstd, shards}, "-again", "1")
	add("web", "random", fmt.Sprintf("40 boxes of %d³, ", small), s.web, one, "-edge", fmt.Sprint(small))
	add("web", "slab", "a plane across each axis, ", s.web, one)
	add("s3", "full", "read, ", bucket, []remoteArray{raw, zstd, shards}, "-again", "1")
	add("s3", "write", "write, ", "", append(slices.Clone(one), blosc))
	add("s3far", "full", "read, ", bucket, one, "-again", "1")
	add("s3far", "write", "write, ", "", append(slices.Clone(one[:1]), blosc))
	return all
}

// remoteUnit returns one case: the same array read, or the same numbers written, by all capable programs.
func (p *plan) remoteUnit(s *servers, group, op string, a remoteArray, kind, label, path string, args ...string) unit {
	u := unit{header: header{Name: group + "/" + op + "/" + a.name + kind, Group: group, Label: label + a.label + kindLabel(a.name, kind), Unit: "ms"}, env: s.s3[group]}
	u.large = op == "full" || op == "write"
	if u.large { // a box or a plane cannot take less than one wait for an answer, for anybody
		u.Targets = against(peerNames["zarr"], 2)
		if group == "web" {
			u.Targets = append(u.Targets, target{Against: peerNames["tensorstore"], Ratio: 1.5})
		}
	}
	if op == "write" {
		const written = "s3://" + s3emu.Bucket + "/written.zarr"
		path, u.writes, u.output = p.plain(kind), true, written
		args = []string{"-shape", join(p.shape), "-codec", a.codec, "-chunks", a.chunk, "-out", written}
		if a.shard != "" {
			args = append(args, "-shard", a.shard)
		}
	} else {
		u.stored = filepath.Join(p.data, "arrays", a.name+kind+".zarr")
	}
	for _, c := range p.everybody(op, path, args...) {
		if c.who == strata || c.who == peerNames["zarr"] || c.who == peerNames["tensorstore"] {
			u.who = append(u.who, c)
		}
	}
	return u
}
