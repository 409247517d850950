package sif

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/sylabs/sif/v2/pkg/integrity"
	"github.com/sylabs/sif/v2/pkg/sif"
)

// SignOptions select the key that signs an image.
type SignOptions struct {
	Keys       openpgp.EntityList
	ID         string    // end of a fingerprint, where several keys are private
	Passphrase []byte    // of a locked key
	Time       time.Time // of the signature; zero: now
}

// Sign copies the image to a file and adds a signature of all its objects. It returns the key's fingerprint.
func (i *Image) Sign(ctx context.Context, out string, o SignOptions) (fingerprint string, err error) {
	key, err := signingKey(o.Keys, o.ID, o.Passphrase)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(out, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if _, err := io.Copy(f, io.NewSectionReader(i.file, 0, i.size)); err != nil {
		return "", err
	}
	image, err := sif.LoadContainer(f, sif.OptLoadWithCloseOnUnload(false))
	if err != nil {
		return "", i.errorf("%w", err)
	}
	at := o.Time
	if at.IsZero() {
		at = time.Now()
	}
	signer, err := integrity.NewSigner(image, integrity.OptSignWithEntity(key), integrity.OptSignWithContext(ctx),
		integrity.OptSignWithTime(func() time.Time { return at }))
	if err != nil {
		return "", i.errorf("%w", err)
	}
	if err := signer.Sign(); err != nil {
		return "", fmt.Errorf("%s: %w", i.path, err)
	}
	return fmt.Sprintf("%X", key.PrimaryKey.Fingerprint), image.UnloadContainer()
}
