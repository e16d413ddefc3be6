package agent

import "bytes"

// ReadableClaim tells whether a claim can be read.
func ReadableClaim(text []byte) bool {
	claim, err := decodeClaim(bytes.NewReader(text))
	return err == nil && judgeClaim(claim, []claimFile{*claim}) != nil
}
