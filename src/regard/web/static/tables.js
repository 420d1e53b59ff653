// Weights as they are packed in a report: the bytes of float32 numbers, first bytes first, deflated, in base64.
// regard.inspect.draw.compression writes them.

import { averageHeads, createLocalSource } from "./source.js";

/** The numbers of a packed table. */
export async function unpackNumbers(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4;
  const numbers = new Uint8Array(planes.length);
  for (let place = 0; place < count; place += 1) {
    for (let plane = 0; plane < 4; plane += 1) numbers[place * 4 + plane] = planes[plane * count + place];
  }
  return new Float32Array(numbers.buffer);
}

/** All heads of a site and their mean, as sources: { heads: [source, …], mean: source }. */
export async function loadSiteSources({ table, heads, height, width }) {
  const weights = await unpackNumbers(table);
  const cells = height * width;
  const head = (place) => createLocalSource(weights.subarray(place * cells, (place + 1) * cells), height, width);
  return {
    heads: Array.from({ length: heads }, (_, place) => head(place)),
    mean: heads > 1 ? createLocalSource(averageHeads(weights, heads, cells), height, width) : head(0),
  };
}

/** One row of a source that is here, or one column of it. */
export function readLine(source, axis, place) {
  const length = axis === "row" ? source.columns : source.rows;
  const at = (other) => (axis === "row" ? source.weight(place, other) : source.weight(other, place));
  return Float32Array.from({ length }, (_, other) => at(other));
}

/** The mean over rows: how much each column is looked at. */
export function averageRows(source) {
  return Float32Array.from({ length: source.columns }, (_, column) => {
    let total = 0;
    for (let row = 0; row < source.rows; row += 1) total += source.weight(row, column);
    return total / source.rows;
  });
}

/** All weights of a source that is here, row by row. */
export function readWeights(source) {
  const weights = new Float32Array(source.rows * source.columns);
  for (let row = 0; row < source.rows; row += 1) {
    for (let column = 0; column < source.columns; column += 1) {
      weights[row * source.columns + column] = source.weight(row, column);
    }
  }
  return weights;
}
