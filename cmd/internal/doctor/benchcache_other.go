//go:build !linux

package doctor

// openDirect is 0: there is no such flag.
const openDirect = 0

func dropCached(string) {}

func cachedShare(string, int64) (share float64, known bool) { return 0, false }
