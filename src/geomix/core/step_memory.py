"""The last ten steps s of L-BFGS with the changes y of the gradient, and the direction they give.

    q = g - sum_i alpha_i y_i,    alpha_i = (s_i . g - sum_{j newer} alpha_j s_i . y_j) / s_i . y_i
    H g = gamma q + sum_i c_i s_i,  gamma = s . y / y . y of the newest,
    c_i = alpha_i - (gamma y_i . q + sum_{j older} c_j s_j . y_i) / s_i . y_i

This is the two-loop recursion over inner products, as in ``native/solvers/step_memory.h``.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray

KEPT_STEPS = 10
NARROW_FROM = 4096  # longer steps are held in float32, because native code waits for memory


class StepMemory:
    """Steps, the oldest first: S and Y are lists of vectors, SY and YY their inner products."""

    def __init__(self) -> None:
        self.forget()

    def __len__(self) -> int:
        return len(self._S)

    def forget(self) -> None:
        self._S, self._Y = list[FloatArray](), list[FloatArray]()
        self._SY, self._YY = np.zeros((0, 0)), np.zeros((0, 0))
        self._sg, self._yg = np.zeros(0), np.zeros(0)
        self._newest: FloatArray | None = None

    def add(self, s: FloatArray, y: FloatArray) -> None:
        """A step, unless the gradient did not rise along it."""
        sy, yy = float(s @ y), float(y @ y)
        if not sy > np.finfo(float).eps * yy:
            return
        if len(self) == KEPT_STEPS:
            del self._S[0], self._Y[0]
            self._SY, self._YY = self._SY[1:, 1:], self._YY[1:, 1:]
            self._sg, self._yg = self._sg[1:], self._yg[1:]
        self._S.append(_held(s))
        self._Y.append(_held(y))
        self._SY, self._YY = (np.pad(M, ((0, 1), (0, 1))) for M in (self._SY, self._YY))
        self._SY[-1, -1], self._YY[-1, -1] = sy, yy
        self._newest = s

    def direction(self, gradient: FloatArray) -> FloatArray:
        """-H g, or -g without steps; for the gradient at either end of an added step."""
        self._take_products(gradient)
        if not len(self):
            return -gradient
        gamma, alpha, c = self._coefficients()
        direction: FloatArray = -gamma * gradient
        for s, y, of_y, of_s in zip(self._S, self._Y, alpha, c, strict=True):
            direction += gamma * of_y * y
            direction -= of_s * s
        return direction

    def _take_products(self, gradient: FloatArray) -> None:
        sg = np.array([s @ gradient for s in self._S])
        yg = np.array([y @ gradient for y in self._Y])
        if self._newest is not None:  # the newest y is the change of g
            n = len(self) - 1
            self._SY[:n, n] = sg[:n] - self._sg
            self._YY[:n, n] = self._YY[n, :n] = yg[:n] - self._yg
            self._SY[n, :n] = [y @ self._newest for y in self._Y[:n]]
        self._sg, self._yg, self._newest = sg, yg, None

    def _coefficients(self) -> tuple[float, FloatArray, FloatArray]:
        SY, YY, n = self._SY, self._YY, len(self)
        alpha, c = np.zeros(n), np.zeros(n)
        for i in reversed(range(n)):
            alpha[i] = (self._sg[i] - SY[i, i + 1 :] @ alpha[i + 1 :]) / SY[i, i]
        gamma = float(SY[-1, -1] / YY[-1, -1])
        of_q = self._yg - YY @ alpha
        for i in range(n):
            c[i] = alpha[i] - (gamma * of_q[i] + c[:i] @ SY[:i, i]) / SY[i, i]
        return gamma, alpha, c


def _held(numbers: FloatArray) -> FloatArray:
    """A vector of a step; a long one as float32 holds it."""
    if len(numbers) < NARROW_FROM:
        return numbers
    return numbers.astype(np.float32).astype(np.float64)
