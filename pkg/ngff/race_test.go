//go:build race

package ngff

const raceEnabled = true
