package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Times of a stream. A viewer that does not read for writeWithin is dropped.
const (
	quietMax    = 15 * time.Second
	writeWithin = 10 * time.Second
)

// stream pushes a document whenever it changes, until the viewer goes. What the rack doesn't
// answer is pushed as an event named "away".
func (s *Server) stream(w http.ResponseWriter, r *http.Request, get func(context.Context) ([]byte, error)) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.fail(w, fault.New(fault.Exhausted, "%d pages are open already", s.config.StreamsMax))
		return
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		s.fail(w, fault.As(fault.Internal, fmt.Errorf("stream: %w", err)))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text []byte) bool {
		if control.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
			return false
		}
		_, err := w.Write(text)
		return err == nil && control.Flush() == nil
	}
	ticker := time.NewTicker(s.config.Poll)
	defer ticker.Stop()
	var last []byte
	for sentAt := (time.Time{}); ; {
		event, data := s.event(r.Context(), get)
		if r.Context().Err() != nil {
			return
		}
		if text := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, data); !bytes.Equal(text, last) {
			if !send(text) {
				return
			}
			last, sentAt = text, time.Now()
		} else if time.Since(sentAt) > quietMax {
			if !send([]byte(": quiet\n\n")) {
				return
			}
			sentAt = time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// event asks once. JSON has no line breaks of its own, so a document is one line.
func (s *Server) event(ctx context.Context, get func(context.Context) ([]byte, error)) (string, []byte) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	data, err := get(ctx)
	if err != nil {
		return "away", encodeFault(err)
	}
	return "page", data
}
