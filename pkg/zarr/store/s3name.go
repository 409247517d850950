package store

import (
	"errors"
	"net/netip"
	"strings"
)

// encodeKey percent-encodes a key as signatures want it: all bytes but letters, digits, "-", ".", "_", "~" and "/".
func encodeKey(key string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case isLetter(c) || '0' <= c && c <= '9' || strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// checkBucket returns what is wrong with the name of a bucket.
//
// Reference: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html.
func checkBucket(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) < 3:
		return errors.New("it has less than 3 characters")
	case len(name) > 63:
		return errors.New("it has more than 63 characters")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return errors.New("it is an ip address")
	}
	for i, c := range []byte(name) {
		inner := i > 0 && i < len(name)-1 && (c == '-' || c == '.')
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || inner) {
			return errors.New("want lower-case letters, digits, hyphens and dots, with a letter or digit first and last")
		}
	}
	for _, pair := range []string{"..", ".-", "-."} {
		if strings.Contains(name, pair) {
			return errors.New("a dot stands beside a dot or hyphen")
		}
	}
	return nil
}
