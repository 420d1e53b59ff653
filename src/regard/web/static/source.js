// Where a heat map gets its weights from.
//
// A source has `rows`, `columns`, `largest` (the largest size of any weight) and three functions, whose answers may
// be promises:
//   tile(up, across, row, column)  the weights of one tile: { rows, columns, values }. A tile has at most SIZE × SIZE
//                                  cells; one cell is the largest of 2^up rows × 2^across columns of weights.
//   weight(row, column)            one weight, exactly
//   largestOfRow(row)              of one row, for colors by row (never a promise)
// A source that can only pool both axes alike says `square: true`.

export const SIZE = 256;

/** Weights that are here: an array of rows × columns numbers, row by row. */
export function createLocalSource(values, rows, columns) {
  const tables = new Map([["0/0", { values, rows, columns }]]);
  const largestOfRows = findRowMaxima(values, rows, columns);
  return {
    rows,
    columns,
    largest: largestOfRows.reduce((most, one) => Math.max(most, one), 0),
    largestOfRow: (row) => largestOfRows[row],
    weight: (row, column) => values[row * columns + column],
    tile: (up, across, row, column) => cutTile(poolTable(tables, up, across), row, column),
  };
}

function findRowMaxima(values, rows, columns) {
  const found = new Float32Array(rows);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const size = Math.abs(values[row * columns + column]);
      if (size > found[row]) found[row] = size; // NaN is never larger
    }
  }
  return found;
}

function poolTable(tables, up, across) {
  const name = `${up}/${across}`;
  if (!tables.has(name)) {
    const finer = up > 0 ? poolTable(tables, up - 1, across) : poolTable(tables, up, across - 1);
    tables.set(name, halveTable(finer, up > 0 ? 2 : 1, up > 0 ? 1 : 2));
  }
  return tables.get(name);
}

// The largest, not the mean: a single sharp weight among thousands stays visible.
function halveTable(table, down, right) {
  const rows = Math.ceil(table.rows / down);
  const columns = Math.ceil(table.columns / right);
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < table.rows; row += 1) {
    const [from, to] = [row * table.columns, (down > 1 ? row >> 1 : row) * columns];
    for (let column = 0; column < table.columns; column += 1) {
      const place = to + (right > 1 ? column >> 1 : column);
      const value = table.values[from + column];
      if (Math.abs(value) > Math.abs(values[place])) values[place] = value;
    }
  }
  return { values, rows, columns };
}

function cutTile(table, row, column) {
  const [top, left] = [row * SIZE, column * SIZE];
  const rows = Math.min(SIZE, table.rows - top);
  const columns = Math.min(SIZE, table.columns - left);
  const values = new Float32Array(rows * columns);
  for (let line = 0; line < rows; line += 1) {
    const start = (top + line) * table.columns + left;
    values.set(table.values.subarray(start, start + columns), line * columns);
  }
  return { values, rows, columns };
}

/** How dark a weight is drawn, 0 … 1: as it is, against the largest of its row, or against the largest of all. */
export function computeAmount(value, scale, largest, largestOfRow, difference = false) {
  const whole = scale === "row" ? largestOfRow : scale === "global" ? largest : 1;
  const share = Number.isFinite(value) && whole > 0 ? value / whole : 0;
  return difference ? (share + 1) / 2 : share;
}

/** The mean over the first axis of heads × rows × columns weights. */
export function averageHeads(values, heads, cells) {
  const mean = new Float32Array(cells);
  for (let cell = 0; cell < cells; cell += 1) {
    let total = 0;
    for (let head = 0; head < heads; head += 1) total += values[head * cells + cell];
    mean[cell] = total / heads;
  }
  return mean;
}
