package deb

import (
	"cmp"
	"strings"
)

// CompareVersions compares two version numbers by deb-version(7): negative if a is earlier than b, 0 if they
// are equal, positive if later.
func CompareVersions(a, b string) int {
	epochA, upstreamA, revisionA := splitVersion(a)
	epochB, upstreamB, revisionB := splitVersion(b)
	return cmp.Or(compareDigits(epochA, epochB), comparePart(upstreamA, upstreamB), comparePart(revisionA, revisionB))
}

func splitVersion(v string) (epoch, upstream, revision string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// comparePart alternately compares non-digit parts and numbers.
func comparePart(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !isDigit(a[0]) || b != "" && !isDigit(b[0]) {
			if d := cmp.Compare(rank(a), rank(b)); d != 0 {
				return d
			}
			a, b = a[1:], b[1:] // both have the same character
		}
		var na, nb string
		na, a = number(a)
		nb, b = number(b)
		if d := compareDigits(na, nb); d != 0 {
			return d
		}
	}
	return 0
}

// rank of a part's first character: "~" before the end, the end (and a digit,
// which ends the stretch too) before letters, letters before all others.
func rank(s string) int {
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z':
		return int(s[0])
	}
	return int(s[0]) + 256
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func number(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

// compareDigits compares numbers of any length.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
