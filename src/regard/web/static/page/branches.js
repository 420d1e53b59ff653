// The branches of a search: paths, trees, and words as they are read.

/** The numbers from the first token to this one. */
export function findPath(branches, number) {
  const path = [];
  for (let at = number; at !== -1; at = branches.get(at).parent) path.unshift(at);
  return path;
}

/** Words as they are read: ▁ begins a word. */
export function joinWords(branches, path) {
  const words = path.map((number) => branches.get(number)).filter(({ score }) => score === null).map(({ word }) => word);
  const text = words.join("");
  return text.includes("▁") ? text.replaceAll("▁", " ").trim() : text;
}

/** What grows from the root: branches with `children`, the most probable first, and `share`, their part of their parent. */
export function plantTree(branches) {
  const nodes = new Map([...branches].map(([number, branch]) => [number, { ...branch, children: [] }]));
  const roots = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.parent);
    node.share = Math.exp(node.log_prob - (parent?.log_prob ?? 0));
    (parent?.children ?? roots).push(node);
  }
  for (const list of [roots, ...[...nodes.values()].map(({ children }) => children)]) list.sort((one, other) => other.log_prob - one.log_prob);
  return roots;
}
