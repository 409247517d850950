//go:build race

package inflate

// The race detector makes sync.Pool drop things at random.
const raceEnabled = true
