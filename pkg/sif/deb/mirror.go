package deb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of archives.
const (
	Main     = "debian"
	Security = "debian-security"
)

// Addresses of Debian's archives.
const (
	DefaultMirror   = "https://deb.debian.org/debian"
	DefaultSnapshot = "https://snapshot.debian.org/archive"
)

// Mirror fetches from Debian's archives and caches the files.
type Mirror struct {
	URL      string // of the main archive; "": DefaultMirror
	Security string // of the security archive; "": URL with "-security" behind it
	Snapshot string // where all versions there ever were are kept; "": DefaultSnapshot
	Cache    string // folder for packages; "": nothing is kept
	Client   *http.Client
}

func (m *Mirror) base(archive string) string {
	main := strings.TrimRight(m.URL, "/")
	if main == "" {
		main = DefaultMirror
	}
	switch {
	case archive == Main:
		return main
	case m.Security != "":
		return strings.TrimRight(m.Security, "/")
	}
	return main + strings.TrimPrefix(archive, Main)
}

// snapshotOf returns the address of a file as the archive was at a time.
func (m *Mirror) snapshotOf(archive, file string, at time.Time) string {
	base := strings.TrimRight(m.Snapshot, "/")
	if base == "" {
		base = DefaultSnapshot
	}
	return base + "/" + archive + "/" + at.UTC().Format("20060102T150405Z") + "/" + file
}

// Package returns the path of a package's file, fetching it if it is not cached. Packages that have left the
// mirror come from the snapshot archive at the time of their lock. The file always has the SHA-256 of the
// lock. Without a cache it is put into dir.
func (m *Mirror) Package(ctx context.Context, p *Package, at time.Time, dir string) (string, error) {
	if m.Cache != "" {
		dir = m.Cache
	}
	path := filepath.Join(dir, p.SHA256+".deb")
	if sum, size, err := fileSum(path); err == nil && sum == p.SHA256 && size == p.Size {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	addresses := []string{m.base(p.Archive) + "/" + p.File}
	if !at.IsZero() {
		addresses = append(addresses, m.snapshotOf(p.Archive, p.File, at))
	}
	var errs []error
	for _, address := range addresses {
		err := m.fetch(ctx, address, path, p)
		if err == nil {
			return path, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("package %s: %w", p, errors.Join(errs...))
}

// fetch downloads a package and puts it at a path once it is complete.
func (m *Mirror) fetch(ctx context.Context, address, path string, p *Package) error {
	body, err := m.open(ctx, address)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.CreateTemp(filepath.Dir(path), ".fetch-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(body, p.Size+1))
	if e := f.Close(); err == nil {
		err = e
	}
	switch sum := hex.EncodeToString(h.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case n != p.Size:
		return fmt.Errorf("%s: %d bytes or more, want %d", address, n, p.Size)
	case sum != p.SHA256:
		return fmt.Errorf("%s: SHA-256 %s, want %s", address, sum, p.SHA256)
	}
	return os.Rename(f.Name(), path)
}

// open begins to read the file at an address.
func (m *Mirror) open(ctx context.Context, address string) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := m.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	return resp.Body, nil
}

func fileSum(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
