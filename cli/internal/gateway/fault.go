package gateway

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/shared/fault"
)

// rpcError is an error as clients of the protocol get it: a code by kind, and the text with its hint.
func rpcError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	text := err.Error()
	if hint := fault.ReportOf("", err).Hint; hint != "" {
		text += "; " + hint
	}
	return status.Error(codeOf(err), text)
}

// codeOf is the code of an error's kind.
func codeOf(err error) codes.Code {
	switch fault.KindOf(err) {
	case fault.Invalid:
		return codes.InvalidArgument
	case fault.Conflict:
		return codes.FailedPrecondition
	case fault.NotFound:
		return codes.NotFound
	case fault.Exhausted:
		return codes.ResourceExhausted
	case fault.Transient:
		if errors.Is(err, context.DeadlineExceeded) {
			return codes.DeadlineExceeded
		}
		return codes.Unavailable
	case fault.Cancelled:
		return codes.Canceled
	case fault.Corrupt:
		return codes.DataLoss
	case fault.Lost, fault.Device, fault.Internal:
	}
	return codes.Internal
}

// errLeaving answers calls that wait while the program ends.
func errLeaving() error {
	return status.Error(codes.Unavailable, "the gateway is stopping; accepted jobs go on: send the request again")
}
