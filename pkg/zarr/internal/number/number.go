// Package number reads whole numbers of JSON documents in every form that writers give them: 5, 5.0, 5e0, 50e-1.
package number

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	longest  = 400 // characters of a number
	mostZero = 40  // digits that an exponent may add
)

// Text returns the decimal digits of a JSON number that is whole, with a minus sign if it is negative; ok is false for
// any other value.
func Text(raw []byte) (digits string, ok bool) {
	s := string(bytes.TrimSpace(raw))
	if len(s) == 0 || len(s) > longest {
		return "", false
	}
	if _, err := strconv.ParseInt(s, 10, 64); err == nil && s[0] != '+' {
		return s, true
	}
	rest, minus := strings.CutPrefix(s, "-")
	mantissa, power, found := strings.Cut(strings.ToLower(rest), "e")
	exponent := 0
	if found {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil || exponent > mostZero || exponent < -longest {
			return "", false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", false
	}
	all, point := whole+fraction, len(whole)+exponent
	if n := point - len(all); n > 0 {
		all += strings.Repeat("0", n)
	}
	if n := -point; n > 0 {
		all, point = strings.Repeat("0", n)+all, 0
	}
	if strings.Trim(all[point:], "0") != "" {
		return "", false
	}
	if digits = strings.TrimLeft(all[:point], "0"); digits == "" {
		return "0", true
	}
	if minus {
		digits = "-" + digits
	}
	return digits, true
}

// Int returns the value of a JSON number that is whole and fits an int; ok is false for any other value.
func Int(raw []byte) (n int, ok bool) {
	digits, ok := Text(raw)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}
