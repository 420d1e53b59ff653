// Weights as they are packed in a report: the bytes of float32 numbers, first bytes first, deflated, in base64.
// regard.inspect.draw.compression writes them.

/** The numbers of a packed table. */
export async function unpackNumbers(text) {
  const inflate = new DecompressionStream("deflate");
  const [answer, writer] = [new Response(inflate.readable).arrayBuffer(), inflate.writable.getWriter()];
  const written = writer.write(decodeBase64(text)).then(() => writer.close());
  const [planes] = await Promise.all([answer, written]);
  return joinPlanes(new Uint8Array(planes));
}

// The browser's own is the fastest; older ones do not have it.
function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const signs = atob(text);
  const bytes = new Uint8Array(signs.length);
  for (let place = 0; place < signs.length; place += 1) bytes[place] = signs.charCodeAt(place);
  return bytes;
}

function joinPlanes(planes) {
  const count = planes.length / 4;
  const [second, third, fourth] = [count, 2 * count, 3 * count];
  const numbers = new Uint32Array(count);
  for (let place = 0; place < count; place += 1) {
    numbers[place] = planes[place] | (planes[second + place] << 8) | (planes[third + place] << 16) | (planes[fourth + place] << 24);
  }
  return new Float32Array(numbers.buffer);
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
