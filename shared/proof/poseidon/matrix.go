package poseidon

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// matrix is a square matrix, row by row.
type matrix [][]fr.Element

func newMatrix(size int) matrix {
	m := make(matrix, size)
	cells := make([]fr.Element, size*size)
	for i := range m {
		m[i] = cells[i*size : (i+1)*size : (i+1)*size]
	}
	return m
}

// mds is the Cauchy matrix 1/(i+j+width).
func mds(width int) matrix {
	m := newMatrix(width)
	for i := range m {
		for j := range m[i] {
			m[i][j].SetUint64(uint64(i + j + width))
			m[i][j].Inverse(&m[i][j])
		}
	}
	return m
}

// leftMul is the row vector u·m.
func (m matrix) leftMul(u []fr.Element) []fr.Element {
	out := make([]fr.Element, len(m))
	var product fr.Element
	for i := range m {
		for j := range m[i] {
			product.Mul(&u[i], &m[i][j])
			out[j].Add(&out[j], &product)
		}
	}
	return out
}

// mul is the matrix product m·other.
func (m matrix) mul(other matrix) matrix {
	out := make(matrix, len(m))
	for i := range m {
		out[i] = other.leftMul(m[i])
	}
	return out
}

// minor is m without its first row and column.
func (m matrix) minor() matrix {
	out := newMatrix(len(m) - 1)
	for i := range out {
		copy(out[i], m[i+1][1:])
	}
	return out
}

// bordered is the matrix with a one in front of m on the diagonal and zeros beside it.
func (m matrix) bordered() matrix {
	out := newMatrix(len(m) + 1)
	out[0][0].SetOne()
	for i := range m {
		copy(out[i+1][1:], m[i])
	}
	return out
}

// inverse is Gauss-Jordan elimination. The matrices of this package are invertible by construction; a singular one is a
// broken invariant.
func (m matrix) inverse() matrix {
	size := len(m)
	work := newMatrix(size)
	out := newMatrix(size)
	for i := range m {
		copy(work[i], m[i])
		out[i][i].SetOne()
	}
	for col := range size {
		pivot := col
		for pivot < size && work[pivot][col].IsZero() {
			pivot++
		}
		if pivot == size {
			panic(fmt.Sprintf("poseidon: matrix of size %d is singular in column %d", size, col))
		}
		work[col], work[pivot] = work[pivot], work[col]
		out[col], out[pivot] = out[pivot], out[col]
		var scale fr.Element
		scale.Inverse(&work[col][col])
		scaleRow(work[col], &scale)
		scaleRow(out[col], &scale)
		for row := range size {
			if row == col {
				continue
			}
			factor := work[row][col]
			subtractRow(work[row], work[col], &factor)
			subtractRow(out[row], out[col], &factor)
		}
	}
	return out
}

func scaleRow(row []fr.Element, factor *fr.Element) {
	for i := range row {
		row[i].Mul(&row[i], factor)
	}
}

func subtractRow(row, other []fr.Element, factor *fr.Element) {
	var product fr.Element
	for i := range row {
		product.Mul(&other[i], factor)
		row[i].Sub(&row[i], &product)
	}
}
