package store

import (
	"errors"
	"fmt"
	"time"
)

// Config sets how long things are kept. Start from DefaultConfig.
type Config struct {
	// KeyGrace is how long a key entry may be without its record before it counts as left by a crash.
	KeyGrace time.Duration
	// Retention is how long an ended job is kept, RetentionCount how many of each tenant are kept at most (B80).
	Retention      time.Duration
	RetentionCount int
	// AuditRetention is how long audit records are kept, AuditCount how many of all tenants at most.
	AuditRetention time.Duration
	AuditCount     int
	// OrphanAge is how old an object without a record must be before it is removed: longer than any intake takes.
	OrphanAge time.Duration
	// BytesMax and SliceBytesMax are the sizes of the buckets of records and of slices; 0 is no bound. What is kept for
	// later goes before its time rather than that running work finds no room in them.
	BytesMax, SliceBytesMax int64
	// ProofBytesMax is the size of each tenant's bucket of proofs; 0 is no bound. A full one would let no job end.
	ProofBytesMax int64
	// InputRetention is how long what clients uploaded is kept.
	InputRetention time.Duration
	// CallTimeout bounds one call to the bucket or the object store, without the time for an object's bytes.
	CallTimeout time.Duration
	// RollbackAfter is after which time a record that is older than the one that is known is believed: that NATS was
	// restored from a backup, and after which time one that is not there is believed to be gone. It must be longer than
	// what was written takes to come back.
	RollbackAfter time.Duration
}

// RollbackAfterDefault is many times as long as a server is behind.
const RollbackAfterDefault = 2 * time.Second

// DefaultConfig is design section 4's start values.
func DefaultConfig() Config {
	return Config{
		KeyGrace: 5 * time.Second, Retention: 7 * 24 * time.Hour, RetentionCount: 10_000,
		AuditRetention: 90 * 24 * time.Hour, AuditCount: 40_000,
		OrphanAge: 15 * time.Minute, InputRetention: 24 * time.Hour, CallTimeout: 10 * time.Second,
		RollbackAfter: RollbackAfterDefault,
	}
}

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"key_grace", int64(c.KeyGrace)}, {"retention", int64(c.Retention)},
		{"retention_count", int64(c.RetentionCount)}, {"audit_retention", int64(c.AuditRetention)},
		{"audit_count", int64(c.AuditCount)}, {"orphan_age", int64(c.OrphanAge)},
		{"input_retention", int64(c.InputRetention)}, {"call_timeout", int64(c.CallTimeout)},
		{"rollback_after", int64(c.RollbackAfter)},
	} {
		if f.value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be more than 0, not %d", f.name, f.value))
		}
	}
	if c.BytesMax < 0 || c.SliceBytesMax < 0 || c.ProofBytesMax < 0 {
		errs = append(errs, fmt.Errorf("bytes_max %d, slice_bytes_max %d and proof_bytes_max %d must not be negative",
			c.BytesMax, c.SliceBytesMax, c.ProofBytesMax))
	}
	return errors.Join(errs...)
}
