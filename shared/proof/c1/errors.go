package c1

import (
	"fmt"
	"strings"
)

// InputError says why a C1 input is refused and where. Every refusal of Decode and Check is one; what is not one is an
// error of the reader.
type InputError struct {
	// Partition and Challenge are counted from 0; -1 when the fault lies in none.
	Partition, Challenge int
	// Field is the path of JSON keys inside the challenge proof (or inside the whole object when Partition is -1), such
	// as "replica_column_proofs.drg_parents[3].column.rows[1]". Empty for the text as a whole.
	Field string
	// Offset is the byte where the fault was found, -1 when it was found after parsing. With InPhase1Out it counts the
	// bytes of the decoded Phase1Out text, not those of the envelope.
	Offset int64
	// InPhase1Out says that the fault lies in the text that an envelope carries as base64.
	InPhase1Out bool
	// Reason is one line; it holds outside text only quoted and shortened.
	Reason string
}

func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString("c1: ")
	if e.Partition >= 0 {
		fmt.Fprintf(&b, "partition %d, ", e.Partition)
		if e.Challenge >= 0 {
			fmt.Fprintf(&b, "challenge %d, ", e.Challenge)
		}
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "field %s, ", e.Field)
	}
	switch {
	case e.Offset >= 0 && e.InPhase1Out:
		fmt.Fprintf(&b, "byte %d of the decoded Phase1Out, ", e.Offset)
	case e.Offset >= 0:
		fmt.Fprintf(&b, "byte %d, ", e.Offset)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(b.String(), ", "), " ")
	if text == "c1:" {
		return "c1: " + e.Reason
	}
	return text + ": " + e.Reason
}
