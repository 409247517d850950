package sif

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"strata/pkg/cli"
	"strata/pkg/sif"
	"strata/pkg/sif/recipe"
)

// archiveKeys is the path where Debian keeps the keys of its archives.
const archiveKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

func lockCommand() *cli.Command {
	return &cli.Command{
		Name:  "lock",
		Usage: "write down the newest versions of the Debian packages for sif build",
		Description: "Writes a text file with the name, version, location and SHA-256 of each package. Checks the signature of the\n" +
			"archive with the keys of --keyring, or those of the package debian-archive-keyring.",
		Args: []cli.Arg{{Name: "FILE", Usage: "lock file to write"}},
		Flags: append([]cli.Flag{
			archFlag,
			{Name: "keyring", Kind: cli.Strings, Value: "FILE,...", Note: archiveKeys + ", if it exists", Usage: "files of public keys that may have signed the Debian archive"},
		}, mirrorFlags...),
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "sif lock -f pkg/sif/recipe/bookworm-amd64.lock --arch amd64", Usage: "renew the versions in the source tree"},
		},
		Run: cli.Do(runLock),
	}
}

func runLock(ctx context.Context, r *cli.Run) error {
	files := r.Strings("keyring")
	if _, err := os.Stat(archiveKeys); err == nil && files == nil {
		files = []string{archiveKeys}
	}
	var keys openpgp.EntityList
	if files == nil {
		r.Warn("no %s: the archive's signature is not checked", archiveKeys)
	} else {
		var err error
		if keys, err = sif.ReadKeys(ctx, files...); err != nil {
			return fault(err)
		}
	}
	out, err := r.OutputFile(r.Arg("FILE"))
	if err != nil {
		return err
	}
	lock, err := recipe.Renew(ctx, mirror(r), arch(r), keys, time.Now())
	if err != nil {
		return err
	}
	return out.Write(func(w io.Writer) error { return lock.Write(w) })
}
