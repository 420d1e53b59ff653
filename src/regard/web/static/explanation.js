// What made one weight, from the vectors that a report holds; a server or a kernel answers the same.
//
//   { weight, rank, keys, rowSum, facts: { query, key, factor, form, scoreName, normalizer, score, bias, hidden, setting,
//     total, norm, normShare } }, where `facts` are null if the vectors were not kept; regard.inspect.recording.explanation
//   computes them too, and a test compares the two.

const TERMS = {
  dot: (query, key) => query * key,
  tanh: (query, key, factor) => factor * Math.tanh(query + key),
  square: (query, key, factor) => -factor * (query - key) ** 2,
  absolute: (query, key, factor) => -factor * Math.abs(query - key),
};

/** The term of each dimension; they add up to the score. */
export function computeTerms({ form, query, key, factor }) {
  return Array.from(query, (one, at) => TERMS[form](one, key[at], factor ? factor[at] : 1));
}

/** The weight, its place and its share: all that is known without vectors. */
export function placeWeight(source, row, column) {
  const weights = Array.from({ length: source.columns }, (_, at) => source.weight(row, at));
  const weight = weights[column];
  const rank = 1 + weights.filter((one) => Math.abs(one) > Math.abs(weight)).length;
  return { weight, rank, keys: source.columns, rowSum: sum(weights), facts: null };
}

/** The same with the facts of its score: `origin` as regard.inspect.draw.chapters writes it, `read(place)` its numbers. */
export async function explainPacked(source, { heads, rows, columns, origin }, read, { head, row, column }) {
  const placed = placeWeight(source, row, column);
  if (!origin || head < 0) return placed;
  const names = Object.keys(origin.parts);
  const numbers = await Promise.all(names.map((name) => read(origin.parts[name])));
  const parts = Object.fromEntries(names.map((name, at) => [name, numbers[at]]));
  return { ...placed, facts: findFacts(source, createOrigin(origin, parts, { heads, rows, columns }), { head, row, column }) };
}

// Groups of heads share keys, and all heads may share a factor, a bias or a setting; queries may have keys of their own.
function createOrigin({ shapes, reach, stepwise, ...names }, { query, key, factor, bias, norm, setting }, { heads, rows, columns }) {
  const { dim } = shapes;
  const cut = (numbers, length, head, line, size) => {
    if (!numbers) return undefined;
    const start = (Math.floor((head * (numbers.length / length)) / heads) * (length / size) + line) * size;
    return numbers.subarray(start, start + size);
  };
  const biasAt = (head, row, column) => {
    if (reach !== null && column > row + reach) return -Infinity;
    if (!bias) return 0;
    const [some, tall, wide] = shapes.bias;
    return bias[((some > 1 ? head : 0) * tall + (tall > 1 ? row : 0)) * wide + (wide > 1 ? column : 0)];
  };
  return {
    ...names,
    biasAt,
    query: (head, row) => cut(query, rows * dim, head, row, dim),
    key: (head, row, column) => cut(key, (stepwise ? rows : 1) * columns * dim, head, (stepwise ? row * columns : 0) + column, dim),
    factor: (head, row) => factor && cut(factor, factor.length / dim > heads ? rows * dim : dim, head, factor.length / dim > heads ? row : 0, dim),
    norms: (head) => cut(norm, columns, head, 0, columns),
    setting: (head) => (setting ? setting[setting.length > 1 ? head : 0] : null),
  };
}

function findFacts(source, origin, { head, row, column }) {
  const at = (key) => ({ form: origin.form, query: origin.query(head, row), key: origin.key(head, row, key), factor: origin.factor(head, row) });
  const scores = Array.from({ length: source.columns }, (_, key) => sum(computeTerms(at(key))));
  const sums = scores.map((score, key) => score + origin.biasAt(head, row, key));
  const weights = Array.from({ length: source.columns }, (_, key) => source.weight(row, key));
  const [norms, bias] = [origin.norms(head), origin.biasAt(head, row, column)];
  const added = norms && sum(weights.map((weight, key) => weight * norms[key]));
  const hidden = bias === -Infinity;
  return {
    ...at(column), scoreName: origin.score, normalizer: origin.normalizer, setting: origin.setting(head),
    score: scores[column], bias: hidden ? null : bias, hidden, total: findTotal(origin.normalizer, sums, weights, origin.setting(head)),
    norm: norms ? norms[column] : null, normShare: norms ? (weights[column] * norms[column]) / (added || 1) : null,
  };
}

function findTotal(normalizer, sums, weights, setting) {
  const seen = sums.filter((one) => one > -Infinity);
  if (!seen.length) return null;
  if (normalizer === "softmax") return addLogs(seen.map((one) => one / (setting ?? 1)));
  if (normalizer === "softmax-plus-one") return addLogs([...seen, 0]);
  if (normalizer === "row-total") return sum(seen);
  if (normalizer === "argmax") return Math.max(...seen);
  if (normalizer !== "entmax") return null;
  if (setting === 1) return addLogs(seen);
  const best = weights.indexOf(Math.max(...weights));
  return (setting - 1) * sums[best] - weights[best] ** (setting - 1);
}

function addLogs(numbers) {
  const most = Math.max(...numbers);
  return most + Math.log(sum(numbers.map((one) => Math.exp(one - most))));
}

function sum(numbers) {
  return numbers.reduce((total, one) => total + one, 0);
}
