package deb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

// Limits of what a mirror may send.
const (
	maxRelease = 8 << 20
	maxIndex   = 256 << 20 // compressed, and plain a few times as much
)

// Index reads the mirror's current packages for a suite and an architecture: the release, its updates and its
// security updates, each checked against the SHA-256 in its Release file, and that against its signature if
// there is a key ring.
func (m *Mirror) Index(ctx context.Context, suite, arch string, keys openpgp.EntityList) (*Index, error) {
	x := new(Index)
	for _, part := range []struct{ archive, suite string }{
		{Main, suite}, {Main, suite + "-updates"}, {Security, suite + "-security"},
	} {
		if err := m.addIndex(ctx, x, part.archive, part.suite, arch, keys); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (m *Mirror) addIndex(ctx context.Context, x *Index, archive, suite, arch string, keys openpgp.EntityList) error {
	dist := m.base(archive) + "/dists/" + suite + "/"
	signed, err := m.read(ctx, dist+"InRelease", maxRelease)
	if err != nil {
		return err
	}
	sums, err := readRelease(signed, keys)
	if err != nil {
		return fmt.Errorf("%sInRelease: %w", dist, err)
	}
	name := "main/binary-" + arch + "/Packages"
	for _, ext := range []string{".xz", ".gz", ""} {
		want, ok := sums[name+ext]
		if !ok {
			continue
		}
		packed, err := m.read(ctx, dist+name+ext, maxIndex)
		if err != nil && ext != "" {
			continue // mirrors need not have all of them
		}
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(packed); int64(len(packed)) != want.size || hex.EncodeToString(sum[:]) != want.sum {
			return fmt.Errorf("%s%s%s: %d bytes, not the %d with the SHA-256 %s of the Release file", dist, name, ext, len(packed), want.size, want.sum)
		}
		if ext == "" {
			ext = ".tar" // as it is
		}
		plain, err := decompress(bytes.NewReader(packed), ext)
		if err != nil {
			return fmt.Errorf("%s%s: %w", dist, name, err)
		}
		defer plain.Close()
		if err := x.Read(&limited{plain, 8 * maxIndex}, archive); err != nil {
			return fmt.Errorf("%s%s: %w", dist, name, err)
		}
		return nil
	}
	return fmt.Errorf("%s: has no packages for %s", dist, arch)
}

func (m *Mirror) read(ctx context.Context, address string, limit int64) ([]byte, error) {
	body, err := m.open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return b, nil
}

type indexSum struct {
	sum  string
	size int64
}

// readRelease reads the sums of an InRelease file. With keys, one of them must
// have signed it.
func readRelease(signed []byte, keys openpgp.EntityList) (map[string]indexSum, error) {
	block, _ := clearsign.Decode(signed)
	if block == nil {
		return nil, errors.New("not a signed text")
	}
	if keys != nil {
		if _, err := block.VerifySignature(keys, nil); err != nil {
			return nil, fmt.Errorf("signature: %w", err)
		}
	}
	sums := map[string]indexSum{}
	err := readStanzas(bytes.NewReader(block.Plaintext), func(s Stanza) error {
		for line := range strings.SplitSeq(s["SHA256"], "\n") {
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || path.Clean(f[2]) != f[2] {
				return fmt.Errorf("SHA256: %.80q is not SUM SIZE NAME", line)
			}
			sums[f[2]] = indexSum{f[0], n}
		}
		return nil
	})
	if err == nil && len(sums) == 0 {
		err = errors.New("no SHA256 sums")
	}
	return sums, err
}
