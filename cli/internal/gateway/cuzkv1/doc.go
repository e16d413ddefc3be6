// Package cuzkv1 is the protocol cuzk.v1 in Go, generated from cuzk.proto by tools/protogen. It owns names and field
// numbers and nothing else; what the calls mean is package gateway's.
//
//go:generate go run -C ../../../../tools ./protogen ../cli/internal/gateway/cuzkv1 cuzk.proto
package cuzkv1
