// What the drawings say, `name: [English, Chinese]`. A page adds its own words with `addWords`.

const LANGUAGES = ["en", "zh"]; // the order of the words in a row of the table

const WORDS = {
  cell: ["{row} → {column}: {weight}", "{row} → {column}：{weight}"],
  heatMap: ["{name}: heat map, {rows} queries by {columns} keys", "{name}：热图，{rows} 个查询 × {columns} 个键"],
  heatMapHelp: ["Arrow keys move, + and − zoom, 0 shows all, Enter chooses the row", "方向键移动，+ 和 − 缩放，0 显示全部，回车选择该行"],
  heads: ["Heads, layer by layer", "各层的注意力头"],
  head: ["head {head}", "头 {head}"],
  fromZero: ["Layers, heads and positions count from 0, as in Python: head 2 is weights[…, 2, :, :].", "层、头和位置都从 0 数起，与 Python 一致：头 2 即 weights[…, 2, :, :]。"],
  attentionName: ["attention", "注意力"],
  "passage to question": ["passage to question", "文章到问题"],
  "question to passage": ["question to passage", "问题到文章"],
  encoder: ["encoder{layer}", "编码器{layer}"],
  decoder: ["decoder{layer}", "解码器{layer}"],
  itself: ["{site}, itself", "{site}（自身）"],
  mean: ["mean of heads", "各头平均"],
  headOf: ["{site}, {head}", "{site}，{head}"],
  arcs: ["{name}: lines from each token to what it looks at", "{name}：每个词元与其关注对象的连线"],
  strip: ["{name}: tokens", "{name}：词元"],
  output: ["output", "输出"],
  input: ["input", "输入"],
  overlay: ["{name}: attention over the picture", "{name}：图像上的注意力"],
  heat: ["Heat", "热度"],
  regionWords: ["region {region}: {words}", "区域 {region}：{words}"],
  player: ["The sound", "声音"],
  spectrogram: ["{name}: attention over the sound", "{name}：声音上的注意力"],
  time: ["time (s)", "时间（秒）"],
  frames: ["frame", "帧"],
  pooled: ["each cell is the largest of {rows} × {columns}", "每格为 {rows} × {columns} 中的最大值"],
  hypotheses: ["Hypotheses", "候选译文"],
  layer: ["Layer", "层"],
  headName: ["Head", "头"],
  colors: ["Colors", "着色"],
  threshold: ["Hide below", "隐藏低于"],
  none: ["0 to 1", "0 到 1"],
  row: ["by row", "按行"],
  global: ["by largest", "按最大值"],
  map: ["Map", "热图"],
  lines: ["Lines", "连线"],
  drawing: ["Drawing", "图形"],
  allHeads: ["All heads", "全部注意力头"],
  fit: ["Show all", "显示全部"],
  score: ["score {score}", "得分 {score}"],
  theme: ["Dark or light", "深色或浅色"],
  language: ["Language", "语言"],
  fromRow: ["Where “{token}” looks", "“{token}” 关注哪里"],
  fromColumn: ["What looks at “{token}”", "哪些词元关注 “{token}”"],
  tokens: ["Tokens", "词元"],
  whole: ["All queries together: weight received on average", "所有查询的平均权重"],
  auto: ["automatic", "自动"],
  rowLargest: ["row’s largest", "该行最大值"],
  headLargest: ["head’s largest", "该头最大值"],
  alignment: ["alignment", "对齐"],
  rollout: ["rollout up to here", "展开到此层"],
  every: ["all", "全部"],
  noneOfThem: ["none", "无"],
  wholeWords: ["Whole words", "按词合并"],
  order: ["Order", "排序"],
  byLayer: ["by layer", "按层"],
  diagonal: ["same position", "同一位置"],
  previous: ["previous position", "前一位置"],
  next: ["next position", "后一位置"],
  first: ["first position", "首个位置"],
  uniform: ["all alike", "均匀"],
  entropy: ["entropy", "熵"],
  agreement: ["agreement with the layer’s other heads", "与同层其他头的一致程度"],
  everyHeadRow: ["“{row}” in every head", "各头中的 “{row}”"],
  everyHeadColumn: ["Every head at “{column}”", "各头对 “{column}” 的关注"],
  everyHeadPair: ["“{row}” → “{column}” in every head", "各头中的 “{row}” → “{column}”"],
  madeOf: ["What made this number: “{row}” → “{column}”", "这个数由什么得来：“{row}” → “{column}”"],
  close: ["Close", "关闭"],
  madePlace: ["{weight}: rank {rank} of {keys} keys, {share} % of the row", "{weight}：在 {keys} 个键中列第 {rank}，占该行 {share} %"],
  madeChange: ["{weight}: change number {rank} of {keys}, by size", "{weight}：按大小在 {keys} 处变化中列第 {rank}"],
  madeUnknown: ["The queries and keys were not kept. To keep them: observe(model, vectors=True); a report leaves them out where they do not fit.", "没有保留查询和键。要保留，请用 observe(model, vectors=True)；报告放不下时会略去。"],
  madeMean: ["This is the mean of the heads, which no single score made: choose one head.", "这是各头的平均，并非由单个评分得来：请选择一个头。"],
  madeAlignment: ["An alignment keeps the largest weight of each query: choose a head to see what made a weight.", "对齐只保留每个查询的最大权重：请选择一个头，查看权重的由来。"],
  madeRollout: ["A rollout is a product of several layers: choose a head to see what made a weight.", "展开是多层注意力的乘积：请选择一个头，查看权重的由来。"],
  madeDifference: ["This is the difference of two recordings: open one of them to see what made a weight.", "这是两份记录之差：请打开其中一份，查看权重的由来。"],
  madePooled: ["Each cell is the largest of several weights: record a part, or open the recording with regard serve.", "每格是若干权重中的最大值：请只记录一部分，或用 regard serve 打开记录。"],
  madeWords: ["The pieces of words are merged: switch “Whole words” off to see what made a weight.", "子词已合并：关闭“按词合并”即可查看权重的由来。"],
  madeStatistics: ["Only statistics of this attention were kept, not this weight.", "这个注意力只保留了统计量，没有保留这个权重。"],
  scoreWord: ["score s", "评分 s"],
  weightWord: ["weight", "权重"],
  dimension: ["dimension", "维度"],
  query: ["query", "查询"],
  key: ["key", "键"],
  termWord: ["term", "项"],
  otherDimensions: ["{count} others", "其余 {count} 维"],
  termsCaption: ["Score by dimension: the {shown} largest of {all} terms", "评分按维度分解：{all} 项中最大的 {shown} 项"],
  biasWord: ["bias b", "偏置 b"],
  maskName: ["mask", "掩码"],
  maskAllows: ["allows it", "允许"],
  maskHides: ["hides it", "遮蔽"],
  hiddenByMask: ["0, because the mask hides this key", "0，因为掩码遮蔽了这个键"],
  normalizerWord: ["normalizer", "归一化"],
  mechanismWord: ["score function", "评分函数"],
  valueLength: ["length of the value", "值的长度"],
  lengthShare: ["share by weight × length", "按 权重 × 长度 的占比"],
  notKept: ["not kept", "未保留"],
  zoom: ["Zoom", "缩放"],
  zoomIn: ["Zoom in", "放大"],
  zoomOut: ["Zoom out", "缩小"],
  save: ["Save", "保存"],
  tiled: ["{rows} × {columns} weights, fetched by tiles as you look", "{rows} × {columns} 个权重，浏览时按块获取"],
  noKernel: ["kernel: got no answer, expected one; fix: run the cell again", "内核：收到 没有回应，需要 有回应；办法：重新运行单元格"],
  tooLarge: ["export: got {cells} weights, expected at most {most}; fix: save PNG, or use the recording's own file", "导出：收到 {cells} 个权重，需要 至多 {most}；办法：保存 PNG，或使用记录文件本身"],
};

/** Adds words: `addWords({ open: ["Open", "打开"] })`; a name that is taken would say two things. */
export function addWords(more) {
  const taken = Object.keys(more).find((name) => name in WORDS);
  if (taken) throw new Error(`words: got ${taken} twice, expected each name once; fix: choose another`);
  Object.assign(WORDS, more);
}

/** A function from a word's name, and values for its {places}, to the word. Unknown languages speak English. */
export function createFormatter(language) {
  const place = LANGUAGES.indexOf(chooseLanguage(language));
  return (name, values = {}) => WORDS[name][place].replace(/\{(\w+)\}/g, (_, value) => values[value]);
}

/** A site in the reader's language, if it is named as regard.tasks.translation.attention names it. */
export function formatSiteName(name, say) {
  if (name === "attention") return say("attentionName");
  if (name === "passage to question" || name === "question to passage") return say(name);
  const [, side, layer = "", itself] = /^(encoder|decoder)( \d+)?(, itself)?$/.exec(name) ?? [];
  if (!side) return name;
  return itself ? say("itself", { site: say(side, { layer }) }) : say(side, { layer });
}

/** A head of a site, the mean of all (head −1), its alignment (−2) or a rollout (−3), in the reader's language. */
export function formatHeadName({ name, heads }, head, say) {
  const site = formatSiteName(name, say);
  const label = head === -3 ? say("rollout") : head === -2 ? say("alignment") : head < 0 ? say("mean") : say("head", { head });
  return heads > 1 || head < 0 ? say("headOf", { site, head: label }) : site;
}

/** "en" or "zh", whichever is nearer to what was asked for, or to what the browser is set to. */
export function chooseLanguage(language) {
  return (language ?? navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The names of all words that each language has, so that a test can see that none is missing. */
export function listWords() {
  const names = Object.keys(WORDS).sort();
  return Object.fromEntries(LANGUAGES.map((language, place) => [language, names.filter((name) => WORDS[name][place])]));
}
