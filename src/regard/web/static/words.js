// What the drawings say, in English and in Chinese. A page adds its own words with `addWords`.

const WORDS = {
  en: {
    cell: "{row} → {column}: {weight}",
    heatMap: "{name}: heat map, {rows} queries by {columns} keys",
    heatMapHelp: "Arrow keys move, + and − zoom, 0 shows all, Enter chooses the row",
    heads: "Heads, layer by layer",
    head: "head {head}",
    fromZero: "Layers, heads and positions count from 0, as in Python: head 2 is weights[…, 2, :, :].",
    encoder: "encoder{layer}",
    decoder: "decoder{layer}",
    itself: "{site}, itself",
    mean: "mean of heads",
    headOf: "{site}, {head}",
    arcs: "{name}: lines from each token to what it looks at",
    strip: "{name}: tokens",
    said: "said",
    read: "read",
    overlay: "{name}: attention over the picture",
    heat: "Heat", regionWords: "region {region}: {words}", player: "The sound",
    spectrogram: "{name}: attention over the sound",
    time: "time (s)",
    frames: "frame",
    pooled: "each cell is the largest of {rows} × {columns}",
    hypotheses: "Hypotheses", layer: "Layer", headName: "Head", colors: "Colors", threshold: "Hide below",
    none: "0 to 1", row: "by row", global: "by largest", map: "Map", lines: "Lines", drawing: "Drawing",
    allHeads: "All heads", fit: "Show all", score: "score {score}", theme: "Dark or light", language: "Language",
    fromRow: "Where “{token}” looks", fromColumn: "What looks at “{token}”", tokens: "Tokens",
    whole: "All queries together: weight received on average", auto: "automatic", rowLargest: "row’s largest", headLargest: "head’s largest",
    alignment: "alignment", every: "all", noneOfThem: "none", wholeWords: "Whole words", order: "Order", byLayer: "by layer",
    diagonal: "same position", previous: "previous position", next: "next position", first: "first position", uniform: "all alike",
    entropy: "entropy", agreement: "agreement with the layer’s other heads",
    everyHeadRow: "“{row}” in every head", everyHeadColumn: "Every head at “{column}”", everyHeadPair: "“{row}” → “{column}” in every head",
    zoom: "Zoom", zoomIn: "Zoom in", zoomOut: "Zoom out", save: "Save", tiled: "{rows} × {columns} weights, fetched by tiles as you look",
    tooLarge: "export: got {cells} weights, expected at most {most}; fix: save PNG, or use the recording's own file",
  },
  zh: {
    cell: "{row} → {column}：{weight}",
    heatMap: "{name}：热图，{rows} 个查询 × {columns} 个键",
    heatMapHelp: "方向键移动，+ 和 − 缩放，0 显示全部，回车选择该行",
    heads: "各层的注意力头",
    head: "头 {head}",
    fromZero: "层、头和位置都从 0 数起，与 Python 一致：头 2 即 weights[…, 2, :, :]。",
    encoder: "编码器{layer}",
    decoder: "解码器{layer}",
    itself: "{site}（自身）",
    mean: "各头平均",
    headOf: "{site}，{head}",
    arcs: "{name}：每个词元与其关注对象的连线",
    strip: "{name}：词元",
    said: "输出",
    read: "输入",
    overlay: "{name}：图像上的注意力",
    heat: "热度", regionWords: "区域 {region}：{words}", player: "声音",
    spectrogram: "{name}：声音上的注意力",
    time: "时间（秒）",
    frames: "帧",
    pooled: "每格为 {rows} × {columns} 中的最大值",
    hypotheses: "候选译文", layer: "层", headName: "头", colors: "着色", threshold: "隐藏低于",
    none: "0 到 1", row: "按行", global: "按最大值", map: "热图", lines: "连线", drawing: "图形",
    allHeads: "全部注意力头", fit: "显示全部", score: "得分 {score}", theme: "深色或浅色", language: "语言",
    fromRow: "“{token}” 关注哪里", fromColumn: "哪些词元关注 “{token}”", tokens: "词元",
    whole: "所有查询的平均权重", auto: "自动", rowLargest: "该行最大值", headLargest: "该头最大值",
    alignment: "对齐", every: "全部", noneOfThem: "无", wholeWords: "按词合并", order: "排序", byLayer: "按层",
    diagonal: "同一位置", previous: "前一位置", next: "后一位置", first: "首个位置", uniform: "均匀",
    entropy: "熵", agreement: "与同层其他头的一致程度",
    everyHeadRow: "各头中的 “{row}”", everyHeadColumn: "各头对 “{column}” 的关注", everyHeadPair: "各头中的 “{row}” → “{column}”",
    zoom: "缩放", zoomIn: "放大", zoomOut: "缩小", save: "保存", tiled: "{rows} × {columns} 个权重，浏览时按块获取",
    tooLarge: "export: got {cells} weights, expected at most {most}; fix: 保存 PNG，或使用记录文件本身",
  },
};

/** Adds words: `addWords({ en: { open: "Open" }, zh: { open: "打开" } })`. */
export function addWords(more) {
  for (const [language, words] of Object.entries(more)) Object.assign(WORDS[language], words);
}

/** A function from a word's name, and values for its {places}, to the word. Unknown languages speak English. */
export function createFormatter(language) {
  const words = WORDS[chooseLanguage(language)];
  return (name, values = {}) => (words[name] ?? WORDS.en[name]).replace(/\{(\w+)\}/g, (_, place) => values[place]);
}

/** A site in the reader's language, where it is named as regard.tasks.translation.attention names it. */
export function formatSiteName(name, say) {
  const [, side, layer = "", itself] = /^(encoder|decoder)( \d+)?(, itself)?$/.exec(name) ?? [];
  if (!side) return name;
  return itself ? say("itself", { site: say(side, { layer }) }) : say(side, { layer });
}

/** A head of a site, the mean of all (head −1) or its alignment (−2), in the reader's language. */
export function formatHeadName({ name, heads }, head, say) {
  const site = formatSiteName(name, say);
  const label = head === -2 ? say("alignment") : head < 0 ? say("mean") : say("head", { head });
  return heads > 1 || head < 0 ? say("headOf", { site, head: label }) : site;
}

/** "en" or "zh", whichever is nearer to what was asked for, or to what the browser is set to. */
export function chooseLanguage(language) {
  return (language ?? navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The names of all words in each language, so that a test can see that none is missing. */
export function listWords() {
  return Object.fromEntries(Object.entries(WORDS).map(([language, words]) => [language, Object.keys(words).sort()]));
}
