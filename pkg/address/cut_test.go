package address

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A long text keeps its beginning and its end, in whole characters.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""}, {"abcde", 5, "abcde"}, {"äääää", 5, "äääää"}, {"abcdefghij", 7, "abcd…ij"}, {"äöüäöüäöüä", 7, "äöüä…üä"}, {"a\xff\xff\xff\xff\xff\xffb", 4, "a\xff…b"},
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
	long := Cut(strings.Repeat("€", 100_000), 600)
	if n := utf8.RuneCountInString(long); n != 600 || !utf8.ValidString(long) {
		t.Errorf("%d characters", n)
	}
}

// A quoted text shows no part of a secret, wherever it would be cut.
func TestQuotedHidesSecrets(t *testing.T) {
	if got, want := Quoted("a\x1b[2J\nb"), `"a\x1b[2J\nb"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for n := range 2 * mostQuoted {
		got := Quoted(strings.Repeat("x", n) + " https://me:" + strings.Repeat("hush", 30) + "@host/a?X-Amz-Signature=" + strings.Repeat("hush", 30) + " " + strings.Repeat("y", n))
		if strings.Contains(got, "hush") || utf8.RuneCountInString(got) > mostQuoted+2 {
			t.Fatalf("%d: %s", n, got)
		}
	}
}
