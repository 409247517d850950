package deb

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// Licences returns the short names of the licences in a copyright file, sorted, where it is in the
// machine-readable form of DEP-5 ("GPL-2+", "Expat and public-domain"); none where it is not.
func Licences(copyright []byte) []string {
	head, _, _ := bytes.Cut(copyright, []byte("\n"))
	if !bytes.HasPrefix(head, []byte("Format:")) && !bytes.HasPrefix(head, []byte("Format-Specification:")) {
		return nil
	}
	var found []string
	stop := errors.New("enough")
	err := readStanzas(bytes.NewReader(copyright), func(s Stanza) error {
		if s["Files"] == "" {
			return nil // the head, or the text of a licence
		}
		name, _, _ := strings.Cut(s["License"], "\n")
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
		if len(found) > 256 {
			return stop
		}
		return nil
	})
	if err != nil {
		return nil // claims the form and does not have it
	}
	slices.Sort(found)
	return found
}
