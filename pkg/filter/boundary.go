package filter

// Boundary selects which sample replaces one outside an axis. The names are those of scipy.ndimage.
type Boundary uint8

const (
	// Reflect repeats the edge sample: d c b a | a b c d | d c b a.
	Reflect Boundary = iota
	// Mirror does not repeat it: d c b | a b c d | c b a.
	Mirror
	// Nearest stays at the edge: a a a | a b c d | d d d.
	Nearest
)

func (b Boundary) String() string { return [...]string{"reflect", "mirror", "nearest"}[b] }

// Index returns the sample of an axis of n ≥ 1 samples that replaces sample i; i may be any number.
func (b Boundary) Index(i, n int) int {
	if uint(i) < uint(n) {
		return i
	}
	switch {
	case b == Nearest || n == 1:
		return max(0, min(i, n-1))
	case b == Mirror:
		period := 2*n - 2
		if i %= period; i < 0 {
			i += period
		}
		return min(i, period-i)
	default:
		period := 2 * n
		if i %= period; i < 0 {
			i += period
		}
		return min(i, period-1-i)
	}
}
