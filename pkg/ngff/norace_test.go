//go:build !race

package ngff

const raceEnabled = false
