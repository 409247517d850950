package run

import (
	"slices"
	"strings"
	"testing"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli/flags"
	"strata/pkg/runrecord"
)

// Names of inputs are their last parts, without levels, queries and secrets.
func TestNamesInProvenance(t *testing.T) {
	for place, want := range map[string]string{
		"m.ome.zarr": "m.ome.zarr", "/home/ada/m.ome.zarr/": "m.ome.zarr", "/a/m.ome.zarr/0": "m.ome.zarr", "/a/b.zarr/1/0": "b.zarr", "7": "7",
		"s3://key:s3cr3t@bucket/k/m.ome.zarr?endpoint=http://127.0.0.1:1&X=s3cr3t": "m.ome.zarr", "https://ada:s3cr3t@host/scan.svs?token=s3cr3t": "scan.svs",
	} {
		if got := imageName(place); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
}

// A command line in an image has what was given and changes it, and no secrets.
func TestProvenance(t *testing.T) {
	c := &flags.Command{Name: "tool", Usage: "x", Args: []flags.Arg{{Name: "IN"}, {Name: "OUT"}}, Shared: flags.Stage, Flags: []flags.Flag{
		{Name: "map", Value: "FILE"}, {Name: "also", Value: "OUT"}, {Name: "blend", Kind: flags.Bool, Default: "true"}, {Name: "um", Kind: flags.Floats, Default: "10"}, {Name: "rest"}}}
	c = &flags.Command{Name: "tool", Usage: "x", Commands: []*flags.Command{c}}
	c.Commands[0].Name = "part"
	r := &Run{outputs: atomic.NewGroup(atomic.Options{})}
	err := flags.Parse(c, strings.Fields("part https://ada:s3cr3t@host/in.zarr?token=s3cr3t out.zarr -j 7 --mem 1GiB --map /home/ada/m.json --also /home/ada/folder --no-blend --um 2.5,10 --codec zstd:3 --report r.json -f -q --rest http://u:s3cr3t@h/a?b=s3cr3t"), func(l *flags.Line) error {
		r.Line = l
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.record.Inputs = []runrecord.Dataset{{Path: address.Address("https://ada:s3cr3t@host/in.zarr/0?token=s3cr3t")}, {Path: "in.zarr/1"}}
	p := r.Provenance("out.zarr")
	want := []string{"tool", "part", "in.zarr", "--map", "m.json", "--no-blend", "--um", "2.5,10"}
	if len(p.Command) < len(want) || !slices.Equal(p.Command[:len(want)], want) || !slices.Equal(p.Command[len(p.Command)-2:], []string{"--codec", "zstd:3"}) {
		t.Errorf("%q", p.Command)
	}
	if text := strings.Join(p.Command, " "); strings.Contains(text, "s3cr3t") || strings.Contains(text, "ada") || strings.Contains(text, "-j") {
		t.Errorf("%q", p.Command)
	}
	if !slices.Equal(p.Inputs, []string{"in.zarr"}) || p.Program != "tool" || p.Version == "" {
		t.Errorf("%+v", p)
	}
}

// A record has the flags that change what is computed and are not the program's defaults, under an alias too.
func TestSettings(t *testing.T) {
	c := &flags.Command{Name: "tool", Usage: "x", Shared: flags.Stage, Args: []flags.Arg{{Name: "IN"}}, Flags: []flags.Flag{
		{Name: "map", Value: "FILE"}, {Name: "kept", Value: "FILE", Written: true}, {Name: "blend", Kind: flags.Bool, Default: "true"}, {Name: "fast", Kind: flags.Bool},
		{Name: "um", Kind: flags.Floats, Value: "UM", Default: "10"}, {Name: "overlap", Kind: flags.Float, Note: "measured"}, {Name: "depth", Kind: flags.Int, Default: "3"}},
		Aliases: []flags.Alias{{Name: "other", Defaults: flags.Defaults{"depth": "4"}}}}
	set := func(c *flags.Command, line string) []runrecord.Setting {
		r := &Run{}
		if err := flags.Parse(c, strings.Fields(line), func(l *flags.Line) error { r.Line = l; return nil }); err != nil {
			t.Fatal(err)
		}
		return r.settings()
	}
	got := set(c, "in.zarr -j 7 --codec zstd:3 -f --report r.json --map /home/ada/m.json --kept k.json --blend --no-fast --um 2.5,10 --overlap 0 --depth 3")
	want := []runrecord.Setting{{Name: "map", Value: "m.json", File: true}, {Name: "um", Value: "2.5,10", Unit: "µm"}, {Name: "overlap", Value: "0"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := set(c, "in.zarr"); got == nil || len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if got := set(c.CalledAs("other"), "in.zarr"); !slices.Equal(got, []runrecord.Setting{{Name: "depth", Value: "4"}}) {
		t.Errorf("%+v", got)
	}
	if got := set(c.CalledAs("other"), "in.zarr --depth 3"); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
