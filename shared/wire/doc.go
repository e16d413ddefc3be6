// Package wire is what programs of the rack say to each other: subjects, message bodies and the names of stored things
// (design section 2). Bodies are JSON; each carries "v", the version of the wire it was written for, and "v_min", the
// oldest version whose builds may read it.
//
// This build writes [Version] for builds down to [VersionMin], and reads what those write and what newer builds say
// that it may read. So two builds work together, in both directions, exactly when their ranges overlap; the scheduler
// pairs no others. Neighbours overlap, and a rack is restarted node by node (coordinators first, then GPU workers, then
// synthesis workers). A reader ignores fields that it does not know; a field that must not be ignored raises
// VersionMin.
// Beats are read in any version, since they say what their sender reads ([DecodeBeat]). Every body is bounded by
// [BodyBytesMax] and checked before it is used; what fails is fault.Invalid.
//
// The build tags wire1 and wire3 make builds of other versions, for tests of rolling restarts.
//
// Subjects carry the node or the tenant, and permissions of credentials pin them; a reader compares the body with the
// subject, so that nobody can speak for somebody else.
package wire
