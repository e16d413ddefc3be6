// Package porep is the circuit of Filecoin's stacked proof of replication (spec c2-circuit.md section 4), for every
// sector size. The three proof families share it. It is the only package that knows this circuit; the rest of the
// system sees it as a circuit.Circuit.
//
// A partition is walked in sections: the head (the commitments and the replica id's bits), then one section per
// challenge. Challenges share variables with the head alone.
package porep
