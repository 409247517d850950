package recipe

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"strata/pkg/sif"
)

// certificates is the bundle that programs read.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// Links lists links that a package's script, or a package that is not in the image, would have made.
var Links = map[string]string{
	"/etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
	"/usr/bin/awk":   "gawk",
	"/usr/bin/sh":    "bash",
	"/usr/bin/which": "which.debianutils",
}

// setUp does the work that the scripts of the packages would have done.
func setUp(root *sif.Root) error {
	for name, target := range Links {
		file := target
		if !path.IsAbs(file) {
			file = path.Join(path.Dir(name), file)
		}
		if !root.Exists(file) || root.Exists(name) {
			continue
		}
		if err := root.Symlink(target, name); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n",
		"/etc/timezone":      "Etc/UTC\n",
	} {
		if err := root.WriteText(name, 0o644, text); err != nil {
			return err
		}
	}
	return bundle(root)
}

// bundle joins the certificates of ca-certificates into the file that its script would make, and removes the
// individual ones.
func bundle(root *sif.Root) error {
	const dir = "/usr/share/ca-certificates"
	names, err := root.Files()
	if err != nil {
		return err
	}
	slices.Sort(names)
	var all bytes.Buffer
	for _, name := range names {
		if !strings.HasPrefix(name, dir+"/") || path.Ext(name) != ".crt" {
			continue
		}
		text, err := root.Read(name)
		if err != nil {
			return err
		}
		all.Write(bytes.TrimRight(text, "\n"))
		all.WriteByte('\n')
	}
	if all.Len() == 0 {
		return errors.Join(errors.New("package ca-certificates: no certificates in it"), fs.ErrNotExist)
	}
	if err := root.Write(certificates, 0o644, &all); err != nil {
		return err
	}
	return root.Remove(dir)
}
