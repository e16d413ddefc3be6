package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// forgottenPrefix is what keys of forgotten nodes begin with, in BucketNodes.
const forgottenPrefix = "forgotten."

// PutForgotten keeps what was released when a node was forgotten, in place of what was kept of an earlier time.
func (s *Store) PutForgotten(ctx context.Context, f *wire.Forgotten) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode forgotten node %s: %w", f.Node, err)
	}
	key := forgottenPrefix + string(f.Node)
	if _, err := s.replace(ctx, s.flags.kv, key, func([]byte) ([]byte, error) { return data, nil }); err != nil {
		return fmt.Errorf("keep forgotten node %s: %w", f.Node, err)
	}
	return nil
}

// Forgotten is what was kept when a node was forgotten. fault.NotFound: it never was.
func (s *Store) Forgotten(ctx context.Context, node job.Node) (*wire.Forgotten, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	e, err := s.flags.kv.Get(ctx, forgottenPrefix+string(node))
	if err != nil {
		return nil, fmt.Errorf("read forgotten node %s: %w", node, err)
	}
	f := &wire.Forgotten{}
	if err := json.Unmarshal(e.Value, f); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("decode forgotten node %s: %w", node, err))
	}
	return f, nil
}
