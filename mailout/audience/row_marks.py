"""What a whole row says about whether its person wants mail: of all its marks, the one against it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from mailout.audience.addresses import TRIM
from mailout.audience.columns import MARKS, Column
from mailout.audience.marks import Meaning, meaning, word_key

ANSWERS = ("status", "opted_in", "confirmed")
"""Fields in which a word may be unknown; a person may say what it means."""


class RowMarks:
    """What the columns about wanting mail say of each row, and every word with what it was taken for."""

    def __init__(
        self, columns: Sequence[Column], chosen: Mapping[str, Meaning], of_file: Meaning | None
    ) -> None:
        self.columns = [column for column in columns if column.field in MARKS]
        self.chosen = {word_key(word): to for word, to in chosen.items()}
        self.of_file = of_file or Meaning.ACTIVE
        self.words: Counter[tuple[str, str, Meaning]] = Counter()

    def read(self, rows: pl.DataFrame) -> pl.Series:
        """The strongest mark of each row, as a `Meaning`."""
        found = [pl.repeat(int(self.of_file), rows.height, dtype=pl.Int8, eager=True)]
        for column in self.columns:
            counts = rows[str(column.position)].value_counts()
            means = {cell: self._meaning(column, cell) for cell in counts.to_series(0)}
            for cell, n in counts.iter_rows() if column.field in ANSWERS else ():
                self.words[column.header, cell.strip(TRIM), means[cell]] += n
            cells = rows[str(column.position)]
            found.append(cells.replace_strict(means, default=int(Meaning.UNKNOWN), return_dtype=pl.Int8))
        return pl.DataFrame([s.alias(str(n)) for n, s in enumerate(found)]).max_horizontal()

    def _meaning(self, column: Column, cell: str) -> Meaning:
        if column.field in ANSWERS and (chosen := self.chosen.get(word_key(cell))) is not None:
            return chosen
        return meaning(column.field, cell)
