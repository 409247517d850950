package sif

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"strata/pkg/smallfile"
)

// ErrKey is wrapped by errors about key rings.
var ErrKey = errors.New("key ring")

// ReadKeys reads OpenPGP keys from files, each armored or not.
func ReadKeys(ctx context.Context, paths ...string) (openpgp.EntityList, error) {
	var all openpgp.EntityList
	for _, path := range paths {
		text, err := smallfile.Read(ctx, path)
		if err != nil {
			return nil, err
		}
		// A file may hold several armored blocks one after the other.
		n, rest := len(all), text
		for {
			at := bytes.Index(rest, []byte("-----BEGIN PGP"))
			if at < 0 {
				break
			}
			r := bytes.NewReader(rest[at:])
			block, err := armor.Decode(r)
			if err != nil {
				return nil, fmt.Errorf("%w %s: %w", ErrKey, path, err)
			}
			keys, err := openpgp.ReadKeyRing(block.Body)
			if err != nil {
				return nil, fmt.Errorf("%w %s: %w", ErrKey, path, err)
			}
			all = append(all, keys...)
			next := bytes.Index(rest[at:], []byte("-----END PGP"))
			if next < 0 {
				break
			}
			rest = rest[at+next+1:]
		}
		if len(all) == n {
			keys, err := openpgp.ReadKeyRing(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%w %s: %w: want OpenPGP keys, armored or not", ErrKey, path, err)
			}
			all = append(all, keys...)
		}
		if len(all) == n {
			return nil, fmt.Errorf("%w %s: it holds no keys", ErrKey, path)
		}
	}
	return all, nil
}

// signingKey returns the one key of a ring that can sign, unlocked. If there are several, id, the end of a
// fingerprint in hex, selects one.
func signingKey(keys openpgp.EntityList, id string, passphrase []byte) (*openpgp.Entity, error) {
	var found *openpgp.Entity
	for _, k := range keys {
		if k.PrivateKey == nil || !hasSuffixFold(fmt.Sprintf("%X", k.PrimaryKey.Fingerprint), id) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several private keys: say which by the end of its fingerprint (%X, %X)", ErrKey,
				found.PrimaryKey.Fingerprint, k.PrimaryKey.Fingerprint)
		}
		found = k
	}
	if found == nil && id != "" {
		return nil, fmt.Errorf("%w: no private key whose fingerprint ends in %s", ErrKey, id)
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no private key in it", ErrKey)
	}
	if found.PrivateKey.Encrypted {
		if len(passphrase) == 0 {
			return nil, fmt.Errorf("%w: key %X is locked: a passphrase is needed", ErrKey, found.PrimaryKey.Fingerprint)
		}
		if err := found.DecryptPrivateKeys(passphrase); err != nil {
			return nil, fmt.Errorf("%w: key %X: wrong passphrase: %w", ErrKey, found.PrimaryKey.Fingerprint, err)
		}
	}
	return found, nil
}

func hasSuffixFold(s, suffix string) bool {
	return len(suffix) <= len(s) && bytes.EqualFold([]byte(s[len(s)-len(suffix):]), []byte(suffix))
}
