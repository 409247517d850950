package store

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Names are those that another client takes, and keys are encoded as it does.
func TestS3Names(t *testing.T) {
	for _, name := range []string{"", "ab", "abc", "a.b-c", "a..b", "a.-b", "a-.b", "-abc", "abc-", "Abc", "a_b", "192.168.0.1", "1.2.3", "a b", "bücket", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		want := s3utils.CheckValidBucketNameStrict(name)
		if err := checkBucket(name); (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	for _, key := range []string{"a/b c", "z=1&x+y", "ä/€/😀", "~a.b-c_d", "100%", "a//b", "'()*!", "[]", "\x01"} {
		if got, want := encodeKey(key), s3utils.EncodePath(key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}
