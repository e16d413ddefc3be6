// Package fault classifies errors. Only the kind of an error decides whether an attempt is retried, requeued, blamed on
// a device or failed for good; its text is for people.
//
//	Invalid    the input, or what was asked, is wrong: no retry helps
//	Conflict   it contradicts what is already there
//	NotFound   what it names is not there
//	Exhausted  a bound or a pool is full: later it may fit
//	Transient  a part was away or too slow: try again
//	Lost       the fence was raised: whoever got this error no longer owns the attempt
//	Corrupt    bytes are not what was written: make them again
//	Device     an accelerator or its engine failed: try elsewhere
//	Internal   a fault of ours; the default for errors that say nothing
//	Cancelled  somebody asked for the end
package fault
