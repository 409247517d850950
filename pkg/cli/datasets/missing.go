package datasets

import (
	"strata/pkg/cli"
	"strata/pkg/units"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Missing collects the chunks of inputs that are not stored, and refuses them with --missing_chunks error.
// What reads found is told when the command has succeeded, before its outputs are put in place.
func Missing(r *cli.Run) *zarr.Missing {
	m := &zarr.Missing{Refuse: r.Options.MissingChunks == "error"}
	before := store.Denied() // to other runs of the process
	r.AtEnd(func() error {
		denied := store.Denied() - before
		for _, x := range m.List() {
			if err := tellMissing(r, &x, denied > 0); err != nil {
				return err
			}
		}
		if denied > 0 {
			r.Warn("the server denied access to %s that were looked for, which --http_absent_codes takes as absent", units.Count(int(denied), "object"))
		}
		return nil
	})
	return m
}

// tellMissing warns of chunks that the array's writer stored; that chunks are missing of which nobody
// says so is a note, since other writers leave out what holds the fill value only. Where the server denied access to
// objects that count as absent, and nothing of an array was there, all of it may be denied.
func tellMissing(r *cli.Run, x *zarr.Absent, denied bool) error {
	lost, known := x.Lost()
	switch {
	case denied && x.All():
		return cli.BadInputf("%s: access to every chunk is denied (403), or none is there", x.Array.Location())
	case r.Options.MissingChunks == "fill" || known && lost == 0:
	case known && r.Options.MissingChunks == "error":
		return cli.BadInputf("%s: %s", x.Array.Location(), x)
	case known:
		r.Warn("%s: %s; read as the fill value", x.Array.Location(), x)
	default:
		r.Log.Info().Msgf("%s: %s; read as the fill value", x.Array.Location(), x)
	}
	return nil
}
