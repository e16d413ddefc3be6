package srs

import (
	"bytes"
	"testing"
)

func FuzzParseKey(f *testing.F) {
	f.Add(sampleKey(1))
	f.Add(sampleKey(2)[:900])
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := ParseKey(data)
		if err != nil {
			return
		}
		if !bytes.Equal(key.Append(nil), data) {
			t.Error("written back differently")
		}
	})
}

func FuzzParseParams(f *testing.F) {
	f.Add(sampleParams(sampleCounts))
	f.Add(sampleParams(Counts{IC: 1, H: 0, L: 1, A: 1, B: 0}))
	f.Add(sampleParams(Counts{IC: 1, H: 1, L: 0, A: 1, B: 1})[:1200])
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseLayout(data)
		if err != nil {
			return
		}
		if got := l.counts.ParamsBytes(); got != int64(len(data)) {
			t.Errorf("%v needs %d bytes, taken with %d", l.counts, got, len(data))
		}
		if l.checkSample(4) == nil {
			for i := range l.sections {
				if l.sections[i].Len() > 0 && l.sections[i].Bytes()[0]&0xe0 != 0 {
					t.Errorf("%s: flags accepted", l.sections[i].Name())
				}
			}
		}
	})
}
