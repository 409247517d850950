package meta

import (
	"encoding/json"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
)

// maxNesting bounds how deep shards lie in shards.
const maxNesting = 8

// codecList is a list of codecs as far as it has been read.
type codecList struct {
	shape, stored []int
	perm          []int      // as in pipeline
	elem          dtype.Type // of what the next codec gets
	chain         codec.Chain
	shard         *Sharding
	big           bool
	bytes         string // the array → bytes codec, when there was one
	scattered     bool   // a filter looks at more than one element at a time
	depth         int
}

// parseCodecs reads a list of codecs into the pipeline of chunks of the given shape.
func parseCodecs(field string, raw json.RawMessage, shape []int, elem dtype.Type, depth int) (*Pipeline, error) {
	list, ok := ParseList(raw)
	if !ok {
		return nil, FieldError(field, "is %s, must be a list", KindOf(raw))
	}
	if err := codec.CheckLength(len(list)); err != nil {
		return nil, FieldError(field, "%w", err)
	}
	l := &codecList{shape: shape, stored: shape, elem: elem, depth: depth}
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		e, err := parseExtension(at, raw)
		if err == nil {
			err = l.add(at, e)
		}
		if err != nil {
			return nil, err
		}
	}
	if l.bytes == "" {
		return nil, FieldError(field, "has no \"bytes\" or \"sharding_indexed\"")
	}
	p, err := newPipeline(shape, l.perm, elem, l.big, l.chain, l.shard)
	if fe, ok := err.(*FormatError); ok {
		fe.Field = field
	}
	return p, err
}

// add reads the next codec.
func (l *codecList) add(at string, e extension) (err error) {
	switch e.name {
	case "transpose", "bytes", "sharding_indexed":
		if l.bytes != "" {
			return FieldError(at, "%q cannot follow %q, which has made bytes of the array", e.name, l.bytes)
		}
	default:
		return l.addCodec(at, e)
	}
	switch e.name {
	case "transpose":
		if l.scattered {
			return foreign(FieldError(at, "\"transpose\" behind a filter that looks at several elements is not supported"))
		}
		order, err := parseTranspose(at, e, len(l.shape))
		if err != nil {
			return err
		}
		l.perm, l.stored = compose(l.perm, order), permuted(l.stored, order)
	case "bytes":
		l.bytes = e.name
		if l.big, err = parseBytes(at, e, l.elem); err != nil {
			return err
		}
		if l.big && len(l.chain) > 0 { // of what the last filter makes
			l.big, l.chain = false, append(l.chain, codec.BigEndian(l.elem))
		}
	case "sharding_indexed":
		l.bytes = e.name
		if len(l.chain) > 0 {
			return foreign(FieldError(at, "shards of what a filter has made are not supported"))
		}
		if l.depth == maxNesting {
			return FieldError(at, "shards lie in shards more than %d deep", maxNesting)
		}
		if l.shard, err = parseSharding(at, e, l.stored, l.elem, l.depth); err != nil {
			return err
		}
	}
	return nil
}

// addCodec reads a codec of package codec: in front of "bytes" a filter, behind it any.
func (l *codecList) addCodec(at string, e extension) error {
	parse := codec.ParseV3
	if l.bytes == "" {
		parse = codec.ParseFilterV3
	}
	c, err := parse(e.name, e.configuration, l.elem)
	switch {
	case errors.Is(err, codec.ErrUnknown):
		return foreign(FieldError(at, "%w", err))
	case err != nil:
		return FieldError(at, "%w", err)
	}
	if l.bytes == "" && !codec.Elementwise(c) {
		if l.perm != nil {
			return foreign(FieldError(at, "%q behind \"transpose\" is not supported", e.name))
		}
		l.scattered = true
	}
	l.chain, l.elem = append(l.chain, c), codec.Encoded(c, l.elem)
	return nil
}
