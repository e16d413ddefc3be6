package verb

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// forgetResult is what was released with a node.
type forgetResult struct{ *wire.ForgetReply }

func (r *forgetResult) human(w io.Writer) {
	f := &r.Forgotten
	row(w, "forgotten", "node %s", f.Node)
	if len(f.Attempts) > 0 {
		row(w, "released", "%s of %d attempts, by your word", f.Held, len(f.Attempts))
	}
}

// forgetCommand is part of nodes.
func (a *app) forgetCommand() *cobra.Command {
	var flags rackFlags
	var request wire.ForgetRequest
	c := &cobra.Command{
		Use:   "forget NODE",
		Short: "drop what is kept about a node that is gone",
		Long: "Drops the book and the marks of a node that does not beat any more. What is booked there is released only\n" +
			"with --yes: that is your word that the machine is gone, or was started anew with nothing of it left. Your\n" +
			"word is kept, with what it released.",
		PreRunE: func(_ *cobra.Command, args []string) error {
			node, err := job.ParseNode(args[0])
			if err != nil {
				return misuse("%w", err)
			}
			request.Node = node
			return request.Check()
		},
		Args: oneArg("the node", "nodes lists them"),
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			var reply wire.ForgetReply
			if err := r.admin(c.Context(), wire.AdminForget, &request, &reply); err != nil {
				return err
			}
			return a.emit(&forgetResult{&reply}, false)
		}),
	}
	flags.register(c)
	c.Flags().BoolVar(&request.Gone, "yes", false, "the machine is gone: release what is booked there")
	c.Flags().StringVar(&request.Reason, "reason", "", "kept with what was released")
	return c
}
