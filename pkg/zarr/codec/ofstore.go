package codec

import (
	"encoding/json"
	"errors"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// ofStore stands for the form of chunks that only their store can decode: one that shows a file of
// another format as a hierarchy; see store.Decoder.
type ofStore struct{ encoding string }

// OfStoreName is the codec's name in metadata.
const OfStoreName = "strata.store"

func parseOfStore(c *config, _ dtype.Type) Codec {
	o := &ofStore{}
	if v, ok := c.takeValue("encoding"); ok && json.Unmarshal(v, &o.encoding) != nil {
		c.fail("\"encoding\" is %s (must be a text)", abbreviate(v))
	}
	return o
}

// IsOfStore reports whether the store decodes the chunks.
func (c Chain) IsOfStore() bool {
	if len(c) != 1 {
		return false
	}
	_, ok := c[0].(*ofStore)
	return ok
}

// Name returns the store's name for the encoding, such as "jpeg".
func (o *ofStore) Name() string { return o.encoding }

func (o *ofStore) MetadataV2() (json.RawMessage, error) { return nil, ErrFormat }

func (o *ofStore) MetadataV3() (json.RawMessage, error) {
	return metadataV3(OfStoreName, map[string]any{"encoding": o.encoding})
}

// EncodedSize: noise may be longer in another format than it is.
func (o *ofStore) EncodedSize(n int) (lo, hi int) { return 0, mem.Sum(n, n, 64<<10) }

var errOfStore = errors.New("is of no use outside the file that it was made for")

func (o *ofStore) Decode(*Scratch, []byte, []byte) (int, error) { return 0, errOfStore }

func (o *ofStore) readOnly() error { return ErrReadOnly }

func (o *ofStore) Encode(*Scratch, []byte, []byte) ([]byte, error) { return nil, ErrReadOnly }
