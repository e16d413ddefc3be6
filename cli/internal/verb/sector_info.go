package verb

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

const (
	sectorInfoBytesMax = 64 << 10
	sectorInfoHint     = `"proofrack sector seal" leaves one beside c1.json`
)

// sectorInfo is sector.json: what travels beside a C1 output, and all that a verifier needs.
type sectorInfo struct {
	RegisteredProof proofName  `json:"registered_proof"`
	ProverID        hex32      `json:"prover_id"`
	Miner           *uint64    `json:"miner,omitempty"`
	Sector          *uint64    `json:"sector"`
	Ticket          hex32      `json:"ticket"`
	Seed            hex32      `json:"seed"`
	CommR           commitment `json:"comm_r"`
	CommD           commitment `json:"comm_d"`
}

// proofName is a registered proof, written by name; in JSON it may be a number too.
type proofName string

// UnmarshalJSON reads a text or a number, which sdr.ParseRegisteredProof then judges.
func (p *proofName) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*p = proofName(text)
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return fail(badInput, "", "registered_proof is neither a name nor a number")
	}
	*p = proofName(number)
	return nil
}

// commitment is comm_r or comm_d, written in hex. It is read as a CID too, once it is known which one it is.
type commitment struct {
	text  string
	value [32]byte
}

// MarshalText writes lowercase hex.
func (c commitment) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(c.value[:])), nil }

// UnmarshalText keeps the text.
func (c *commitment) UnmarshalText(text []byte) error {
	c.text = string(text)
	return nil
}

// hex32 is 32 bytes, written in hex. It knows whether it was there.
type hex32 struct {
	value [32]byte
	set   bool
}

// MarshalText writes lowercase hex.
func (h hex32) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h.value[:])), nil }

// UnmarshalText reads exactly 64 hex digits.
func (h *hex32) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h.value) {
		return fail(badInput, "", "a value has %d characters, not 64 hex digits", len(text))
	}
	if _, err := hex.Decode(h.value[:], text); err != nil {
		return fail(badInput, "", "a value is not hex: %w", err)
	}
	h.set = true
	return nil
}

// describe makes the sector.json of a C1 output.
func describe(out *c1.Output, miner, number uint64) *sectorInfo {
	known := func(value [32]byte) hex32 { return hex32{value: value, set: true} }
	return &sectorInfo{
		RegisteredProof: proofName(out.RegisteredProof.String()),
		ProverID:        known(sdr.ProverID(miner)),
		Miner:           &miner,
		Sector:          &number,
		Ticket:          known(out.Ticket),
		Seed:            known(out.Seed),
		CommR:           commitment{value: out.CommR},
		CommD:           commitment{value: out.CommD},
	}
}

// write writes sector.json.
func (s *sectorInfo) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// readSectorInfo reads sector.json and checks it.
func (a *app) readSectorInfo(path string) (*sdr.Sector, error) {
	content, err := a.readAll(path, "sector description", sectorInfoHint, sectorInfoBytesMax)
	if err != nil {
		return nil, err
	}
	var info sectorInfo
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&info); err != nil {
		return nil, fail(badInput, sectorInfoHint, "read sector description %q: %w", path, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fail(badInput, sectorInfoHint, "read sector description %q: bytes after the end", path)
	}
	sector, err := info.sector()
	if err != nil {
		return nil, fail(badInput, sectorInfoHint, "read sector description %q: %w", path, err)
	}
	return sector, nil
}

// sector checks the description and gives what public inputs follow from.
func (s *sectorInfo) sector() (*sdr.Sector, error) {
	proof, err := sdr.ParseRegisteredProof(string(s.RegisteredProof))
	if err != nil {
		return nil, err
	}
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"prover_id", s.ProverID.set}, {"sector", s.Sector != nil}, {"ticket", s.Ticket.set}, {"seed", s.Seed.set},
		{"comm_r", s.CommR.text != ""}, {"comm_d", s.CommD.text != ""},
	} {
		if !key.set {
			return nil, fail(badInput, sectorInfoHint, "key %s is missing", key.name)
		}
	}
	if s.Miner != nil && sdr.ProverID(*s.Miner) != s.ProverID.value {
		return nil, fail(badInput, sectorInfoHint, "prover_id is not that of miner %d", *s.Miner)
	}
	if s.CommR.value, err = sdr.ReplicaCommitment.Parse(s.CommR.text); err == nil {
		s.CommD.value, err = sdr.DataCommitment.Parse(s.CommD.text)
	}
	if err != nil {
		return nil, fail(badInput, sectorInfoHint, "%w", err)
	}
	sector := &sdr.Sector{
		Config: proof.Config(), ProverID: s.ProverID.value, Number: *s.Sector, Ticket: s.Ticket.value,
		Seed: s.Seed.value, CommR: s.CommR.value, CommD: s.CommD.value,
	}
	if sector.Seed == [32]byte{} {
		return nil, fail(badInput, "", "seed is all zero")
	}
	if err := sector.Validate(); err != nil {
		return nil, err
	}
	return sector, nil
}
