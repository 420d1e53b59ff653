// Pieces of words put together again: what looks at a word looks at any of its pieces, and a word looks where its
// pieces look on average (Clark et al. 2019, §4.1).

import { createLocalSource } from "./source.js";

const BEGINS = /^[▁Ġ]/; // SentencePiece, byte-level BPE: a mark where a word begins
const CONTINUES = /^##/; // WordPiece: a mark where one goes on
const ENDS = /<\/w>$/; // BPE: a mark where one ends
const UNFINISHED = /@@$/; // BPE: a mark where one does not end yet
const SPECIAL = /^(<.*>|\[[A-Z]+\])$/; // <s>, </s>, [CLS]: never part of a word

/** The first piece of each word: [0, 1, 4, …]; undefined if tokens are whole words already. */
export function findWords(tokens) {
  if (typeof tokens === "number" || !tokens.length) return undefined;
  const starts = tokens.flatMap((token, place) => (place === 0 || startsWord(token, tokens[place - 1], tokens) ? [place] : []));
  return starts.length < tokens.length ? starts : undefined;
}

function startsWord(token, before, tokens) {
  if (SPECIAL.test(token) || SPECIAL.test(before)) return true;
  if (tokens.some((one) => BEGINS.test(one))) return BEGINS.test(token);
  if (tokens.some((one) => CONTINUES.test(one))) return !CONTINUES.test(token);
  if (tokens.some((one) => UNFINISHED.test(one))) return !UNFINISHED.test(before);
  if (tokens.some((one) => ENDS.test(one))) return ENDS.test(before);
  return true;
}

/** The words that begin there, without marks. */
export function joinPieces(tokens, starts) {
  if (!starts) return tokens;
  return starts.map((start, word) => {
    const pieces = tokens.slice(start, starts[word + 1]);
    if (pieces.length === 1 && SPECIAL.test(pieces[0])) return pieces[0];
    return pieces.map((piece) => piece.replace(BEGINS, "").replace(CONTINUES, "").replace(UNFINISHED, "").replace(ENDS, "")).join("") || pieces[0];
  });
}

/** A source of words: rows are averaged, columns added up. */
export function mergeSource(source, rows, columns) {
  if (!rows && !columns) return source;
  const [down, across] = [indexWords(rows, source.rows), indexWords(columns, source.columns)];
  const [height, width] = [down.count, across.count];
  const values = new Float32Array(height * width);
  for (let row = 0; row < source.rows; row += 1) {
    const word = down.words[row];
    for (let column = 0; column < source.columns; column += 1) {
      values[word * width + across.words[column]] += source.weight(row, column) / down.sizes[word];
    }
  }
  return createLocalSource(values, height, width);
}

function indexWords(starts, length) {
  const begins = starts ?? Array.from({ length }, (_, place) => place);
  const words = new Uint32Array(length);
  const sizes = begins.map((start, word) => (begins[word + 1] ?? length) - start);
  begins.forEach((start, word) => words.fill(word, start, start + sizes[word]));
  return { words, sizes, count: begins.length };
}

/** Where a piece is after merging, or the first piece of a word before it. */
export function moveToWord(starts, place) {
  return starts ? starts.findLastIndex((start) => start <= place) : place;
}

export function moveToPiece(starts, place) {
  return starts ? starts[place] : place;
}
