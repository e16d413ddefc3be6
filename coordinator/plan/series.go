package plan

import (
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Point is a value from a time on.
type Point struct {
	At    time.Duration  `json:"-"`
	Bytes bytesize.Bytes `json:"bytes"`
}

// series is an amount over time and its peak. An amount that falls below 0 is a broken invariant.
type series struct {
	points []Point
	now    bytesize.Bytes
	peak   bytesize.Bytes
	peakAt time.Duration
}

func (s *series) add(at time.Duration, delta bytesize.Bytes) {
	if delta == 0 {
		return
	}
	if s.now += delta; s.now < 0 {
		panic("plan: more bytes given back than were taken: " + s.now.String())
	}
	if last := len(s.points) - 1; last >= 0 && s.points[last].At == at {
		s.points[last].Bytes = s.now
	} else {
		s.points = append(s.points, Point{at, s.now})
	}
}

// settle takes the present value as one that lasted: within one instant bytes may be taken before others are given
// back.
func (s *series) settle(at time.Duration) {
	if s.now > s.peak {
		s.peak, s.peakAt = s.now, at
	}
}
