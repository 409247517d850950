package sif_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sylabs/sif/v2/pkg/integrity"
	library "github.com/sylabs/sif/v2/pkg/sif"

	"strata/pkg/sif"
)

// build makes a small image.
func build(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "a file")
	if err := os.WriteFile(file, []byte("content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	def := parse(t, "Bootstrap: scratch\n%files\n'"+file+"' /opt/\n%labels\nA b\n%environment\nexport X=1\n%runscript\necho run\n%help\nhelp\n")
	b := sif.Build{Definition: def, Arch: arch, Time: time.Unix(1e9, 0), Compression: "gzip", Labels: map[string]string{"version": "1", "A": "loses"}}
	out := filepath.Join(dir, "x.sif")
	if err := b.Write(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A signature that is made with a PEM key is called one.
func TestPEMSignature(t *testing.T) {
	path := build(t, "amd64")
	f, err := library.LoadContainerFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.LoadSigner(private, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := integrity.NewSigner(f, integrity.OptSignWithSigner(key))
	if err == nil {
		err = errors.Join(signer.Sign(), f.UnloadContainer())
	}
	if err != nil {
		t.Fatal(err)
	}
	i, err := sif.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	other, err := openpgp.NewEntity("a", "", "a@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Verify(context.Background(), openpgp.EntityList{other}); !errors.Is(err, sif.ErrSignature) || !strings.Contains(err.Error(), "it is signed with a PEM key") {
		t.Error(err)
	}
}

func TestImage(t *testing.T) {
	path := build(t, "amd64")
	i, err := sif.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	m, err := i.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	want := &sif.Metadata{Labels: map[string]string{"org.label-schema.schema-version": "1.0", "version": "1", "A": "b"}, Runscript: "#!/bin/sh\necho run\n", Help: "help\n",
		Environment: map[string]string{"/.singularity.d/env/90-environment.sh": "#!/bin/sh\nexport X=1\n"}}
	if d := cmp.Diff(want, m, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Definition" }, cmp.Ignore())); d != "" {
		t.Error(d)
	}
	objects := i.Objects()
	if len(objects) != 3 || objects[2].Detail != "squashfs, primary system, amd64" || objects[2].Offset%4096 != 0 {
		t.Errorf("%+v", objects)
	}
	// An image without the metadata tells as much by its root.
	f, err := library.LoadContainerFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.DeleteObject(2), f.UnloadContainer()); err != nil {
		t.Fatal(err)
	}
	bare, err := sif.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	again, err := bare.Inspect()
	if d := cmp.Diff(m, again); d != "" || err != nil {
		t.Error(d, err)
	}
}

// A file that is cut off anywhere is refused, and says that it is.
func TestCutOff(t *testing.T) {
	path := build(t, "amd64")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.sif")
	for _, n := range []int{0, 10, 41, 100, 127, 128, 5000, 30000, len(whole) - 5000, len(whole) - 1} {
		if err := os.WriteFile(cut, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if i, err := sif.Open(cut); !errors.Is(err, sif.ErrImage) || !strings.Contains(err.Error(), cut) {
			t.Errorf("cut off at byte %d: %v, %v", n, i, err)
		}
	}
}

// A header may not make us take memory that the file has no use for.
func TestWildHeader(t *testing.T) {
	path := build(t, "amd64")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at, values := range map[int][]int64{
		88:  {-1, 1 << 40, math.MaxInt64, math.MinInt64, 4097}, // descriptors
		96:  {-1, 1 << 40, math.MaxInt64},                      // where they are
		104: {-1, 1 << 40, math.MaxInt64},                      // their size
	} {
		for _, v := range values {
			wild := append([]byte(nil), whole...)
			binary.LittleEndian.PutUint64(wild[at:], uint64(v))
			if err := os.WriteFile(path, wild, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := sif.Open(path); !errors.Is(err, sif.ErrImage) {
				t.Errorf("%d at byte %d: %v", v, at, err)
			}
		}
	}
	// And neither may a descriptor: of the first, offset and size.
	first := int(binary.LittleEndian.Uint64(whole[96:]))
	for _, at := range []int{first + 17, first + 25} {
		for _, v := range []int64{-1, math.MaxInt64, 1 << 40} {
			wild := append([]byte(nil), whole...)
			binary.LittleEndian.PutUint64(wild[at:], uint64(v))
			if err := os.WriteFile(path, wild, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := sif.Open(path); !errors.Is(err, sif.ErrImage) {
				t.Errorf("%d at byte %d of a descriptor: %v", v, at-first, err)
			}
		}
	}
}

func TestForeignArchitecture(t *testing.T) {
	i, err := sif.Open(build(t, map[string]string{"amd64": "arm64", "arm64": "amd64"}[goarch]))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if _, err := i.Unpack(context.Background(), t.TempDir()); !errors.Is(err, sif.ErrArch) || !strings.Contains(err.Error(), "this machine is "+goarch) {
		t.Error(err)
	}
}

func TestSignatures(t *testing.T) {
	ctx := context.Background()
	mine, err := openpgp.NewEntity("me", "", "me@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	other, err := openpgp.NewEntity("other", "", "other@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	plain := build(t, "amd64")
	verify := func(path string, keys ...*openpgp.Entity) ([]sif.Signer, error) {
		i, err := sif.Open(path)
		if err != nil {
			return nil, err
		}
		defer i.Close()
		return i.Verify(ctx, keys)
	}
	if _, err := verify(plain, mine); !errors.Is(err, sif.ErrSignature) || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("unsigned: %v", err)
	}
	signed := filepath.Join(t.TempDir(), "signed.sif")
	i, err := sif.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if _, err := i.Sign(ctx, signed, sif.SignOptions{Keys: openpgp.EntityList{mine, other}}); !errors.Is(err, sif.ErrKey) {
		t.Errorf("two keys: %v", err)
	}
	id := mine.PrimaryKey.KeyIdString()[8:]
	if _, err := i.Sign(ctx, signed, sif.SignOptions{Keys: openpgp.EntityList{other, mine}, ID: strings.ToLower(id), Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	signers, err := verify(signed, other, mine)
	if err != nil || len(signers) != 1 || !strings.HasPrefix(signers[0].Name, "me") || len(signers[0].Objects) != 3 {
		t.Errorf("%+v, %v", signers, err)
	}
	if _, err := verify(signed, other); !errors.Is(err, sif.ErrSignature) || !strings.Contains(err.Error(), "not in the key ring") {
		t.Errorf("another's key: %v", err)
	}
	// One byte of the root is another one.
	whole, err := os.ReadFile(signed)
	if err != nil {
		t.Fatal(err)
	}
	whole[i.Objects()[2].Offset+200] ^= 1
	if err := os.WriteFile(signed, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(signed, mine); !errors.Is(err, sif.ErrSignature) || !strings.Contains(err.Error(), "object 3 is not as it was signed") {
		t.Errorf("changed: %v", err)
	}
}
