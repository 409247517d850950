package recipe

import (
	"context"
	"slices"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"strata/pkg/sif/deb"
)

// Renew selects the mirror's current versions. With keys, one of them must have signed the archive's index.
func Renew(ctx context.Context, m *deb.Mirror, arch string, keys openpgp.EntityList, now time.Time) (*deb.Lock, error) {
	index, err := m.Index(ctx, Suite, arch, keys)
	if err != nil {
		return nil, err
	}
	l := &deb.Lock{Suite: Suite, Arch: arch, Date: now.UTC().Truncate(time.Second)}
	if l.Packages, err = index.Resolve(Packages, skip); err != nil {
		return nil, err
	}
	all, err := index.Resolve(slices.Concat(Packages, ForNVIDIA), skip)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if l.Package(p.Name) == nil {
			l.Extra = append(l.Extra, p)
		}
	}
	return l, nil
}
