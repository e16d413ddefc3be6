package engine

import (
	"context"
	"fmt"
	"os"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// load makes a circuit resident: from an image when one is given, else from its file.
func (s *server) load(ctx context.Context, id string, image *os.File) (*Loaded, error) {
	defer s.noteLoaded(id)
	acquire := s.set.Acquire
	if image != nil {
		acquire = func(ctx context.Context, id string) (*residency.Resident, func(), error) {
			return s.set.Adopt(ctx, id, image)
		}
	}
	res, release, err := acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	s.deviceMu.RLock()
	m := s.device.Memory(res.Params.Artifact.Totals)
	s.deviceMu.RUnlock()
	return &Loaded{
		Digest: res.Params.SRS.Digest, Key: res.Params.SRS.Key.Append(nil), Development: res.Params.SRS.Development,
		SRS: bytesize.Bytes(res.Params.SRS.Counts.ParamsBytes()), Artifact: res.ArtifactBytes(),
		Shared: bytesize.Bytes(m.SharedBytes), Pending: bytesize.Bytes(m.PendingBytes),
		Working: bytesize.Bytes(m.WorkingBytes), Device: bytesize.Bytes(m.DeviceBytes), Seconds: res.LoadedIn.Seconds(),
		Image: bytesize.Bytes(res.Params.SRS.Counts.ImageBytes()), Decoded: res.Params.SRS.Decoded(),
	}, nil
}

// writeImage decodes a circuit's parameters into a file for other engines.
func (s *server) writeImage(ctx context.Context, id string, image *os.File) error {
	if image == nil {
		return fault.New(fault.Internal, "image of circuit %s without a file", id)
	}
	defer s.noteLoaded(id)
	s.step("decode")
	return s.set.WriteImage(ctx, id, image)
}

// noteLoading keeps how far a load is, for the next beat.
func (s *server) noteLoading(id string, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = &Loading{Circuit: id, Done: bytesize.Bytes(done), Total: bytesize.Bytes(total)}
}

// noteLoaded ends that.
func (s *server) noteLoaded(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loading != nil && s.loading.Circuit == id {
		s.loading = nil
	}
}

// evict gives back a circuit's parameters. The device must let go of them first, so it is opened anew.
func (s *server) evict(id string) error {
	_, err := s.set.Evict(id, func() error {
		s.deviceMu.Lock()
		defer s.deviceMu.Unlock()
		if err := s.device.Close(); err != nil {
			return fmt.Errorf("close device: %w", err)
		}
		var err error
		s.device, err = s.openDevice(s.setup.Simulate)
		return err
	})
	return err
}
