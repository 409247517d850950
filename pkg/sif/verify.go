package sif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/sylabs/sif/v2/pkg/integrity"
	"github.com/sylabs/sif/v2/pkg/sif"
)

// ErrSignature is wrapped by errors that say why an image cannot be trusted.
var ErrSignature = errors.New("signature")

// Signer identifies who signed an image.
type Signer struct {
	Name        string   `json:"name"` // of the key, "" if it has none
	Fingerprint string   `json:"fingerprint"`
	Objects     []uint32 `json:"objects"`
}

// Verify checks that a key of the ring has signed every object and that all are unchanged. It returns the
// signers.
func (i *Image) Verify(ctx context.Context, keys openpgp.EntityList) ([]Signer, error) {
	var signers []Signer
	v, err := integrity.NewVerifier(i.image, integrity.OptVerifyWithKeyRing(keys), integrity.OptVerifyWithContext(ctx),
		integrity.OptVerifyCallback(func(r integrity.VerifyResult) bool {
			if r.Error() != nil || r.Entity() == nil {
				return false
			}
			s := Signer{Fingerprint: fmt.Sprintf("%X", r.Entity().PrimaryKey.Fingerprint)}
			if id := r.Entity().PrimaryIdentity(); id != nil {
				s.Name = id.Name
			}
			for _, d := range r.Verified() {
				s.Objects = append(s.Objects, d.ID())
			}
			signers = append(signers, s)
			return false
		}))
	if err == nil {
		err = v.Verify()
	}
	if err != nil {
		return nil, i.distrust(err)
	}
	return signers, nil
}

// signedWithPEM reports whether a signature is an envelope of the kind that apptainer sign --key makes, not
// an OpenPGP message.
func (i *Image) signedWithPEM() bool {
	found := false
	i.image.WithDescriptors(func(d sif.Descriptor) bool {
		if d.DataType() == sif.DataSignature && d.Size() <= maxText {
			text, err := d.GetData()
			found = found || err == nil && json.Valid(text)
		}
		return found
	})
	return found
}

// distrust explains to a user why an image cannot be trusted.
func (i *Image) distrust(err error) error {
	var object *integrity.ObjectIntegrityError
	var descriptor *integrity.DescriptorIntegrityError
	var invalid *integrity.SignatureNotValidError
	var why string
	switch {
	case errors.Is(err, &integrity.SignatureNotFoundError{}):
		why = "it is not signed"
	case errors.As(err, &object):
		why = fmt.Sprintf("object %d is not as it was signed", object.ID)
	case errors.As(err, &descriptor):
		why = fmt.Sprintf("descriptor %d is not as it was signed", descriptor.ID)
	case errors.Is(err, integrity.ErrHeaderIntegrity):
		why = "its header is not as it was signed"
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		why = "it is signed by a key that is not in the key ring"
	case i.signedWithPEM():
		why = "it is signed with a PEM key: only OpenPGP signatures are checked here: apptainer verify --key checks that one"
	case errors.As(err, &invalid):
		why = "its signature is not valid: " + invalid.Err.Error()
	default:
		why = err.Error()
	}
	return fmt.Errorf("%s: %w: %s", i.path, ErrSignature, why)
}
