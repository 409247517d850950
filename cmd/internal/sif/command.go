// Package sif implements the command sif, which builds, signs, checks and opens container images in the
// Singularity image format, without Apptainer and without root.
package sif

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/sif"
	"strata/pkg/sif/deb"
	"strata/pkg/sif/recipe"
)

// Command returns the command sif.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "sif",
		Usage: "build, sign, verify and run container images (SIF) without Apptainer and without root",
		Commands: []*cli.Command{
			buildCommand(), lockCommand(), listCommand(), inspectCommand(), signCommand(), verifyCommand(), extractCommand(), runRootCommand(),
		},
	}
}

// fault gives errors caused by an input their exit code.
func fault(err error) error {
	for _, kind := range []error{sif.ErrDefinition, sif.ErrImage, sif.ErrArch, sif.ErrKey, sif.ErrSignature, sif.ErrBind, recipe.ErrRecipe} {
		if errors.Is(err, kind) {
			return cli.BadInput(err)
		}
	}
	return err
}

// onImage returns a command's Run that opens the argument IMAGE.
func onImage(do func(ctx context.Context, r *cli.Run, image *sif.Image) error) func(context.Context, *cli.Run) error {
	return func(ctx context.Context, r *cli.Run) error {
		path, err := r.LocalInput(r.Arg("IMAGE"))
		if err != nil {
			return err
		}
		image, err := sif.Open(path)
		if err != nil {
			return fault(err)
		}
		defer image.Close()
		return fault(do(ctx, r, image))
	}
}

var imageArg = cli.Arg{Name: "IMAGE", Usage: "SIF image file"}

// Where Debian's archives are.
var mirrorFlags = []cli.Flag{
	{Name: "mirror", Value: "URL", Note: "STRATA_DEBIAN_MIRROR, or " + deb.DefaultMirror, Usage: "Debian archive to download packages from"},
	{Name: "security_mirror", Value: "URL", Note: "STRATA_DEBIAN_SECURITY_MIRROR, or the mirror's with -security behind it", Usage: "Debian archive to download security updates from"},
}

func mirror(r *cli.Run) *deb.Mirror {
	value := func(flag, variable string) string {
		if v := r.String(flag); v != "" {
			return v
		}
		return os.Getenv(variable)
	}
	return &deb.Mirror{URL: value("mirror", "STRATA_DEBIAN_MIRROR"), Security: value("security_mirror", "STRATA_DEBIAN_SECURITY_MIRROR")}
}

// cacheDir returns a folder in the user's cache.
func cacheDir(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", cli.Usage("no folder for the cache: set HOME or XDG_CACHE_HOME, or give --cache")
	}
	return filepath.Join(dir, "strata", name), nil
}

var archFlag = cli.Flag{Name: "arch", Choices: sif.Architectures, Note: "this machine's", Usage: "processor architecture of the image"}
