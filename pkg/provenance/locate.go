package provenance

import (
	"context"
	"slices"

	"strata/pkg/runrecord"
)

// How an output of a record fits an image.
const (
	noFit     = iota
	sameName  // its last part, size and shape
	nearPath  // the path leads there from the folder of the record
	exactPath // the path leads there from the folder in which the run was started
)

// producer returns the output, in the records, that is the file or folder at a place; nil if there is none. If several
// records match equally well, it returns the output of the latest one. If before is not nil, it considers only runs
// that started no later than that run.
func (t *tracer) producer(place string, s state, before *entry) *output {
	var best *output
	bestFit, id := noFit, identity(place)
	candidates := t.records.byName[nameOf(place)]
	if name := nameOf(id); name != nameOf(place) { // a link may have another name
		candidates = slices.Concat(candidates, t.records.byName[name])
	}
	for i := range candidates {
		o := &candidates[i]
		if before != nil && (o.entry == before || o.rec.Started.After(before.rec.Started)) {
			continue
		}
		f := o.fit(id, s, before != nil)
		if f == noFit || best != nil && (f < bestFit || f == bestFit && o.rec.Started.Before(best.rec.Started)) {
			continue
		}
		best, bestFit = o, f
	}
	return best
}

// fit returns how well an output of a record matches the file or folder at a place. If that was changed since, only the
// path can match.
func (o *output) fit(id string, s state, changedSince bool) int {
	if s.made != nil && !changedSince && (s.made.Program != o.rec.Tool || s.made.Version != o.rec.Version) {
		return noFit // another run made the image that is there now
	}
	for i, p := range o.places(o.Path.Reveal()) {
		if identity(p) == id {
			if i == 0 {
				return exactPath
			}
			return nearPath
		}
	}
	if !changedSince && s.made != nil && alike(o.Dataset, s) {
		return sameName
	}
	return noFit
}

// alike reports whether an image has the shape, type and size of a dataset.
func alike(d runrecord.Dataset, s state) bool {
	return d.Bytes > 0 && d.Bytes == s.bytes && slices.Equal(d.Shape, s.shape) && d.DType == s.dtype
}

// locate returns the place of an input of a record; the input may no longer exist. moved reports that the place differs
// from the recorded one: inputs of workflows are links, in temporary folders, to results that were later published
// elsewhere.
func (t *tracer) locate(ctx context.Context, e *entry, d runrecord.Dataset) (place string, moved bool) {
	guess, places := "", e.places(d.Path.Reveal())
	if d.LinksTo != "" {
		places = slices.Insert(places, 0, plain(d.LinksTo.Reveal()))
	}
	for i, p := range places {
		s := t.stateOf(ctx, p)
		if !s.there && s.reason == "" {
			continue
		}
		if i == 0 || d.Metadata != "" && d.Metadata == s.metadata {
			return p, i > 0
		}
		if guess == "" {
			guess = p
		}
	}
	for _, p := range []string{t.published(ctx, e, d), guess} {
		if p != "" {
			return p, true
		}
	}
	return places[0], false
}

// published returns the place of the output that a record has as input, from the latest earlier record with an output
// of the same name, shape, type and size. If that record notes no size, as for a file, it compares the size of the file
// at the place. It returns "" if there is no such record.
func (t *tracer) published(ctx context.Context, e *entry, d runrecord.Dataset) (place string) {
	var best *entry
	candidates := t.records.byName[nameOf(d.Path.Reveal())]
	if name := nameOf(d.LinksTo.Reveal()); name != nameOf(d.Path.Reveal()) {
		candidates = slices.Concat(candidates, t.records.byName[name])
	}
	for _, o := range candidates {
		if o.entry == e || o.rec.Started.After(e.rec.Started) || best != nil && o.rec.Started.Before(best.rec.Started) {
			continue
		}
		if d.Bytes <= 0 || o.Bytes > 0 && o.Bytes != d.Bytes || !slices.Equal(o.Shape, d.Shape) || o.DType != d.DType {
			continue
		}
		places := o.places(o.Path.Reveal())
		i := slices.IndexFunc(places, func(p string) bool {
			s := t.stateOf(ctx, p)
			return s.there && (o.Bytes > 0 || s.bytes == d.Bytes) && (d.Metadata == "" || s.metadata == "" || d.Metadata == s.metadata)
		})
		if o.Bytes <= 0 && i < 0 {
			continue
		}
		place, best = places[max(0, i)], o.entry
	}
	return place
}
