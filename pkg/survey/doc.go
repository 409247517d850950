// Package survey looks at a folder and says what it is to strata: tiles in files, raw tiles of OCT, mosaic grids, slide
// scans, stacks or volumes, with the evidence for it and the commands that come next.
//
//	l, err := survey.List(ctx, folder)
//	found, err := survey.Look(ctx, l, survey.Options{})
//
// It reads names, some headers and, where names do not tell how tiles lie, a limited number of planes. It never writes.
package survey
