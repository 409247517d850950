package sysinfo

import (
	"slices"
	"strconv"
	"strings"
)

// sortNames sorts names so that numbers in them count as numbers: nvme2 before nvme10.
func sortNames(names []string) {
	slices.SortFunc(names, compareNames)
}

func compareNames(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// fields parses lines "Key: value", as many files of /proc have them. The first value of a key counts.
func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); ok && k != "" {
			if _, twice := m[k]; !twice {
				m[k] = strings.TrimSpace(v)
			}
		}
	}
	return m
}

// number returns a whole number, decimal or after "0x"; a reason names where it stood.
func number(f Fact[string], name string) Fact[int64] {
	return convert(f, func(s string) (int64, string) {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 64)
		if err != nil {
			return 0, name + ": " + strconv.Quote(clip(s)) + " is not a number"
		}
		return n, ""
	})
}

// clip shortens text for a message.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// versionLess compares versions by the numbers in them: "6.2" < "6.10.3-generic".
func versionLess(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range max(len(x), len(y)) {
		var p, q int
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return p < q
		}
	}
	return false
}

// numbers returns the numbers at the beginning of a version, up to the first that is not preceded by a dot.
func numbers(version string) []int {
	var list []int
	for len(list) < 8 {
		n := digits(version)
		if n == 0 || n > 9 {
			break
		}
		v, _ := strconv.Atoi(version[:n])
		list = append(list, v)
		if version = version[n:]; version == "" || version[0] != '.' {
			break
		}
		version = version[1:]
	}
	return list
}

// VersionLess reports whether version a is older than b by the numbers at their beginnings.
func VersionLess(a, b string) bool { return versionLess(a, b) }
