package smallfile

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest returns "sha256:" and the hash of a document, as records and metrics state it.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
