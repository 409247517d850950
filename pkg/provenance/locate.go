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

// producer returns the output of the record that made what lies at a place; nil if there is none. Of several records it
// is the latest, and with before the latest that is not later than that.
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

// fit tells how an output of a record fits what lies at a place. Of what was changed in place since, only the path
// tells.
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

// locate returns where an input of a record lies, or lay. moved tells that it is another place than the recorded one:
// the workflow's inputs are links in folders that may be removed, to results that are published.
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

// published returns where an output lies, or lay, that is an input of a record: that of the latest earlier record that
// has its name, shape, type and size; if the record does not note the size, as that of a file, it is the size of what
// lies there. It is "" if there is no such record.
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
