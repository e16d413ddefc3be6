package seal

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// SizeMax is the largest sector this package seals.
const SizeMax = sdr.Size16MiB

// ErrTooLarge says that a sector is larger than SizeMax.
var ErrTooLarge = errors.New("sector too large to seal in memory")

// Request says which sector to make.
type Request struct {
	// Config is that of a registered proof, or any other valid one; only registered ones can be written as C1 outputs.
	Config sdr.Config
	// ProverID is the payload of the miner's ID address, Sector the sector number.
	ProverID [32]byte
	Sector   uint64
	// Ticket and Seed are the sector's randomness; an all-zero seed is refused by every prover.
	Ticket, Seed [32]byte
	// DataSeed decides the data.
	DataSeed [32]byte
}

// NewRequest derives ticket, seed and data from a text.
func NewRequest(config sdr.Config, miner, sector uint64, text string) Request {
	return Request{
		Config: config, ProverID: sdr.ProverID(miner), Sector: sector,
		Ticket: Derive(text, "ticket"), Seed: Derive(text, "seed"), DataSeed: Derive(text, "data"),
	}
}

// Derive gives 32 pseudo-random bytes for one purpose of a text.
func Derive(text, purpose string) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "proofrack test sector\x00%s\x00%s", purpose, text))
}

// SectorOf gives what a sector's public inputs follow from, with the commitments of its output.
func (r *Request) SectorOf(output *c1.Output) sdr.Sector {
	return sdr.Sector{
		Config: r.Config, ProverID: r.ProverID, Number: r.Sector, Ticket: r.Ticket, Seed: r.Seed,
		CommR: output.CommR, CommD: output.CommD,
	}
}

// validate refuses invalid configurations and sectors above SizeMax.
func (r *Request) validate() error {
	if err := r.Config.Validate(); err != nil {
		return fmt.Errorf("check request for sector %d: %w", r.Sector, err)
	}
	if r.Config.Size > SizeMax {
		return fmt.Errorf("check request for sector %d of %s, at most %s: %w", r.Sector, r.Config.Size, SizeMax,
			ErrTooLarge)
	}
	return nil
}

// data is the sector's content as nodes: a key stream with the two top bits of every node cleared, as in data that was
// padded for sealing.
func (r *Request) data() [][32]byte {
	cipher, err := chacha20.NewUnauthenticatedCipher(r.DataSeed[:], make([]byte, chacha20.NonceSize))
	if err != nil {
		panic(fmt.Sprintf("seal: chacha20: %v", err))
	}
	nodes := make([][32]byte, r.Config.Size.Nodes())
	for i := range nodes {
		cipher.XORKeyStream(nodes[i][:], nodes[i][:])
		nodes[i][31] &= 0x3f
	}
	return nodes
}
