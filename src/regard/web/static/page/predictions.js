// Answers of runs and the names of their rows in the reader's language; the server has them in English.

// What the text of an answer says, by task: [pattern, the words of the answer, the words of the lines below it].
// Their parts are named as in the pattern; an answer without words is the part `answer` as it stands.
const ANSWERS = {
  digits: [[/^picture (?<number>\d+) of the test set: (?<answer>.*), is (?<right>.*)$/, "", ["pictureOf", "rightAnswer"]]],
  memory: [[/^(?:[^]*\n)?[^?]*\? (?<answer>.*), is (?<right>.*)$/, "", ["rightAnswer"]], [/^(?:[^]*\n)?[^?]*\? (?<answer>.*)$/, "", []]],
  inversion: [[/^(?<answer>.*), right$/, "", ["isRight"]], [/^(?<answer>.*), should be (?<right>.*)$/, "", ["rightAnswer"]]],
  "next-vector": [[/^sequence (?<number>\d+) of the test set: looked most at vector (?<place>\d+), squared error (?<error>.*)$/, "lookedMost", ["sequenceOf"]]],
  regression: [[/^(?<name>.*): average (?<average>\S+) +fixed (?<fixed>\S+) +learned (?<learned>\S+)$/, "threeFits", []]],
};

// The names of rows that are words of ours, not of the data.
const ROWS = {
  memory: [[/^hop (?<number>\d+)$/, "hopRow"]],
  vqa: [[/^look (?<number>\d+)$/, "lookRow"]],
  digits: [[/^glimpse (?<number>\d+) head (?<head>\d+)$/, "glimpseRow"], [/^glimpse (?<number>\d+)$/, "glimpseAlone"]],
  regression: [[/^average$/, "averageRow"], [/^fixed$/, "fixedRow"], [/^learned$/, "learnedRow"]],
  "next-vector": [[/^next$/, "nextRow"]],
};

/** The text of an answer as { text, more }: the answer itself, and lines below it. */
export function readAnswer(text, task, say) {
  for (const [pattern, answer, lines] of ANSWERS[task] ?? []) {
    const found = pattern.exec(text)?.groups;
    if (found) return { text: answer ? say(answer, found) : found.answer, more: lines.map((line) => say(line, found)) };
  }
  return { text, more: [] };
}

/** Sites whose rows are named in the reader's language. */
export function localizeRows(sites, task, say) {
  const localize = (name) => {
    const [pattern, word] = (ROWS[task] ?? []).find(([known]) => known.test(name)) ?? [];
    return pattern ? say(word, pattern.exec(name).groups ?? {}) : name;
  };
  return sites.map((site) => {
    let named; // the same lists every time: drawings know by them that nothing changed
    const name = ({ rows, columns }) => ({ rows: Array.isArray(rows) ? rows.map(localize) : rows, columns });
    return { ...site, labels: () => (named ??= site.labels().then(name)) };
  });
}
