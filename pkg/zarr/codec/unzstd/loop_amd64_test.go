//go:build !noasm

package unzstd

import "testing"

// The loop in Go, which other machines run, does the same.
func TestWithoutAssembly(t *testing.T) {
	if !haveLoop {
		t.Skip("no BMI2: this is what all tests do here")
	}
	haveLoop = false
	defer func() { haveLoop = true }()
	t.Run("decode", TestDecode)
	t.Run("damage", TestDamage)
}
