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

// unbookResult is what was released of an attempt.
type unbookResult struct{ *wire.ForgetReply }

func (r *unbookResult) human(w io.Writer) {
	f := &r.Forgotten
	row(w, "released", "%s of attempt %s on node %s, by your word", f.Held, f.Attempts[0], f.Node)
}

// unbookCommand is part of ledger.
func (a *app) unbookCommand() *cobra.Command {
	var flags rackFlags
	var request wire.UnbookRequest
	c := &cobra.Command{
		Use:   "release NODE ATTEMPT",
		Short: "release what an attempt that is over still has booked on a node",
		Long: "Releases the bytes of an attempt in limbo. Nothing of it is done without --yes: that is your word that\n" +
			"nothing of the attempt is left on the node. Your word is kept, with what it released. What is at work is not\n" +
			"released, nor what its node says that it holds: there the end of the worker is the evidence.",
		PreRunE: func(_ *cobra.Command, args []string) error {
			var err error
			if request.Node, err = job.ParseNode(args[0]); err == nil {
				request.Attempt, err = job.ParseAttempt(args[1])
			}
			if err != nil {
				return misuse("%w", err)
			}
			return request.Check()
		},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fail(usage, "ledger lists them", "a node and an attempt must be given")
			}
			return nil
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			var reply wire.ForgetReply
			if err := r.admin(c.Context(), wire.AdminUnbook, &request, &reply); err != nil {
				return err
			}
			return a.emit(&unbookResult{&reply}, false)
		}),
	}
	flags.register(c)
	c.Flags().BoolVar(&request.Gone, "yes", false, "nothing of it is left on the node: release it")
	c.Flags().StringVar(&request.Reason, "reason", "", "kept with what was released")
	return c
}

// readmitCommand is part of nodes.
func (a *app) readmitCommand() *cobra.Command {
	var flags rackFlags
	var request wire.ReleaseRequest
	c := &cobra.Command{
		Use:   "readmit NODE DEVICE | readmit --halted",
		Short: "let a device out of quarantine, or the rack go on after most devices failed at once",
		Long: "Lets a device work again without the known answer that it would have to prove first. With --halted the\n" +
			"rack admits work again that stopped because most of its devices failed at once.",
		Args: func(c *cobra.Command, args []string) error {
			halted, err := c.Flags().GetBool("halted")
			if err != nil || halted != (len(args) == 0) || len(args) != 0 && len(args) != 2 {
				return fail(usage, helpHint(c), "name a node and its device, or --halted")
			}
			return nil
		},
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			request.Node, request.Device = job.Node(args[0]), job.Device(args[1])
			if err := request.Check(); err != nil {
				return misuse("%w", err)
			}
			return nil
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			if err := r.admin(c.Context(), wire.AdminRelease, &request, &wire.Reply{}); err != nil {
				return err
			}
			return a.emit(&readmitResult{request.Node, request.Device}, false)
		}),
	}
	flags.register(c)
	c.Flags().Bool("halted", false, "the whole rack")
	return c
}

// readmitResult is what works again.
type readmitResult struct {
	Node   job.Node   `json:"node,omitempty"`
	Device job.Device `json:"device,omitempty"`
}

func (r *readmitResult) human(w io.Writer) {
	if r.Node == "" {
		row(w, "readmitted", "the rack admits work again")
		return
	}
	row(w, "readmitted", "device %s of node %s", r.Device, r.Node)
}
