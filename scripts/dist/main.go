// Command dist packs strata for machines without Go: archives for Linux and macOS, Debian packages, Python wheels, a
// bill of materials and checksums (make dist), or a folder with the same files (make install). The same sources, commit
// and compiler give the same bytes: files have the time of the commit, belong to root, and stand in order.
//
//	go run ./scripts/dist -version 0.19.0 -ldflags "$LDFLAGS" -out build/dist
//	go run ./scripts/dist -version 0.19.0 -ldflags "$LDFLAGS" -install /usr/local
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/units"
	"strata/pkg/work"
)

// release describes the release to pack.
type release struct {
	root       string // of the sources
	version    string
	ldflags    string // of the build, which adds its own
	maintainer string // of the Debian packages
	at         time.Time
	say        io.Writer         // told of what is done
	programs   []string          // names by which strata is called, sorted
	taken      map[string]string // those that a package of Debian has too, and the package
	help       []entry           // manual pages and completions, which are the same on every machine
	workflow   []entry           // share/strata, likewise
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work.Guard(func() error { return run(ctx, os.Args[1:], os.Stderr) }); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, say io.Writer) error {
	fs := flag.NewFlagSet("dist", flag.ExitOnError)
	r := &release{say: say}
	fs.StringVar(&r.root, "root", ".", "folder of the sources")
	fs.StringVar(&r.version, "version", "", "version of the release")
	fs.StringVar(&r.ldflags, "ldflags", "", "flags for the linker, which set the version that programs print")
	fs.StringVar(&r.maintainer, "maintainer", "The strata authors <strata@users.noreply.github.com>", "maintainer of the Debian packages")
	out := fs.String("out", "", "folder for packages")
	prefix := fs.String("install", "", "folder to install into, instead of packing")
	all := fs.Bool("all-names", false, "with -install, link the programs whose names others have into bin too")
	targets := fs.String("targets", runtime.GOOS+"/"+runtime.GOARCH, "systems to pack for")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if r.version == "" || (*out == "") == (*prefix == "") || fs.NArg() > 0 {
		return fmt.Errorf("usage: dist -version V [-ldflags FLAGS] [-targets OS/ARCH,...] -out DIR | -install DIR [-all-names]")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("environment variable SOURCE_DATE_EPOCH: want the seconds of the commit: %w", err)
	}
	r.at = time.Unix(seconds, 0).UTC()
	if err := r.listPrograms(); err != nil {
		return err
	}
	if err := r.readNames(); err != nil {
		return err
	}
	if err := r.readWorkflow(); err != nil {
		return err
	}
	if *out != "" {
		fmt.Fprintf(r.say, "packing strata %s for %s into %s: the builds take a few minutes\n", r.version, strings.ReplaceAll(*targets, ",", ", "), *out)
	}
	dir, err := os.MkdirTemp("", "strata-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host := filepath.Join(dir, "strata")
	fmt.Fprintf(r.say, "build for %s/%s, with manual pages and completions\n", runtime.GOOS, runtime.GOARCH)
	if err := r.build(ctx, "", "", host); err != nil {
		return err
	}
	if r.help, err = r.describe(ctx, host); err != nil {
		return err
	}
	if *prefix != "" {
		t, err := r.tree(host)
		if err != nil {
			return err
		}
		return r.installInto(t, *prefix, *all, r.say)
	}
	return r.pack(ctx, dir, *out, strings.Split(*targets, ","))
}

// pack writes the packages of all targets into a folder, and their checksums.
func (r *release) pack(ctx context.Context, dir, out string, targets []string) error {
	files := map[string][]byte{}
	for _, target := range targets {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q: want OS/ARCH", target)
		}
		program := filepath.Join(dir, system+"-"+arch)
		if system == runtime.GOOS && arch == runtime.GOARCH {
			program = filepath.Join(dir, "strata") // is there already
		} else {
			fmt.Fprintf(r.say, "build for %s\n", target)
			if err := r.build(ctx, system, arch, program); err != nil {
				return err
			}
		}
		fmt.Fprintf(r.say, "pack for %s\n", target)
		t, err := r.tree(program)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("strata-%s-%s-%s", r.version, system, arch)
		readme := entry{name: "README", mode: 0o644, data: []byte(r.readme())}
		if files[name+".tar.gz"], err = tarGz(sorted(t, []entry{readme}), name+"/", r.at); err != nil {
			return err
		}
		wheel, content, err := r.wheel(t, system, arch)
		if err != nil {
			return err
		}
		files[wheel] = content
		if system == "linux" {
			if files[fmt.Sprintf("strata_%s_%s.deb", r.version, arch)], err = r.deb(t, arch); err != nil {
				return err
			}
		}
		files[name+".spdx.json"] = t.find("share/doc/strata/sbom.spdx.json").data
	}
	if err := writeAll(out, files); err != nil {
		return err
	}
	fmt.Fprintf(r.say, "wrote into %s, with their sums in SHA256SUMS:\n", out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(r.say, "  %s, %s\n", name, units.FormatSize(int64(len(files[name]))))
	}
	return nil
}
