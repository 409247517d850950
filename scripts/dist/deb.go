package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

const debCopyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: strata

Files: *
Copyright: 2026 The strata authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
Comment: The licences of the Go modules that the program is built from are in
 /usr/share/doc/strata/modules.txt.
`

const debDescription = `Description: serial-sectioning OCT microscopy, from mosaic grids to one volume
 Programs that stream OME-Zarr images of any size in bounded memory: average
 intensity projection, resampling, correction of the focal plane, stitching,
 cropping and stacking of mosaic grids, previews, quality reports, and
 conversion and validation of Zarr, OME-Zarr, TIFF and CZI.
 .
 "strata NAME" starts each program. /usr/bin also has those whose names no other
 package has; /usr/lib/strata/bin has all of them: put it on PATH to type their
 names alone.
`

// postinst gives back the names that packages up to 0.10.0 took from alternatives, such as vim's view: dpkg has just
// removed our links there. It says nothing.
const postinst = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -n "$2" ] && dpkg --compare-versions "$2" le 0.10.0; then
  for name in %s; do
    [ ! -e "/usr/bin/$name" ] && [ ! -L "/usr/bin/$name" ] || continue
    query=$(update-alternatives --query "$name" 2>/dev/null) || continue
    value=$(echo "$query" | sed -n '1,/^$/s/^Value: //p')
    case $(echo "$query" | sed -n '1,/^$/s/^Status: //p') in
      manual) update-alternatives --set "$name" "$value" >/dev/null 2>&1 || true ;;
      *) update-alternatives --auto "$name" >/dev/null 2>&1 || true ;;
    esac
  done
fi
`

// deb returns a Debian package (deb(5)) of the tree, below /usr. It conflicts with no other package, replaces none and
// diverts no file.
func (r *release) deb(t tree, arch string) ([]byte, error) {
	data, err := r.debTree(t.forSystem(r.taken))
	if err != nil {
		return nil, err
	}
	var sums strings.Builder
	size := 0
	for _, e := range data {
		if e.link == "" {
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.data), e.name)
		}
		size += (len(e.data) + 1023) / 1024
	}
	control := fmt.Sprintf("Package: strata\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nDepends: libc6\nSection: science\nPriority: optional\n%s",
		r.version, arch, r.maintainer, size, debDescription)
	files := tree{{name: "control", mode: 0o644, data: []byte(control)}, {name: "md5sums", mode: 0o644, data: []byte(sums.String())},
		{name: "postinst", mode: 0o755, data: fmt.Appendf(nil, postinst, strings.Join(slices.Sorted(maps.Keys(r.taken)), " "))}}
	controlTar, err := tarGz(files, "./", r.at)
	if err != nil {
		return nil, err
	}
	dataTar, err := tarGz(data, "./", r.at)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar}, {"data.tar.gz", dataTar}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, r.at.Unix(), 0, 0, "100644", len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// debTree returns the tree as Debian's policy requires: compressed manual pages, zsh completions in the folder of
// Debian's zsh, a copyright file that refers to the text of the licence, and a changelog.
func (r *release) debTree(t tree) (tree, error) {
	changes := fmt.Sprintf("strata (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n", r.version, r.version, r.maintainer, r.at.Format(time.RFC1123Z))
	compressed, err := gz([]byte(changes), gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	out := []entry{
		{name: "usr/share/doc/strata/copyright", mode: 0o644, data: []byte(debCopyright)},
		{name: "usr/share/doc/strata/changelog.gz", mode: 0o644, data: compressed},
		{name: "usr/share/doc/strata/README.Debian", mode: 0o644, data: []byte(r.note("/usr"))},
	}
	for _, e := range t {
		switch {
		case e.name == "share/doc/strata/LICENSE":
			continue
		case strings.Contains(e.name, "share/man/"):
			e.name += ".gz"
			if e.link != "" {
				e.link += ".gz"
			} else if e.data, err = gz(e.data, gzip.BestCompression); err != nil {
				return nil, err
			}
		case strings.HasPrefix(e.name, "share/zsh/"):
			e.name = strings.Replace(e.name, "site-functions", "vendor-completions", 1)
		}
		e.name = "usr/" + e.name
		out = append(out, e)
	}
	return sorted(out), nil
}
