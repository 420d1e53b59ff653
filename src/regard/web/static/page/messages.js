// Messages of the server, "name: got …, expected …; fix: …", in Chinese: the frame always, its parts as far as they are known.

const FORM = /^(.*?): got ([\s\S]*), expected ([\s\S]*?); fix: ([\s\S]*)$/;

const NAMES = {
  server: "服务器", recording: "记录", run: "模型", text: "文本", question: "问题", passage: "段落", item: "输入", body: "请求", tokens: "词元",
  model: "模型", time: "时间", example: "例子", curves: "曲线", export: "导出", image: "图像", sound: "声音", "what was given": "所给内容", data: "数据",
  beam: "束宽", temperature: "温度", seed: "种子", length: "长度惩罚", request: "请求", token: "令牌", vocabulary: "词表",
};

// What a part says, and the same in Chinese, where $1 and $2 stay as they are.
const PARTS = [
  [/^no answer$/, "没有回应"], [/^one$/, "有回应"], [/^start it again with regard serve$/, "用 regard serve 重新启动"],
  [/^half an answer$/, "半个回应"], [/^all of it$/, "完整的内容"], [/^ask again when it is back$/, "等它恢复后再问"],
  [/^one that is not here$/, "不在这里的一份"], [/^one that is still kept$/, "仍然保留的一份"],
  [/^ask for it anew: translate again, or open the file again$/, "重新请求：再翻译一次，或重新打开文件"],
  [/^one of (.*)$/, "$1 之一"], [/^choose one of them$/, "从中选择一个"], [/^choose a file$/, "选择一个文件"],
  [/^more than (\d+) requests at once$/, "同时超过 $1 个请求"], [/^more than (\d+) uploads at once$/, "同时超过 $1 个上传"], [/^fewer$/, "更少"],
  [/^try again in a moment$/, "稍后再试"], [/^(\d+) readers$/, "$1 个读者"], [/^close some pages$/, "关闭一些页面"],
  [/^more than ([\d.]+) s$/, "超过 $1 秒"], [/^an answer within them$/, "在此时间内有回应"], [/^ask for less, or serve with a higher --seconds$/, "少问一些，或用更大的 --seconds 启动服务"],
  [/^nothing but blanks$/, "只有空白"], [/^some words$/, "一些词"], [/^write a sentence$/, "写一个句子"], [/^write one$/, "写一个"], [/^nothing$/, "什么也没有"],
  [/^([\d,]+) characters$/, "$1 个字符"], [/^a text of 1 to ([\d,]+) characters$/, "1 到 $1 个字符的文本"], [/^shorten it$/, "缩短它"],
  [/^([\d,]+) bytes$/, "$1 字节"], [/^at most ([\d,]+)( bytes)?$/, "至多 $1"], [/^send less$/, "发送得少一些"], [/^cut it into parts$/, "分成几部分"],
  [/^no weights yet$/, "还没有权重"], [/^at least one checkpoint$/, "至少一个检查点"], [/^wait, or: (.*)$/, "等待，或执行：$1"],
  [/^numbers that are not finite$/, "不是有限的数"], [/^finite numbers$/, "有限的数"], [/^train it again with a lower rate$/, "用更低的学习率重新训练"],
  [/^an error of its own \((.*)\)$/, "自身的错误（$1）"], [/^data that lie outside of the run$/, "在模型文件夹之外的数据"], [/^generated ones$/, "生成的数据"],
  [/^a folder that regard train made$/, "regard train 生成的文件夹"], [/^restore it from a copy$/, "从副本恢复"], [/^check who may read (?:it|its files)$/, "检查读取权限"],
  [/^use a file that Recording\.save wrote, or restore it from a copy$/, "使用 Recording.save 写的文件，或从副本恢复"], [/^a whole safetensors file of version 1$/, "完整的 safetensors 文件（版本 1）"],
  [/^observe fewer sites, or with a lower limit$/, "少观察一些位置，或用更小的上限"], [/^something that is not UTF-8$/, "不是 UTF-8 的内容"],
  [/^a text$/, "文本"], [/^paste the text itself$/, "粘贴文本本身"], [/^open the whole address that the server printed$/, "打开服务器给出的完整地址"],
  [/^no attention in it$/, "其中没有注意力"], [/^at least one$/, "至少一个"], [/^observe a model that attends$/, "观察一个有注意力的模型"],
];

/** A message in the reader's language. */
export function localizeMessage(text, language) {
  const [, name, got, expected, fix] = FORM.exec(text) ?? [];
  if (language !== "zh" || name === undefined) return text;
  const names = name.split(": ").map((part) => NAMES[part] ?? part).join("：");
  return `${names}：收到 ${translatePart(got)}，需要 ${translatePart(expected)}；办法：${translatePart(fix)}`;
}

function translatePart(text) {
  const [known, chinese] = PARTS.find(([pattern]) => pattern.test(text)) ?? [];
  return known ? text.replace(known, chinese) : text;
}
