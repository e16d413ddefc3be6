package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/wire"
)

// checkQuiet is what holds when all jobs of the test have ended, whatever fault there was: invariants 2 to 6 and 9.
// Invariant 1 is watched all through the test.
func (r *rack) checkQuiet() {
	r.t.Helper()
	letters := map[job.ID]bool{} // a dead letter keeps its input, to be replayed
	undone := map[job.ID]bool{}
	for _, j := range r.jobs {
		record := r.waitEnd(j)
		letters[j.id] = record.State == job.Failed
		undone[j.id] = record.State != job.Done
		r.checkAttempts(record)
		for _, wrong := range r.watch.kept(record) {
			r.t.Errorf("job %s: %s", j.id, wrong)
		}
		if record.State == job.Done {
			r.checkProof(j, record)
		} else if record.Fault == nil {
			r.t.Errorf("job %s is %s and does not say why (invariant 3)", j.id, record.State)
		}
	}
	for _, n := range r.nodes {
		r.gone(string(n.name)+" holds no attempt in the ledger (invariant 2)", func() string { return r.booked(n) })
		r.gone(string(n.name)+" holds no booking in its own book", func() string { return attemptsIn(n, "book") })
		r.gone(string(n.name)+" has no segment", func() string { return namesIn(n, "seg") })
		r.gone(string(n.name)+" has no result that was not sent", func() string { return namesIn(n, "outbox") })
		r.gone(string(n.name)+" has no free segment after a sweep (invariant 9)", func() string { return namesIn(n, "pool") })
		r.gone(string(n.name)+" has no buffer but assets", func() string { return r.watch.buffers(n.name) })
	}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		r.gone(stream+" is empty", func() string { return r.messages(stream) })
	}
	r.gone("no proof of a job that is not done is stored", func() string { return r.proofsOf(undone) })
	if !slices.Contains(slices.Collect(maps.Values(letters)), true) {
		r.gone("no dead letter is there", func() string { return r.messages(wire.StreamDLQ) })
	}
	for _, bucket := range []string{wire.ObjectsSlices, wire.ObjectsIn(job.MainTenant)} {
		r.gone(bucket+" is empty", func() string { return r.objects(bucket, letters) })
	}
}

// gone waits until a list is empty.
func (r *rack) gone(what string, left func() string) {
	r.t.Helper()
	last := ""
	defer func() {
		if last != "" {
			r.t.Logf("left: %s", last)
		}
	}()
	until(r.t, what, func() bool {
		last = left()
		return last == ""
	})
}

// checkAttempts: fences rise, and nothing follows the attempt that finished a partition (invariants 5 and 6).
func (r *rack) checkAttempts(record *job.Record) {
	r.t.Helper()
	for i, p := range record.Partitions {
		ok := 0
		for k, a := range p.Attempts {
			if k > 0 && a.Fence <= p.Attempts[k-1].Fence {
				r.t.Errorf("job %s partition %d: fence %d after %d", record.ID, i, a.Fence, p.Attempts[k-1].Fence)
			}
			if ok > 0 {
				r.t.Errorf("job %s partition %d was computed again after it was finished", record.ID, i)
			}
			if a.Outcome == job.OutcomeOK {
				ok++
			}
			if a.Outcome == "" {
				r.t.Errorf("job %s partition %d: attempt %d has no end", record.ID, i, a.Fence)
			}
		}
		if record.State == job.Done && (ok != 1 || p.Stage != job.Verified) {
			r.t.Errorf("job %s partition %d is %s with %d good attempts", record.ID, i, p.Stage, ok)
		}
	}
}

// checkProof fetches a job's proofs and verifies each against the instance that the test asked for.
func (r *rack) checkProof(j *submitted, record *job.Record) {
	r.t.Helper()
	proof, err := r.client.Result(r.t.Context(), record)
	r.check(err)
	if len(proof) != len(j.public)*wire.ProofBytes {
		r.t.Fatalf("job %s has %d bytes of proof for %d partitions", j.id, len(proof), len(j.public))
	}
	key := r.verifyingKey(j.circuit)
	for i, public := range j.public {
		p, err := groth16.ParseProof(proof[i*wire.ProofBytes : (i+1)*wire.ProofBytes])
		if err == nil {
			err = key.Verify(public, p)
		}
		if err != nil {
			r.t.Errorf("job %s partition %d does not verify: %v", j.id, i, err)
		}
	}
}

func (r *rack) verifyingKey(c circuit.Circuit) *groth16.PreparedKey {
	r.t.Helper()
	key, err := srs.OpenKey(r.t.Context(), filepath.Join(r.params, c.ParamsName()+srs.KeyExtension), 0, srs.Options{})
	r.check(err)
	prepared, err := groth16.Prepare(key.VerifyingKey)
	r.check(err)
	return prepared
}

// booked lists the attempts in a node's book in Redis, what its assets have beyond those that the node itself has, and
// what its sums have beyond assets.
func (r *rack) booked(n *node) string {
	b := r.book(n.name)
	if b == nil {
		return "no book"
	}
	if len(b.Entries) > 0 {
		return fmt.Sprintf("%+v", b.Entries)
	}
	if b.Closed != "" {
		return "a closed book: " + b.Closed
	}
	_, assets, err := readOwnBook(filepath.Join(n.spill, "book"))
	if err != nil {
		return err.Error()
	}
	used := map[ledger.AssetKey]bytesize.Bytes{}
	for _, a := range b.Assets {
		used[a.Key()] += a.Bytes
		if a.Users != 0 {
			return fmt.Sprintf("%d attempts use %s", a.Users, a.Name)
		}
	}
	for _, a := range assets {
		used[a.Key()] -= a.Bytes
	}
	for key, bytes := range used {
		if bytes != 0 {
			return fmt.Sprintf("%s: the ledger has %d bytes more than the node", key, bytes)
		}
	}
	if wrong := b.Mismatch(); len(wrong) > 0 {
		return fmt.Sprintf("bytes of %v without an owner: %s of %+v", wrong, b.Used, b.Assets)
	}
	return ""
}

func attemptsIn(n *node, folder string) string {
	left := ""
	for _, name := range entries(n, folder) {
		if _, err := job.ParseAttempt(name); err == nil {
			left += " " + name
		}
	}
	return left
}

func namesIn(n *node, folder string) string {
	left := ""
	for _, name := range entries(n, folder) {
		left += " " + name
	}
	return left
}

func entries(n *node, folder string) (names []string) {
	list, err := os.ReadDir(filepath.Join(n.spill, folder))
	if err != nil {
		return nil
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func (r *rack) messages(stream string) string {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	log, err := r.bus.Log(ctx, stream)
	if err != nil {
		return err.Error()
	}
	s, err := log.State(ctx)
	if err != nil {
		return err.Error()
	}
	if s.Messages == 0 {
		return ""
	}
	return fmt.Sprintf("%d messages", s.Messages)
}

// proofsOf lists the stored proofs of some jobs.
func (r *rack) proofsOf(jobs map[job.ID]bool) string {
	others := map[job.ID]bool{}
	for _, name := range strings.Fields(r.objects(wire.ObjectsProofs(job.MainTenant), nil)) {
		if id, _, _ := strings.Cut(name, "."); !jobs[job.ID(id)] {
			others[job.ID(id)] = true
		}
	}
	return r.objects(wire.ObjectsProofs(job.MainTenant), others)
}

// objects lists a bucket, but for the inputs of jobs in kept.
func (r *rack) objects(bucket string, kept map[job.ID]bool) string {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	objects, err := r.bus.Objects(ctx, bucket)
	if err != nil {
		return err.Error()
	}
	list, err := objects.List(ctx)
	if err != nil {
		return err.Error()
	}
	left := ""
	for _, o := range list {
		if id, _, _ := strings.Cut(o.Name, "."); !kept[job.ID(id)] {
			left += " " + o.Name
		}
	}
	return left
}
