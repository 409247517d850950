package sif

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/runrecord"
	"strata/pkg/sif"
	"strata/pkg/sif/deb"
	"strata/pkg/sif/recipe"
	"strata/pkg/smallfile"
)

func buildCommand() *cli.Command {
	return &cli.Command{
		Name:  "build",
		Usage: "build an image from a definition file, or the project's own image",
		Description: "A definition file begins with \"Bootstrap: scratch\" (an empty root with mount points) or \"Bootstrap: strata\" (the\n" +
			"project's root). It may have %files, %environment, %labels, %runscript, %startscript, %test and %help, but no\n" +
			"%post, since nothing runs in the image. Without DEF, builds the project's own image: a shell and text tools from\n" +
			"Debian packages of pinned versions, and the programs of --binaries.\n\n" +
			"The same inputs give the same bytes. All files are dated SOURCE_DATE_EPOCH (in seconds, default 0). Needs\n" +
			"mksquashfs.",
		Args: []cli.Arg{
			{Name: "OUT", Usage: "image file to write"},
			{Name: "DEF", Usage: "definition file; without it, the project's own image", Optional: true},
		},
		Flags: append([]cli.Flag{
			archFlag,
			{Name: "comp", Default: "gzip", Choices: sif.Compressions, Usage: "compression of the root file system; every kernel reads gzip"},
			{Name: "binaries", Kind: cli.Strings, Value: "FILE,...", Usage: "programs to put into /usr/local/bin, or folders of programs"},
			{Name: "links", Kind: cli.Strings, Value: "NAME,...", Usage: "names that become links to the program of --binaries, which runs as many programs"},
			{Name: "workflow", Value: "DIR", Usage: "source tree whose Nextflow workflow and guided scripts to put into /usr/share/strata"},
			{Name: "label", Kind: cli.Strings, Value: "KEY=VALUE,...", Usage: "labels to add to those of the definition file"},
			{Name: "with_nvidia", Kind: cli.Bool, Usage: "add NVIDIA's cuFile and nvCOMP libraries, under their licences; pip3 downloads them"},
			{Name: "wheels", Value: "DIR", Usage: "folder of the Python wheels for --with_nvidia; missing ones are downloaded into it"},
			{Name: "lock", Value: "FILE", Note: "built into the program", Usage: "file with the versions of the Debian packages, as sif lock writes it"},
			{Name: "snapshot", Value: "URL", Note: "STRATA_DEBIAN_SNAPSHOT, or " + deb.DefaultSnapshot, Usage: "archive of old Debian packages, for versions that the mirror no longer has"},
			{Name: "cache", Value: "DIR", Note: "strata/deb in the user's cache", Usage: "folder in which to keep downloaded packages"},
			{Name: "threads", Short: "j", Kind: cli.Int, Note: "all CPUs of the job", Check: cli.Between(1, 4096), Usage: "number of worker threads, 1 to 4096"},
		}, mirrorFlags...),
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "sif build strata.sif --binaries bin/aip,bin/stack", Usage: "the project's image with two programs"},
			{Command: "sif build tool.sif tool.def", Usage: "an image of your own files, with Bootstrap: scratch and %files"},
			{Command: "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) sif build strata.sif --binaries bin/strata --links aip,stack", Usage: "one program under several names, dated like the commit"},
		},
		Run: cli.Do(runBuild),
	}
}

func runBuild(ctx context.Context, r *cli.Run) error {
	def := recipe.Definition()
	if path := r.Arg("DEF"); path != "" {
		var err error
		if def, err = readDefinition(ctx, r, path); err != nil {
			return err
		}
	}
	at, dated, err := epoch()
	if err != nil {
		return err
	}
	b := sif.Build{Definition: def, Arch: arch(r), Time: at, Compression: r.String("comp"), Threads: r.Options.Threads}
	if r.IsSet("threads") {
		b.Threads = r.Int("threads")
	}
	if b.Labels, err = labels(r, at, dated); err != nil {
		return err
	}
	var names []string
	b.Finish = func(root *sif.Root) (err error) {
		names, err = root.Files()
		return err
	}
	if def.Bootstrap() == sif.Strata {
		fill, err := ownRecipe(ctx, r, b.Arch, at)
		if err != nil {
			return fault(err)
		}
		b.Populate = fill.Populate
	} else if err := onlyScratch(r); err != nil {
		return err
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	if err := b.Write(ctx, out.Work()); err != nil {
		return fault(err)
	}
	r.Conclude("%d files, %s", len(names), b.Arch)
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
	return nil
}

// onlyScratch returns an error for flags that have no meaning for an image without the recipe.
func onlyScratch(r *cli.Run) error {
	for _, flag := range []string{"binaries", "links", "workflow", "with_nvidia", "wheels", "lock"} {
		if r.IsSet(flag) {
			return cli.Usage("flag --%s is for Bootstrap: strata: put files into an image from scratch with %%files", flag)
		}
	}
	return nil
}

func readDefinition(ctx context.Context, r *cli.Run, path string) (*sif.Definition, error) {
	path, err := r.LocalInput(path)
	if err != nil {
		return nil, err
	}
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	defer f.Close()
	def, err := sif.ParseDefinition(path, f)
	if err == nil {
		err = def.Check()
	}
	return def, cli.BadInput(err)
}

func arch(r *cli.Run) string {
	if a := r.String("arch"); a != "" {
		return a
	}
	return runtime.GOARCH
}

// epoch returns the modification time of all files, and whether it was given.
func epoch() (at time.Time, given bool, err error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0), false, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<32-1 {
		return time.Time{}, false, cli.Usage("SOURCE_DATE_EPOCH=%s: want seconds since 1970 that fit into 32 bits", text)
	}
	return time.Unix(seconds, 0), true, nil
}

// labels returns the labels that every image gets, and those of --label.
func labels(r *cli.Run, at time.Time, dated bool) (map[string]string, error) {
	l := map[string]string{"org.opencontainers.image.version": cli.Version()}
	if commit := cli.Commit(); commit != "" {
		l["org.opencontainers.image.revision"] = commit
	}
	if dated {
		l["org.opencontainers.image.created"] = at.UTC().Format(time.RFC3339)
		l["org.label-schema.build-date"] = at.UTC().Format(time.RFC3339)
	}
	for _, text := range r.Strings("label") {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, cli.Usage("flag --label: %q is not KEY=VALUE", text)
		}
		l[key] = value
	}
	return l, nil
}

// ownRecipe returns the recipe of the project's image, configured by the flags.
func ownRecipe(ctx context.Context, r *cli.Run, arch string, at time.Time) (*recipe.Recipe, error) {
	files, err := programs(r)
	if err != nil {
		return nil, err
	}
	lock, err := lockOf(ctx, r, arch)
	if err != nil {
		return nil, err
	}
	m := mirror(r)
	if m.Snapshot = r.String("snapshot"); m.Snapshot == "" {
		m.Snapshot = os.Getenv("STRATA_DEBIAN_SNAPSHOT")
	}
	if m.Cache = r.String("cache"); m.Cache == "" {
		if m.Cache, err = cacheDir("deb"); err != nil {
			return nil, err
		}
	}
	fill := &recipe.Recipe{
		Arch: arch, Lock: lock, Mirror: m, Binaries: files, Links: r.Strings("links"), Source: r.String("workflow"), NVIDIA: r.Bool("with_nvidia"),
		Wheels: &recipe.Wheels{Dir: r.String("wheels")}, Version: cli.Version(), Commit: cli.Commit(), Time: at, Warn: r.Warn,
	}
	return fill, fill.Check()
}

// programs returns the files of --binaries.
func programs(r *cli.Run) ([]string, error) {
	if !r.IsSet("binaries") {
		return nil, cli.Usage("--binaries is missing: name the programs to put into the image, or their folder")
	}
	var out []string
	for _, name := range r.Strings("binaries") {
		name, err := r.LocalInput(name)
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			out = append(out, name) // a file
			continue
		}
		n := len(out)
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(name, e.Name())); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				out = append(out, filepath.Join(name, e.Name()))
			}
		}
		if len(out) == n {
			return nil, cli.BadInputf("%s: no files in it", name)
		}
	}
	return out, nil
}

func lockOf(ctx context.Context, r *cli.Run, arch string) (*deb.Lock, error) {
	path := r.String("lock")
	if path == "" {
		return recipe.Lock(arch)
	}
	text, err := smallfile.Read(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.BadInputf("%s: no such file", path)
	}
	if err != nil {
		return nil, cli.BadInput(err)
	}
	lock, err := deb.ReadLock(bytes.NewReader(text))
	if err != nil {
		return nil, cli.BadInputf("%s: %w", path, err)
	}
	return lock, nil
}
