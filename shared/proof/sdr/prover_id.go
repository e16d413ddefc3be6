package sdr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrMiner says that a text names no miner actor.
var ErrMiner = errors.New("no miner actor id")

// ParseMiner reads a miner actor id written as a number or as an ID address of the main or a test network: "1000",
// "f01000" or "t01000". Other address kinds are refused: they name keys, not actors.
func ParseMiner(text string) (uint64, error) {
	digits := text
	for _, prefix := range []string{"f0", "t0"} {
		if rest, found := strings.CutPrefix(text, prefix); found {
			digits = rest
			break
		}
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	// Leading zeros and ids above 2^63−1, which no chain can hold, are refused: one id has one spelling.
	if err != nil || strconv.FormatUint(id, 10) != digits || id > 1<<63-1 {
		return 0, fmt.Errorf("parse miner %.30q: %w", text, ErrMiner)
	}
	return id, nil
}

// ProverID is the payload of a miner's ID address: the actor id as unsigned LEB128, left-aligned (c2-formats.md 2.1).
func ProverID(miner uint64) [32]byte {
	var id [32]byte
	binary.PutUvarint(id[:], miner)
	return id
}
