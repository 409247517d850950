// Package units parses and prints quantities as people type them: sizes in bytes ("4GiB") and
// durations ("90s").
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// multipliers are the suffixes of [ParseSize], lower case. A letter alone means
// the power of 1024, as in GNU tools.
var multipliers = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	"p": 1 << 50, "pib": 1 << 50, "pb": 1e15,
	"e": 1 << 60, "eib": 1 << 60, "eb": 1e18,
}

// ParseSize parses a number of bytes: plain ("1048576"), in powers of 1024 ("512MiB", "4G") or of 1000
// ("100MB"). It ignores case and a space before the unit, and rounds fractions ("1.5GiB") down to whole
// bytes.
func ParseSize(s string) (int64, error) {
	text := strings.TrimSpace(s)
	end := len(text)
	for end > 0 && !isNumeric(text[end-1]) {
		end--
	}
	number, unit := text[:end], strings.ToLower(strings.TrimSpace(text[end:]))
	factor, known := multipliers[unit]
	if number == "" || !plainNumber(number) {
		return 0, fmt.Errorf("%q is not a size: want a number of bytes such as 1048576, 512MiB or 100MB", s)
	}
	if !known {
		return 0, fmt.Errorf("size %q has the unknown unit %q: want KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000)", s, unit)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/factor {
			return 0, fmt.Errorf("size %q is larger than 8 EiB", s)
		}
		return n * factor, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f*float64(factor) >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is larger than 8 EiB", s)
	}
	return int64(f * float64(factor)), nil
}

func isNumeric(c byte) bool { return c >= '0' && c <= '9' || c == '.' }

// plainNumber allows digits with at most one point: no sign, exponent or hex.
func plainNumber(s string) bool {
	points, digits := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '.':
			points++
		case s[i] >= '0' && s[i] <= '9':
			digits++
		default:
			return false
		}
	}
	return digits > 0 && points <= 1
}

// FormatSize formats a number of bytes for people, in powers of 1024 with at most three significant digits:
// "512 MiB", "1.5 GiB", "0 B".
func FormatSize(n int64) string {
	v, unit := float64(n), 0
	for math.Abs(v) >= 1023.5 && unit < 6 {
		v /= 1024
		unit++
	}
	name := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
	decimals := 0
	switch a := math.Abs(v); {
	case unit == 0:
	case a < 9.995:
		decimals = 2
	case a < 99.95:
		decimals = 1
	}
	number := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + name
}

// ParseDuration parses a duration that is not negative: "90s", "1h30m", "250ms", "2d", or a plain number of
// seconds.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	scale := time.Second
	number := text
	if day, ok := strings.CutSuffix(text, "d"); ok {
		scale, number = 24*time.Hour, day
	}
	if plainNumber(number) {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || v*float64(scale) >= math.MaxInt64 {
			return 0, fmt.Errorf("duration %q is longer than 292 years", s)
		}
		return time.Duration(v * float64(scale)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: want seconds, or a number with ms, s, m, h or d such as 90s or 1h30m", s)
	}
	return d, nil
}

// Count writes a number of things: "1 worker", "2 workers", "2 buses".
func Count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// FormatDuration formats a duration for people, in whole seconds from one second up: "850ms", "12s", "3m05s",
// "2h10m".
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%ds", int(d.Round(time.Second).Seconds()))
	case d < time.Hour-time.Second/2:
		s := int(d.Round(time.Second).Seconds())
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int(d.Round(time.Minute).Minutes())
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}
