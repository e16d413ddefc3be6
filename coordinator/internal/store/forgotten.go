package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// What keys of forgotten nodes, and of single attempts released by hand, begin with in BucketNodes.
const (
	forgottenPrefix = "forgotten."
	releasedPrefix  = "released."
)

// PutForgotten keeps what was released when a node was forgotten, in place of what was kept of an earlier time.
func (s *Store) PutForgotten(ctx context.Context, f *wire.Forgotten) error {
	return s.putWord(ctx, forgottenPrefix+string(f.Node), f)
}

// PutReleased keeps what was released when one attempt was released by hand.
func (s *Store) PutReleased(ctx context.Context, a job.Attempt, f *wire.Forgotten) error {
	return s.putWord(ctx, releasedKey(f.Node, a), f)
}

func releasedKey(node job.Node, a job.Attempt) string {
	return releasedPrefix + string(node) + "." + a.String()
}

func (s *Store) putWord(ctx context.Context, key string, f *wire.Forgotten) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	if _, err := s.replace(ctx, s.flags.kv, key, func([]byte) ([]byte, error) { return data, nil }); err != nil {
		return fmt.Errorf("keep %s: %w", key, err)
	}
	return nil
}

// Forgotten is what was kept when a node was forgotten. fault.NotFound: it never was.
func (s *Store) Forgotten(ctx context.Context, node job.Node) (*wire.Forgotten, error) {
	return s.word(ctx, forgottenPrefix+string(node))
}

// Released is what was kept when an attempt was released by hand. fault.NotFound: it never was.
func (s *Store) Released(ctx context.Context, node job.Node, a job.Attempt) (*wire.Forgotten, error) {
	return s.word(ctx, releasedKey(node, a))
}

func (s *Store) word(ctx context.Context, key string) (*wire.Forgotten, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	e, err := s.flags.kv.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	f := &wire.Forgotten{}
	if err := json.Unmarshal(e.Value, f); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("decode %s: %w", key, err))
	}
	return f, nil
}
