// What the drawings say, in English and in Chinese. A page adds its own words with `teach`.

const WORDS = {
  en: {
    weight: "weight",
    difference: "difference",
    query: "looks",
    key: "at",
    cell: "{row} → {column}: {weight}",
    heatMap: "{name}: heat map, {rows} queries by {columns} keys",
    heatMapHelp: "Arrow keys move, + and − zoom, 0 shows all, Enter chooses the row",
    nothing: "nothing to show",
    waiting: "loading…",
    heads: "Heads, layer by layer",
    head: "head {head}",
    encoder: "encoder{layer}",
    decoder: "decoder{layer}",
    itself: "{site}, itself",
    mean: "mean of heads",
    headOf: "{site}, {head}",
    arcs: "{name}: lines from each token to what it looks at",
    strip: "{name}: tokens",
    said: "said",
    read: "read",
    chooseToken: "Choose a token to see where it looked",
    received: "weight received from all",
    overlay: "{name}: attention over the picture",
    spectrogram: "{name}: attention over the sound",
    time: "time (s)",
    frequency: "frequency",
    frames: "frame",
    pooled: "each cell is the largest of {rows} × {columns}",
  },
  zh: {
    weight: "权重",
    difference: "差",
    query: "查询",
    key: "键",
    cell: "{row} → {column}：{weight}",
    heatMap: "{name}：热图，{rows} 个查询 × {columns} 个键",
    heatMapHelp: "方向键移动，+ 和 − 缩放，0 显示全部，回车选择该行",
    nothing: "没有可显示的内容",
    waiting: "加载中…",
    heads: "各层的注意力头",
    head: "头 {head}",
    encoder: "编码器{layer}",
    decoder: "解码器{layer}",
    itself: "{site}（自身）",
    mean: "各头平均",
    headOf: "{site}，{head}",
    arcs: "{name}：每个词元与其关注对象的连线",
    strip: "{name}：词元",
    said: "输出",
    read: "输入",
    chooseToken: "选择一个词元，查看它关注了哪里",
    received: "从全部查询得到的权重",
    overlay: "{name}：图像上的注意力",
    spectrogram: "{name}：声音上的注意力",
    time: "时间（秒）",
    frequency: "频率",
    frames: "帧",
    pooled: "每格为 {rows} × {columns} 中的最大值",
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

/** A site in the reader's language, where it is named as regard.tasks.translation.looking names it. */
export function formatSiteName(name, say) {
  const [, side, layer = "", itself] = /^(encoder|decoder)( \d+)?(, itself)?$/.exec(name) ?? [];
  if (!side) return name;
  return itself ? say("itself", { site: say(side, { layer }) }) : say(side, { layer });
}

/** "en" or "zh", whichever is nearer to what was asked for, or to what the browser is set to. */
export function chooseLanguage(language) {
  return (language ?? navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The names of all words in each language, so that a test can see that none is missing. */
export function listWords() {
  return Object.fromEntries(Object.entries(WORDS).map(([language, words]) => [language, Object.keys(words).sort()]));
}
