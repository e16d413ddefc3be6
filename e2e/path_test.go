package e2e_test

import "testing"

func TestJobGoesItsWholePath(t *testing.T) {
	t.Parallel()
	r := full(t, "n1")
	r.submit(1)
	r.waitDone()
	r.checkQuiet()
}
