"""Numbers of all rows or documents side by side, in arrays that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Column:
    """A numpy array that grows by doubling."""

    def __init__(self, dtype: npt.DTypeLike, blank: Any) -> None:
        self._values: npt.NDArray[Any] = np.full(64, blank, dtype=dtype)
        self._blank = blank
        self._length = 0

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Add values behind the last."""
        if not len(values):
            # Values that stay where they lie are not written to.
            return
        end = self._length + len(values)
        if end > len(self._values):
            size = max(2 * len(self._values), end)
            grown = np.full(size, self._blank, dtype=self._values.dtype)
            grown[: self._length] = self.values
            self._values = grown
        self._values[self._length : end] = values
        self._length = end

    @property
    def values(self) -> npt.NDArray[Any]:
        """Return what was set so far."""
        return self._values[: self._length]

    @classmethod
    def over(cls, values: npt.NDArray[Any], blank: Any) -> Column:
        """Return a column of values that stay where they lie until something is added."""
        column = cls(values.dtype, blank)
        if len(values):
            column._values = values
            column._length = len(values)
        return column

    @classmethod
    def of(cls, values: npt.NDArray[Any], blank: Any) -> Column:
        """Return a column of a copy of values."""
        return cls.over(values.copy(), blank)
