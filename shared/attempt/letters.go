package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/internal/groupdir"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Bounds of the folder of letters.
const (
	lettersMax     = 4096
	letterBytesMax = 64 << 10
	letterSuffix   = ".json"
)

// letterGroupMode is the mode of a letter that a group may read; others are their user's own.
const letterGroupMode = 0o640

// letter is a message in the folder.
type letter struct {
	Subject string            `json:"subject"`
	ID      string            `json:"id"`
	Header  map[string]string `json:"header,omitempty"`
	Data    []byte            `json:"data"`
}

func (o *Outbox) path(id string) string { return filepath.Join(o.folder, id+letterSuffix) }

// keep puts a copy of a message into the folder. Without it the message is lost if the process ends before the bus is
// back, and the work is done again: that is no error of the attempt.
func (o *Outbox) keep(m bus.Message) {
	if o.folder == "" {
		return
	}
	if err := o.write(m); err != nil {
		o.log.Warn().Err(err).Str("message", m.ID).Msg("message is kept in memory only")
	}
}

func (o *Outbox) write(m bus.Message) error {
	text, err := json.Marshal(letter{Subject: m.Subject, ID: m.ID, Header: m.Header, Data: m.Data})
	if err != nil {
		return err
	}
	if err := groupdir.Make(o.folder, o.group); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(o.folder, ".tmp-*")
	if err != nil {
		return err
	}
	if o.group >= 0 { // the next process may be another user's
		err = errors.Join(tmp.Chown(-1, o.group), tmp.Chmod(letterGroupMode))
	}
	if err == nil {
		_, err = tmp.Write(text)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), o.path(m.ID))
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// forget removes the copy of a message that was sent.
func (o *Outbox) forget(id string) {
	if o.folder == "" {
		return
	}
	if err := os.Remove(o.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.log.Warn().Err(err).Str("message", id).Msg("copy of a sent message stays")
	}
}

// Resume sends the results that earlier processes of the node could not send, and has the board remember their
// attempts: their tasks are not worked on again. Files that are no results of the node are left alone.
func (o *Outbox) Resume(node job.Node, board *Board) error {
	if o.folder == "" {
		return nil
	}
	entries, err := os.ReadDir(o.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kept results: %w", err)
	}
	for _, e := range entries[:min(len(entries), lettersMax)] {
		if !strings.HasSuffix(e.Name(), letterSuffix) {
			continue
		}
		m, result, err := o.read(e, node)
		if err != nil {
			o.log.Warn().Err(err).Str("file", e.Name()).Msg("file is no kept result")
			continue
		}
		board.remember(result.Attempt)
		o.log.Info().Stringer("attempt", result.Attempt).Msg("sending the result that another process could not")
		o.wg.Go(func() {
			_ = o.publish(m) // its only error is that this process ends, too
		})
	}
	return nil
}

func (o *Outbox) read(e fs.DirEntry, node job.Node) (m bus.Message, result wire.Result, err error) {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() || info.Size() > letterBytesMax {
		return m, result, errors.Join(fault.New(fault.Corrupt, "not a file of at most %d bytes", letterBytesMax), err)
	}
	text, err := os.ReadFile(filepath.Join(o.folder, e.Name()))
	if err != nil {
		return m, result, err
	}
	var l letter
	if err := json.Unmarshal(text, &l); err != nil {
		return m, result, fault.As(fault.Corrupt, err)
	}
	if err := wire.Decode(l.Data, &result); err != nil {
		return m, result, err
	}
	if result.Node != node || l.Subject != wire.ResultSubject(node) || l.ID != result.ID() ||
		e.Name() != l.ID+letterSuffix {
		return m, result, fault.New(fault.Corrupt, "result %s of node %s for %s", l.ID, result.Node, l.Subject)
	}
	return bus.Message{Subject: l.Subject, ID: l.ID, Header: l.Header, Data: l.Data}, result, nil
}
