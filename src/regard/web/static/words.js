// What the drawings say, in English and in Chinese. A page adds its own words with `addWords`.

const WORDS = {
  en: {
    cell: "{row} → {column}: {weight}",
    heatMap: "{name}: heat map, {rows} queries by {columns} keys",
    heatMapHelp: "Arrow keys move, + and − zoom, 0 shows all, Enter chooses the row",
    heads: "Heads, layer by layer",
    head: "head {head}",
    fromZero: "Layers, heads and positions count from 0, as in Python: head 2 is weights[…, 2, :, :].",
    attentionName: "attention",
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
    alignment: "alignment", rollout: "rollout up to here", every: "all", noneOfThem: "none", wholeWords: "Whole words", order: "Order", byLayer: "by layer",
    diagonal: "same position", previous: "previous position", next: "next position", first: "first position", uniform: "all alike",
    entropy: "entropy", agreement: "agreement with the layer’s other heads",
    everyHeadRow: "“{row}” in every head", everyHeadColumn: "Every head at “{column}”", everyHeadPair: "“{row}” → “{column}” in every head",
    madeOf: "What made this number: “{row}” → “{column}”", close: "Close",
    madePlace: "{weight}: rank {rank} of {keys} keys, {share} % of the row", madeChange: "{weight}: change number {rank} of {keys}, by size",
    madeUnknown: "The queries and keys were not kept. To keep them: observe(model, vectors=True); a report leaves them out where they do not fit.",
    madeMean: "This is the mean of the heads, which no single score made: choose one head.",
    madeAlignment: "An alignment keeps the largest weight of each query: choose a head to see what made a weight.",
    madeRollout: "A rollout is a product of several layers: choose a head to see what made a weight.",
    madeDifference: "This is the difference of two recordings: open one of them to see what made a weight.",
    madePooled: "Each cell is the largest of several weights: record a part, or open the recording with regard serve.",
    madeWords: "The pieces of words are merged: switch “Whole words” off to see what made a weight.",
    madeStatistics: "Only statistics of this attention were kept, not this weight.",
    scoreWord: "score s", weightWord: "weight", dimension: "dimension", query: "query", key: "key", termWord: "term",
    otherDimensions: "{count} others", termsCaption: "Score by dimension: the {shown} largest of {all} terms",
    biasWord: "bias b", maskName: "mask", maskAllows: "allows it", maskHides: "hides it", hiddenByMask: "0, because the mask hides this key",
    normalizerWord: "normalizer", mechanismWord: "score function", valueLength: "length of the value", lengthShare: "share by weight × length", notKept: "not kept",
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
    attentionName: "注意力",
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
    alignment: "对齐", rollout: "展开到此层", every: "全部", noneOfThem: "无", wholeWords: "按词合并", order: "排序", byLayer: "按层",
    diagonal: "同一位置", previous: "前一位置", next: "后一位置", first: "首个位置", uniform: "均匀",
    entropy: "熵", agreement: "与同层其他头的一致程度",
    everyHeadRow: "各头中的 “{row}”", everyHeadColumn: "各头对 “{column}” 的关注", everyHeadPair: "各头中的 “{row}” → “{column}”",
    madeOf: "这个数由什么得来：“{row}” → “{column}”", close: "关闭",
    madePlace: "{weight}：在 {keys} 个键中列第 {rank}，占该行 {share} %", madeChange: "{weight}：按大小在 {keys} 处变化中列第 {rank}",
    madeUnknown: "没有保留查询和键。要保留，请用 observe(model, vectors=True)；报告放不下时会略去。",
    madeMean: "这是各头的平均，并非由单个评分得来：请选择一个头。",
    madeAlignment: "对齐只保留每个查询的最大权重：请选择一个头，查看权重的由来。",
    madeRollout: "展开是多层注意力的乘积：请选择一个头，查看权重的由来。",
    madeDifference: "这是两份记录之差：请打开其中一份，查看权重的由来。",
    madePooled: "每格是若干权重中的最大值：请只记录一部分，或用 regard serve 打开记录。",
    madeWords: "子词已合并：关闭“按词合并”即可查看权重的由来。",
    madeStatistics: "这个注意力只保留了统计量，没有保留这个权重。",
    scoreWord: "评分 s", weightWord: "权重", dimension: "维度", query: "查询", key: "键", termWord: "项",
    otherDimensions: "其余 {count} 维", termsCaption: "评分按维度分解：{all} 项中最大的 {shown} 项",
    biasWord: "偏置 b", maskName: "掩码", maskAllows: "允许", maskHides: "遮蔽", hiddenByMask: "0，因为掩码遮蔽了这个键",
    normalizerWord: "归一化", mechanismWord: "评分函数", valueLength: "值的长度", lengthShare: "按 权重 × 长度 的占比", notKept: "未保留",
    zoom: "缩放", zoomIn: "放大", zoomOut: "缩小", save: "保存", tiled: "{rows} × {columns} 个权重，浏览时按块获取",
    tooLarge: "export: got {cells} weights, expected at most {most}; fix: 保存 PNG，或使用记录文件本身",
  },
};

/** Adds words: `addWords({ en: { open: "Open" }, zh: { open: "打开" } })`; a name that is taken would say two things. */
export function addWords(more) {
  for (const [language, words] of Object.entries(more)) {
    const taken = Object.keys(words).find((name) => name in WORDS[language]);
    if (taken) throw new Error(`words: got ${taken} twice, expected each name once; fix: choose another`);
    Object.assign(WORDS[language], words);
  }
}

/** A function from a word's name, and values for its {places}, to the word. Unknown languages speak English. */
export function createFormatter(language) {
  const words = WORDS[chooseLanguage(language)];
  return (name, values = {}) => (words[name] ?? WORDS.en[name]).replace(/\{(\w+)\}/g, (_, place) => values[place]);
}

/** A site in the reader's language, where it is named as regard.tasks.translation.attention names it. */
export function formatSiteName(name, say) {
  if (name === "attention") return say("attentionName");
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

/** The names of all words in each language, so that a test can see that none is missing. */
export function listWords() {
  return Object.fromEntries(Object.entries(WORDS).map(([language, words]) => [language, Object.keys(words).sort()]));
}
