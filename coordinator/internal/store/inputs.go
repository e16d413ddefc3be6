package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Bounds of objects, bytes.
const (
	inputsBytesMax = 64 << 20
	sliceBytesMax  = 64 << 20
)

// PutInput stores a slice (wire.SliceName) or the public inputs (wire.InputsName) of a job whose record is not there
// yet.
func (s *Store) PutInput(ctx context.Context, name string, data []byte) (job.Object, error) {
	return s.putObject(ctx, wire.ObjectsSlices, name, data)
}

// DeleteInput removes what PutInput stored.
func (s *Store) DeleteInput(ctx context.Context, name string) error {
	return s.dropObject(ctx, wire.ObjectsSlices, name)
}

// OpenUpload reads what a client of a tenant uploaded. It fails with fault.NotFound.
func (s *Store) OpenUpload(ctx context.Context, tenant job.Tenant, name string) (io.ReadCloser, error) {
	objects, err := s.bus.Objects(ctx, wire.ObjectsIn(tenant))
	if err != nil {
		return nil, fmt.Errorf("open objects %s: %w", wire.ObjectsIn(tenant), err)
	}
	r, _, err := objects.Get(ctx, name, wire.ReferenceBytesMax)
	if err != nil {
		return nil, fmt.Errorf("get object %s/%s: %w", wire.ObjectsIn(tenant), name, err)
	}
	return r, nil
}

// Inputs reads the public inputs of a job. A missing object is fault.NotFound, another content fault.Corrupt.
func (s *Store) Inputs(ctx context.Context, r *job.Record) ([][]fr.Element, error) {
	data, err := s.readObject(ctx, wire.ObjectsSlices, r.Inputs, inputsBytesMax)
	if err != nil {
		return nil, fmt.Errorf("read inputs of job %s: %w", r.ID, err)
	}
	inputs, err := wire.ParsePublicInputs(data, len(r.Partitions))
	if err != nil {
		return nil, fmt.Errorf("read inputs of job %s: %w", r.ID, err)
	}
	return inputs, nil
}

// DropInput removes slices and public inputs of a job that needs them no more.
func (s *Store) DropInput(ctx context.Context, id job.ID, partitions int) error {
	for i := range partitions {
		if err := s.dropObject(ctx, wire.ObjectsSlices, wire.SliceName(id, i)); err != nil {
			return fmt.Errorf("remove slice %d of job %s: %w", i, id, err)
		}
	}
	if err := s.dropObject(ctx, wire.ObjectsSlices, wire.InputsName(id)); err != nil {
		return fmt.Errorf("remove inputs of job %s: %w", id, err)
	}
	return nil
}

// HasSlice tells whether a partition's slice is still there. That it is not is told after a second look, Config's
// RollbackAfter later: a server that led a moment ago may be behind.
func (s *Store) HasSlice(ctx context.Context, r *job.Record, partition int) (bool, error) {
	for look := 0; ; look++ {
		_, err := s.readObject(ctx, wire.ObjectsSlices, r.Partitions[partition].Slice, sliceBytesMax)
		switch {
		case fault.KindOf(err) != fault.NotFound:
			return err == nil, err
		case look > 0:
			return false, nil
		}
		select {
		case <-time.After(s.cfg.RollbackAfter):
		case <-ctx.Done():
			return false, fault.As(fault.Transient, fmt.Errorf("look for slice %d of job %s: %w", partition, r.ID, ctx.Err()))
		}
	}
}

// PutProof stores the proof of a finished job for its tenant.
func (s *Store) PutProof(ctx context.Context, r *job.Record, proof []byte) (job.Object, error) {
	return s.putObject(ctx, wire.ObjectsProofs(r.Tenant), string(r.ID), proof)
}

// Proof reads a finished job's proof.
func (s *Store) Proof(ctx context.Context, r *job.Record) ([]byte, error) {
	if r.Result == nil {
		return nil, fault.New(fault.NotFound, "job %s has no proof (%s)", r.ID, r.State)
	}
	return s.readObject(ctx, wire.ObjectsProofs(r.Tenant), *r.Result, job.PartitionsMax*wire.ProofBytes)
}

func (s *Store) putObject(ctx context.Context, bucket, name string, data []byte) (job.Object, error) {
	objects, err := s.bus.Objects(ctx, bucket)
	if err != nil {
		return job.Object{}, unmade(fmt.Errorf("open objects %s: %w", bucket, err))
	}
	if _, err := objects.Put(ctx, name, bytes.NewReader(data), nil); err != nil {
		return job.Object{}, unmade(fmt.Errorf("put object %s/%s: %w", bucket, name, err))
	}
	sum := sha256.Sum256(data)
	return job.Object{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}, nil
}

// unmade makes what a write says of a bucket that is not there transient: after all disks were lost, it is made again.
func unmade(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return fault.As(fault.Transient, err)
	}
	return err
}

func (s *Store) readObject(ctx context.Context, bucket string, o job.Object, bytesMax int64) (_ []byte, err error) {
	objects, err := s.bus.Objects(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open objects %s: %w", bucket, err)
	}
	r, _, err := objects.Get(ctx, o.Name, bytesMax)
	if err != nil {
		return nil, fmt.Errorf("get object %s/%s: %w", bucket, o.Name, err)
	}
	defer func() { _ = r.Close() }() // read to the end: nothing more can be learnt
	data, err := io.ReadAll(io.LimitReader(r, bytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read object %s/%s: %w", bucket, o.Name, err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != o.SHA256 || int64(len(data)) != o.Bytes {
		return nil, fault.New(fault.Corrupt, "object %s/%s: %d bytes with digest %s instead of %d with %s",
			bucket, o.Name, len(data), got, o.Bytes, o.SHA256)
	}
	return data, nil
}

// dropObject removes an object; one that is not there is gone already, and so is all of a bucket that is not there: of
// a tenant that is no longer configured, or after all disks were lost.
func (s *Store) dropObject(ctx context.Context, bucket, name string) error {
	objects, err := s.bus.Objects(ctx, bucket)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open objects %s: %w", bucket, err)
	}
	if err := objects.Delete(ctx, name); err != nil && fault.KindOf(err) != fault.NotFound {
		return fmt.Errorf("remove object %s/%s: %w", bucket, name, err)
	}
	return nil
}
