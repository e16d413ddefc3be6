// Package reconcile is the table of truths of design section 2 as a pure function: what record, ledger, node's book and
// beats say of one attempt goes in, the one repair that brings them together comes out. The leader looks at every
// attempt that any of them knows after each take-over and then on a timer; how long a difference must last before it is
// repaired is the leader's to decide, since each copy is behind at some moment.
//
//	record says   ledger   node holds or runs   repair
//	owner         has      has                  none
//	owner, reserved  has   has not              publish its task again, with the same message id (B48)
//	owner, reserved  has not  has not           hand back: nothing of it exists
//	owner, begun  has      has not              none: its lease ends if it does not go on
//	owner, begun  has not  has                  declare: the node's word goes into the ledger
//	owner, begun  has not  has not              lose: nobody has it
//	owner, proved has      has not              release: the result is on its way, the bytes are back
//	no owner      any      has                  cancel: tell the node to stop it
//	no owner      has      has not              release
//
// It has no clock and changes nothing.
package reconcile
