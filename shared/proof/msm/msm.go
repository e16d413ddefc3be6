package msm

import (
	"context"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

func g1Group() group[bls12381.G1Affine, bls12381.G1Jac, *bls12381.G1Jac] {
	return group[bls12381.G1Affine, bls12381.G1Jac, *bls12381.G1Jac]{
		newKernel:  newG1Kernel,
		isInfinity: (*bls12381.G1Affine).IsInfinity,
		fromJac: func(j *bls12381.G1Jac) (a bls12381.G1Affine) {
			a.FromJacobian(j)
			return a
		},
	}
}

func g2Group() group[bls12381.G2Affine, bls12381.G2Jac, *bls12381.G2Jac] {
	return group[bls12381.G2Affine, bls12381.G2Jac, *bls12381.G2Jac]{
		newKernel:  newG2Kernel,
		isInfinity: (*bls12381.G2Affine).IsInfinity,
		fromJac: func(j *bls12381.G2Jac) (a bls12381.G2Affine) {
			a.FromJacobian(j)
			return a
		},
	}
}

// Vectorised reports whether this CPU runs the vector arithmetic, so that Config.Portable makes a difference.
func Vectorised() bool { return vectorSupported() }

func newG1Kernel(portable bool) kernel[bls12381.G1Affine] {
	if !portable && vectorSupported() {
		return newVectorG1()
	}
	return newPortable[bls12381.G1Affine, fp.Element, *fp.Element](g1Codec())
}

func newG2Kernel(portable bool) kernel[bls12381.G2Affine] {
	if !portable && vectorSupported() {
		return newVectorG2()
	}
	return newPortable[bls12381.G2Affine, bls12381.E2, *bls12381.E2](g2Codec())
}

// G1Accumulator is the sum of scalar multiples of G1 points that arrive in chunks of any size. Its memory does not
// grow with the number of points. It is not safe for concurrent use; the work of each call is spread over
// Config.Workers goroutines that end before the call returns. After an error every further call returns that error.
type G1Accumulator struct {
	sum *accumulator[bls12381.G1Affine, bls12381.G1Jac, *bls12381.G1Jac]
}

// NewG1Accumulator returns an empty sum. The error wraps ErrConfig.
func NewG1Accumulator(c Config) (*G1Accumulator, error) {
	a, err := newAccumulator(g1Group(), c)
	if err != nil {
		return nil, err
	}
	return &G1Accumulator{a}, nil
}

// Add adds scalars[i] times bases[i] for all i. Scalars 0 and 1 are found and cost nothing and one addition.
// Errors: ErrLength when the lengths differ, ErrEncoding for a bad point, the context's.
func (a *G1Accumulator) Add(ctx context.Context, bases G1Bases, scalars []fr.Element) error {
	return a.sum.addDense(ctx, bases, scalars)
}

// AddSplit adds the scalar multiples given by s, reading each selected base once and the others never.
// Errors: ErrLength when bitmaps or scalars do not fit, ErrEncoding for a bad point, the context's.
func (a *G1Accumulator) AddSplit(ctx context.Context, bases G1Bases, s Split) error {
	return a.sum.addSplit(ctx, bases, s)
}

// Result returns the sum of all that was added, (0, 0) for the identity. More may be added afterwards.
func (a *G1Accumulator) Result(ctx context.Context) (bls12381.G1Affine, error) {
	return a.sum.result(ctx)
}

// G1 returns the sum of scalars[i] times bases[i]; it is an accumulator with one Add.
func G1(ctx context.Context, bases G1Bases, scalars []fr.Element, c Config) (bls12381.G1Affine, error) {
	return once(ctx, g1Group(), bases, scalars, c)
}

// G2Accumulator is G1Accumulator for G2.
type G2Accumulator struct {
	sum *accumulator[bls12381.G2Affine, bls12381.G2Jac, *bls12381.G2Jac]
}

// NewG2Accumulator returns an empty sum. The error wraps ErrConfig.
func NewG2Accumulator(c Config) (*G2Accumulator, error) {
	a, err := newAccumulator(g2Group(), c)
	if err != nil {
		return nil, err
	}
	return &G2Accumulator{a}, nil
}

// Add is G1Accumulator.Add.
func (a *G2Accumulator) Add(ctx context.Context, bases G2Bases, scalars []fr.Element) error {
	return a.sum.addDense(ctx, bases, scalars)
}

// AddSplit is G1Accumulator.AddSplit.
func (a *G2Accumulator) AddSplit(ctx context.Context, bases G2Bases, s Split) error {
	return a.sum.addSplit(ctx, bases, s)
}

// Result is G1Accumulator.Result.
func (a *G2Accumulator) Result(ctx context.Context) (bls12381.G2Affine, error) {
	return a.sum.result(ctx)
}

// G2 is G1 for G2.
func G2(ctx context.Context, bases G2Bases, scalars []fr.Element, c Config) (bls12381.G2Affine, error) {
	return once(ctx, g2Group(), bases, scalars, c)
}

func once[A, J any, P jacobian[A, J]](
	ctx context.Context, g group[A, J, P], bases Bases[A], scalars []fr.Element, c Config,
) (A, error) {
	var zero A
	if c.ScalarCount == 0 {
		c.ScalarCount = len(scalars)
	}
	a, err := newAccumulator(g, c)
	if err != nil {
		return zero, err
	}
	if err := a.addDense(ctx, bases, scalars); err != nil {
		return zero, err
	}
	return a.result(ctx)
}
