package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A full bucket takes no change that makes a record larger, so no claim and no proof: the rack would stand still until
// something is old enough to go. So a half of the bucket is for records, a quarter for audit records; the rest is for
// keys, marks of what was deleted, and what the server adds. Ended jobs and audit records go before their time when
// their share is used up, and no job is taken when those that live need all of it.
const (
	recordShare = 2 // one part in
	auditShare  = 4
	sliceShare  = 2 // slices are kept for replays up to this part of their bucket
	proofShare  = 2 // proofs are kept up to this part of their tenant's bucket
)

// entryBytes is about what the server adds to an entry: its subject, headers, and the job's key.
const entryBytes = 512

// objectBytes is about what the server adds to a small object.
const objectBytes = 1 << 10

// Sizes of a job of ten partitions, which sectors of 32 and 64 GiB have, with what the server adds.
const (
	typicalPartitions  = 10
	typicalRecordBytes = 12 << 10 // once it has ended
	typicalAuditBytes  = 6 << 10
	typicalProofBytes  = typicalPartitions*wire.ProofBytes + objectBytes
)

// Misfits are the settings that promise one tenant more than the buckets hold, for jobs of ten partitions of which so
// many may live: what is kept goes before its time then.
func (c *Config) Misfits(liveMax int) (all []string) {
	promise := func(what string, bytes int64, key string, size int64, share int64) {
		if size > 0 && bytes > size/share {
			all = append(all, fmt.Sprintf("%s take about %s, more than one part in %d of %s %s", what,
				bytesize.Bytes(bytes), share, key, bytesize.Bytes(size)))
		}
	}
	promise("records of retention_count ended jobs and of live_jobs_max others",
		int64(c.RetentionCount)*typicalRecordBytes+
			int64(liveMax)*(grownBytes+grownPartitionBytes*typicalPartitions+entryBytes), "job_bytes", c.BytesMax, recordShare)
	promise("audit_count audit records", int64(c.AuditCount)*typicalAuditBytes, "job_bytes", c.BytesMax, auditShare)
	promise("proofs of retention_count jobs", int64(c.RetentionCount)*typicalProofBytes, "proof_bytes", c.ProofBytesMax,
		proofShare)
	return all
}

// A record grows while its job runs: by attempts and proofs.
const (
	grownBytes          = 2 << 10
	grownPartitionBytes = 1500
)

// need is the room that a record takes once its job has ended well.
func need(j Job) int64 {
	if j.Record.State.Ended() {
		return int64(j.bytes) + entryBytes
	}
	return max(int64(j.bytes), grownBytes+grownPartitionBytes*int64(len(j.Record.Partitions))) + entryBytes
}

// recordRoom is the room that is left for ended jobs beside those that live.
func (s *Store) recordRoom() int64 {
	if s.cfg.BytesMax == 0 {
		return math.MaxInt64
	}
	room := s.cfg.BytesMax / recordShare
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	for id := range s.view.live {
		room -= need(s.view.jobs[id])
	}
	return room
}

// heldBy is what a tenant's jobs that have not ended hold: their slices and inputs, and the room for their records.
func (s *Store) heldBy(tenant job.Tenant) (slices, records int64) {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	for id := range s.view.live {
		j := s.view.jobs[id]
		if j.Record.Tenant != tenant {
			continue
		}
		records += need(j)
		slices += j.Record.Inputs.Bytes
		for i := range j.Record.Partitions {
			slices += j.Record.Partitions[i].Slice.Bytes
		}
	}
	return slices, records
}

// Room is nil while records of further jobs fit; else fault.Exhausted.
func (s *Store) Room() error {
	if s.recordRoom() > 0 {
		return nil
	}
	return fault.WithHint(
		fault.New(fault.Exhausted, "jobs that have not ended need all the room for records, half of %d bytes",
			s.cfg.BytesMax),
		"submit again when some have ended, or ask the operator for more job_bytes")
}

// auditSample is how many audit records are looked at to learn how large they are.
const auditSample = 16

// auditsThatFit is how many audit records have room, by the average size of some. The keys are sorted.
func (s *Store) auditsThatFit(ctx context.Context, keys []string) (int, error) {
	if s.cfg.BytesMax == 0 || len(keys) == 0 {
		return math.MaxInt, nil
	}
	sum, seen := int64(0), int64(0)
	for i := range min(auditSample, len(keys)) {
		_, bytes, err := s.audit(ctx, keys[i*len(keys)/min(auditSample, len(keys))])
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += int64(bytes) + entryBytes
		seen++
	}
	return int(s.cfg.BytesMax / auditShare * seen / max(1, sum)), nil
}

// dropReplays removes slices of jobs that failed, oldest first, while slices take more than their share: what may be
// replayed must not keep new jobs out.
func (s *Store) dropReplays(ctx context.Context, list []bus.ObjectInfo) (n int, err error) {
	if s.cfg.SliceBytesMax == 0 {
		return 0, nil
	}
	over := -s.cfg.SliceBytesMax / sliceShare
	for _, o := range list {
		over += int64(o.Bytes)
	}
	dropped := map[job.ID]bool{}
	defer func() { s.tooEarly(len(dropped), "inputs of failed jobs, which cannot be replayed now", "slice_bytes") }()
	slices.SortFunc(list, func(a, b bus.ObjectInfo) int { return a.Modified.Compare(b.Modified) })
	for _, o := range list {
		id, _, _ := strings.Cut(o.Name, ".")
		j, ok := s.Get(job.ID(id))
		if over <= 0 || n == sweepMax {
			return n, nil
		}
		if !ok || j.Record.State != job.Failed {
			continue
		}
		if err := s.dropObject(ctx, wire.ObjectsSlices, o.Name); err != nil {
			return n, err
		}
		dropped[j.Record.ID] = true
		over -= int64(o.Bytes)
		n++
	}
	return n, nil
}

// tooEarlyEvery is how often operators are told the same.
const tooEarlyEvery = time.Hour

// tooEarly tells operators what is removed before its time. It belongs to Sweep.
func (s *Store) tooEarly(n int, what, key string) {
	if n > 0 && time.Since(s.toldAt[what]) >= tooEarlyEvery {
		s.toldAt[what] = time.Now()
		s.log.Warn().Int("count", n).Str("what", what).Str("setting", "streams."+key).
			Msg("removed before its time: the bucket has no more room")
	}
}
