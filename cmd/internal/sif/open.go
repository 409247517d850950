package sif

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/runrecord"
	"strata/pkg/sif"
)

func extractCommand() *cli.Command {
	return &cli.Command{
		Name:  "extract",
		Usage: "unpack the root file system of an image, or a part of it",
		Description: "Needs neither root nor squashfs-tools. You own the files; device files are left out. With --path, DIR contains\n" +
			"only that file or folder, under its name in the image.",
		Args: []cli.Arg{imageArg, {Name: "DIR", Usage: "folder to create; an existing one must be empty"}},
		Flags: []cli.Flag{
			{Name: "path", Value: "PATH", Default: "/", Usage: "file or folder of the image to unpack"},
		},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "sif extract strata.sif root", Usage: "everything"},
			{Command: "sif extract strata.sif bill --path /usr/share/doc/strata", Usage: "the bill of materials"},
		},
		Run: cli.Do(onImage(runExtract)),
	}
}

func runExtract(ctx context.Context, r *cli.Run, image *sif.Image) error {
	out, err := r.OutputFolder(r.Arg("DIR"), nil)
	if err != nil {
		return err
	}
	skipped, err := image.Extract(ctx, r.String("path"), out.Work())
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		r.Warn("%d device files, pipes or sockets are left out: %s", len(skipped), strings.Join(skipped[:min(3, len(skipped))], ", "))
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
	return nil
}

func runRootCommand() *cli.Command {
	return &cli.Command{
		Name:  "run-root",
		Usage: "run a command in an image where Apptainer is missing",
		Description: "Unpacks the root file system once into a cache and runs CMD there in a user namespace. The image is read-only;\n" +
			"/dev, /proc, /sys, /tmp, /var/tmp, the home folder and the working folder are those of the machine. Without CMD,\n" +
			"or with flags in its place, the runscript of the image runs: run-root strata.sif --help.\n\n" +
			"Flags of run-root go before CMD. The exit code is that of the command.",
		Args: []cli.Arg{imageArg, {Name: "CMD", Usage: "command and its arguments", Optional: true, Many: true, Rest: true}},
		Flags: []cli.Flag{
			{Name: "bind", Short: "B", Kind: cli.Strings, Value: "SRC[:DST[:ro]],...", Usage: "make a file or folder of the machine visible in the image, as DST; ro makes it read-only"},
			{Name: "pwd", Value: "DIR", Note: "the current folder", Usage: "working folder in the image"},
			{Name: "env", Kind: cli.Strings, Value: "KEY=VALUE,...", Usage: "environment variables to set besides those of the machine and the image"},
			{Name: "nv", Kind: cli.Bool, Usage: "make the libraries and programs of NVIDIA's driver visible in the image"},
			{Name: "cache", Value: "DIR", Note: "strata/sif in the user's cache", Usage: "folder in which images are unpacked"},
			{Name: "inside", Kind: cli.Bool, Hidden: true, Usage: "the second half of a run, which the first one starts"},
		},
		Examples: []cli.Example{
			{Command: "sif run-root --bind /well/group/data:/data strata.sif aip /data/in.ome.zarr out.ome.zarr", Usage: "run a stage"},
			{Command: "sif run-root strata.sif bash", Usage: "open a shell"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error {
			if r.Bool("inside") {
				_ = sif.Inside()                      // returns only when it failed, and
				return cli.ExitStatus(cli.ExitFailed) // the first half says why
			}
			return onImage(runRoot)(ctx, r)
		}),
	}
}

func runRoot(ctx context.Context, r *cli.Run, image *sif.Image) error {
	path := r.Arg("IMAGE")
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	run := sif.Run{
		Image: whole, Args: r.Args("CMD"), Dir: r.String("pwd"), Env: r.Strings("env"), NVIDIA: r.Bool("nv"),
		Self:  []string{"sif", "run-root", "--inside", "--", path},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	for _, v := range run.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.HasPrefix(v, "-") {
			return cli.Usage("flag --env: %q is not KEY=VALUE", v)
		}
	}
	for _, text := range r.Strings("bind") {
		b, err := sif.ParseBind(text)
		if err != nil {
			return cli.Usage("flag --bind: %w", err)
		}
		run.Binds = append(run.Binds, b)
	}
	if run.NVIDIA && !sif.DriverFound() {
		r.Warn("--nv: no library of NVIDIA's driver was found here: the command will see no GPU")
	}
	cache := r.String("cache")
	if cache == "" {
		var err error
		if cache, err = cacheDir("sif"); err != nil {
			return err
		}
	}
	root, err := image.Unpack(ctx, cache)
	if err != nil {
		return err
	}
	run.Root = root
	code, err := sif.RunRoot(ctx, run)
	if err != nil {
		return err
	}
	return cli.ExitStatus(code)
}
