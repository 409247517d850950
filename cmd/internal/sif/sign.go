package sif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/sif"
	"strata/pkg/smallfile"
)

func signCommand() *cli.Command {
	return &cli.Command{
		Name:  "sign",
		Usage: "sign an image with an OpenPGP key",
		Description: "Adds to the image file a signature of all its objects. apptainer verify accepts it if it knows the key.\n" +
			"SOURCE_DATE_EPOCH sets the time of the signature.",
		Args: []cli.Arg{imageArg},
		Flags: []cli.Flag{
			{Name: "keyring", Short: "k", Kind: cli.Strings, Value: "FILE,...", Usage: "files that contain the private key, armored or binary"},
			{Name: "key", Value: "HEX", Usage: "last digits of the fingerprint of the key to use, if there are several keys"},
			{Name: "passphrase_file", Value: "FILE", Usage: "file whose first line is the passphrase of the key"},
		},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "gpg --armor --export-secret-keys you@example.org > key.asc; sif sign strata.sif --keyring key.asc", Usage: "with a key from GnuPG"},
		},
		Run: cli.Do(onImage(runSign)),
	}
}

func runSign(ctx context.Context, r *cli.Run, image *sif.Image) (err error) {
	if !r.IsSet("keyring") {
		return cli.Usage("--keyring is missing: name a file with the private key")
	}
	o := sif.SignOptions{ID: r.String("key")}
	if o.Keys, err = sif.ReadKeys(ctx, r.Strings("keyring")...); err != nil {
		return missingInput(err)
	}
	if path := r.String("passphrase_file"); path != "" {
		text, err := smallfile.Read(ctx, path)
		if err != nil {
			return missingInput(err)
		}
		o.Passphrase, _, _ = bytes.Cut(text, []byte("\n"))
	}
	at, given, err := epoch()
	if err != nil {
		return err
	}
	if given {
		o.Time = at
	}
	// The image is replaced by its signed copy as a whole.
	g := atomic.NewGroup(atomic.Options{Overwrite: true, Sync: r.Options.Sync, Warn: r.Warn})
	defer g.Abort()
	out, err := g.File(r.Arg("IMAGE"), nil)
	if err != nil {
		return err
	}
	print, err := image.Sign(ctx, out.Work(), o)
	if err != nil {
		return err
	}
	if err := g.Commit(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Stdout, "%s: signed by key %s\n", r.Arg("IMAGE"), print)
	return err
}

// missingInput gives errors about files named by flags their exit code.
func missingInput(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return cli.BadInput(err)
	}
	return err
}

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:        "verify",
		Usage:       "check that an image is unchanged since it was signed, and by whom",
		Description: "Exits with code 3 if an object is unsigned, was changed, or was signed by a key that is not in the key ring.",
		Args:        []cli.Arg{imageArg},
		Flags: []cli.Flag{
			{Name: "keyring", Short: "k", Kind: cli.Strings, Value: "FILE,...", Usage: "files that contain the public keys to trust, armored or binary"},
			{Name: "json", Kind: cli.Bool, Usage: "print JSON: name, fingerprint and objects of each signature"},
		},
		Examples: []cli.Example{
			{Command: "sif verify strata.sif --keyring strata.asc", Usage: "before you install an image for others"},
		},
		Run: cli.Do(onImage(runVerify)),
	}
}

func runVerify(ctx context.Context, r *cli.Run, image *sif.Image) error {
	if !r.IsSet("keyring") {
		return cli.Usage("--keyring is missing: name a file with the public keys to trust")
	}
	keys, err := sif.ReadKeys(ctx, r.Strings("keyring")...)
	if err != nil {
		return missingInput(err)
	}
	signers, err := image.Verify(ctx, keys)
	if err != nil {
		return err
	}
	if r.Bool("json") {
		return writeJSON(r.Stdout, signers)
	}
	for _, s := range signers {
		if _, err := fmt.Fprintf(r.Stdout, "%s: signed by %s, key %s: objects %v\n", r.Arg("IMAGE"), printable(s.Name), s.Fingerprint, s.Objects); err != nil {
			return err
		}
	}
	return nil
}
