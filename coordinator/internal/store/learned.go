package store

import (
	"context"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
)

// learnedKeys are keys in BucketNodes of what leaders learned: of sizes, and of speeds.
func learnedKeys() [2]string { return [2]string{"learned.sizes", "learned.speeds"} }

// Learned is what leaders learned by measuring attempts, as package sizes encodes it. A part that is not there is nil.
type Learned struct {
	Sizes, Speeds []byte
	// revisions are those that were read or written.
	revisions [2]uint64
}

// Learned reads what leaders learned.
func (s *Store) Learned(ctx context.Context) (*Learned, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	l := &Learned{}
	for i, part := range []*[]byte{&l.Sizes, &l.Speeds} {
		e, err := s.flags.kv.Get(ctx, learnedKeys()[i])
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what was learned: %w", err)
		}
		*part, l.revisions[i] = e.Value, e.Revision
	}
	return l, nil
}

// SaveLearned writes both parts in the place of those that were read, and notes it in before. When others have written
// meanwhile it is fault.Conflict, and nothing of theirs is lost.
func (s *Store) SaveLearned(ctx context.Context, before *Learned, sizes, speeds []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	for i, data := range [][]byte{sizes, speeds} {
		var err error
		revision := before.revisions[i]
		if revision == 0 {
			revision, err = s.flags.kv.Create(ctx, learnedKeys()[i], data)
		} else {
			revision, err = s.flags.kv.Update(ctx, learnedKeys()[i], data, revision)
		}
		if err != nil {
			return fmt.Errorf("write what was learned: %w", err)
		}
		before.revisions[i] = revision
	}
	before.Sizes, before.Speeds = sizes, speeds
	return nil
}
