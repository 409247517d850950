//go:build amd64 && !noasm

package inflate

import "golang.org/x/sys/cpu"

var haveAVX2 = cpu.X86.HasAVX2

// adlerStep is the number of bytes that adlerSums takes per turn.
const adlerStep = 32

// adlerSums returns for n bytes, a multiple of adlerStep: their sum; the sum over all steps of the sum of the bytes
// before the step; and the sum over all steps of the step's bytes weighted adlerStep … 1.
//
//go:noescape
func adlerSums(p *byte, n int) (sum, before, weighted uint64)
