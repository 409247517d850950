package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"strata/tests/regions"
	"strata/tests/s3emu"
)

// campaigns returns all campaigns except fuzzing; stop ends the server that they share.
func campaigns(_ context.Context, f *fixtures, o options) (all []campaign, stop func(), err error) {
	server, stopServer, err := s3emu.Run("a-key", "a-secret")
	if err != nil {
		return nil, nil, err
	}
	b := &bucket{fixtures: f, server: server}
	all = []campaign{
		{name: "killed while writing a local output", tries: o.kills, try: f.kill,
			promise: "The output is the old or the new one, byte for byte. The next run succeeds and removes any remains."},
		{name: "killed while rebuilding a pyramid in place", tries: o.kills / 5, try: f.killInPlace,
			promise: "The image has its old or its new pyramid and passes `validate`. The next run succeeds."},
		{name: "killed while replacing an image in a bucket", tries: o.kills / 10, try: b.kill,
			promise: "The image is the old or the new one; after SIGKILL it may be refused as unfinished. The next run succeeds."},
		{name: "disk full, or file size limit reached", tries: o.full, try: f.fill,
			promise: "If a write fails: exit code 1, the output is as before, and nothing else is left."},
		{name: "damaged inputs", tries: o.hostile, try: f.hostile,
			promise: "Success, or an exit code and one line that names the input. No crash, no hang, no more memory than `--mem` plus 256 MiB."},
	}
	for i := range all {
		all[i].dir = f.dir
	}
	return all, func() { _ = stopServer() }, nil
}

// levelsOf returns the number of levels of an image, as reported by zarr-tool info.
func levelsOf(ctx context.Context, bin, image string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "zarr-tool"), "info", image).Output()
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`\d+ levels?`).Find(out)
	if found == nil {
		return "", fmt.Errorf("zarr-tool info names no levels: %q", out)
	}
	return string(found), nil
}

var execs = regexp.MustCompile(`execs: (\d+)`)

// fuzzAll runs every fuzz target of the module for some time.
func fuzzAll(ctx context.Context, each time.Duration) (result, error) {
	started := time.Now()
	res := result{Name: "fuzzing of parsers and codecs", Promise: "No input makes a parser or a codec panic, hang or disagree with its oracle.", Outcomes: map[string]int{}}
	out, err := exec.CommandContext(ctx, "scripts/fuzz.sh", each.String()).CombinedOutput()
	var last int
	count := func() { res.Tries += last; last = 0 }
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "== ") {
			count()
			res.Outcomes["fuzz targets"]++
		}
		if m := execs.FindStringSubmatch(line); m != nil {
			last, _ = strconv.Atoi(m[1])
		}
	}
	count()
	if err != nil {
		res.Lost++
		res.Failures = append(res.Failures, string(out[max(0, len(out)-2000):]))
	}
	res.Seconds = time.Since(started).Seconds()
	return res, ctx.Err()
}

// writePage replaces the tables of a page: that of flipped bits, and after a run of all campaigns theirs.
func writePage(o options, results []result) error {
	tables := map[string]string{}
	for _, r := range results {
		if r.Flipped != nil {
			tables["flips"] = flippedTable(r.Flipped)
		}
	}
	if o.only == "" {
		tables["soak"] = campaignTable(results)
	}
	return regions.Write(o.page, o.page, tables)
}

// campaignTable returns the table of the campaigns.
func campaignTable(results []result) string {
	var b strings.Builder
	b.WriteString("| attack | tries | lost | outcomes | promise checked |\n|---|---:|---:|---|---|\n")
	for _, r := range results {
		outcomes, err := json.Marshal(r.Outcomes) // in the order of their names
		if err != nil {
			panic(err) // numbers by name
		}
		text := strings.NewReplacer(`{"`, "", `":`, ": ", `,"`, "; ", "}", "").Replace(string(outcomes))
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", r.Name, r.Tries, r.Lost, text, r.Promise)
	}
	return b.String()
}
