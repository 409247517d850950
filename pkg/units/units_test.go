package units

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "17b": 17, "4GiB": 4 << 30, "4gib": 4 << 30, "512MiB": 512 << 20, "100MB": 100e6,
		"1k": 1024, "1K": 1024, "2G": 2 << 30, "1.5GiB": 3 << 29, ".5k": 512, "3.": 3, " 4 GiB ": 4 << 30, "1.9999": 1,
		"9223372036854775807": math.MaxInt64, "7PiB": 7 << 50, "1TB": 1e12,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "GiB", "-1", "+1", "1e3", "0x10", "1.2.3GiB", "4 Gi B", "4XiB", "4GiBs", "one", "NaN", "Inf", ".", "1,5G",
		"9223372036854775808", "8EiB", "9000PiB", "9223372036854775807k", "99999999999999999999.5", "1_000",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), "size") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1000000: "977 KiB", 1 << 20: "1 MiB",
		512 << 20: "512 MiB", 3 << 29: "1.5 GiB", 1<<30 - 1: "1 GiB", 123456789: "118 MiB", 12345678: "11.8 MiB", math.MaxInt64: "8 EiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "90s": 90 * time.Second, "1h30m": 90 * time.Minute,
		"250ms": 250 * time.Millisecond, "2d": 48 * time.Hour, "0.5d": 12 * time.Hour, " 3s ": 3 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-3s", "-3", "3 weeks", "1e9", "soon", "9999999999999", "1d2h", "NaN"} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), "duration") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 850 * time.Millisecond: "850ms", 12 * time.Second: "12s", 59600 * time.Millisecond: "1m00s",
		185 * time.Second: "3m05s", 3599600 * time.Millisecond: "1h00m", 130 * time.Minute: "2h10m", 100 * time.Hour: "100h00m",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"4GiB", "100MB", "1.5k", "", "-1", "9223372036854775807", "8EiB", "1.7976931348623157e308"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if n < 0 || err != nil && n != 0 {
			t.Fatalf("%q: %d, %v", text, n, err)
		}
		if err != nil {
			return
		}
		// What is written for people is read back within its three digits.
		back, err := ParseSize(FormatSize(n))
		if n < math.MaxInt64/256*255 && (err != nil || math.Abs(float64(back-n)) > 0.006*float64(n)) {
			t.Fatalf("%q: %d is written %q and read as %d, %v", text, n, FormatSize(n), back, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"90s", "1h30m", "2d", "", "-1", "9999999999d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseDuration(text); d < 0 || err != nil && d != 0 {
			t.Fatalf("%q: %v, %v", text, d, err)
		}
	})
}
