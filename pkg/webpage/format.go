package webpage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size formats a number of bytes.
func Size(n int64) string {
	if n < 0 {
		return "–"
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < 5 {
		v /= 1024
		unit++
	}
	return Short(v) + " " + []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// Seconds formats a duration.
func Seconds(s float64) string {
	switch {
	case !Finite(s) || s < 0:
		return "–"
	case s < 1:
		return strconv.FormatFloat(math.Round(s*1000), 'f', -1, 64) + " ms"
	case s < 99.95:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	}
	d := time.Duration(math.Round(min(s, 1e9))) * time.Second
	if d < time.Hour {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Short formats a number with three significant digits, or more before the decimal point.
func Short(v float64) string {
	if !Finite(v) {
		return "–"
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	switch a := math.Abs(v); {
	case a >= 1e6 || (a > 0 && a < 1e-3):
		text = strconv.FormatFloat(v, 'e', 2, 64)
	case a >= 100:
		text = strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strings.ReplaceAll(text, "-", "−")
}

// Plural formats a number of things: "1 run", "2 runs".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
