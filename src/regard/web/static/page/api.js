// Asking the server, in the language of the page. Errors are sentences; a server that is gone is waited for.

import { createFormatter } from "../words.js";

const TOKEN = "regard-token";
const [OFTEN, SOON] = [4000, 700]; // milliseconds between two looks at whether the server is there
const watchers = new Set();
const successes = new Set();
let lost = false;

/** Takes the token out of the address, if it has one, and keeps it for this tab only. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("token")) return;
  sessionStorage.setItem(TOKEN, given.get("token"));
  given.delete("token");
  history.replaceState(null, "", `#${given}`);
}

/** Calls `listener(gone)` when the server stops answering and when it is back, or another in its place. */
export function onConnection(listener) {
  watchers.add(listener);
}

/** Calls `listener(begun)` when something that was asked for worked; `begun` is when it was asked for. */
export function onSuccess(listener) {
  successes.add(listener);
}

function noticeConnection(gone) {
  if (gone === lost) return;
  lost = gone;
  for (const watcher of watchers) watcher(gone);
}

/** Asks now and then whether the server is there, whatever is shown: a page that is only read must notice too. */
export async function watchServer() {
  let life;
  for (;;) {
    for (let waited = 0; waited < (lost ? SOON : OFTEN); waited += SOON) await pause(SOON);
    if (document.hidden && !lost) continue;
    try {
      const answer = await fetch("api/alive", { headers: buildHeaders() });
      const now = answer.ok ? (await answer.json()).life : life;
      const another = life !== undefined && now !== life;
      life = now;
      if (another) noticeConnection(true); // it was away for less than we look
      noticeConnection(false);
    } catch {
      noticeConnection(true);
    }
  }
}

export function pause(milliseconds) {
  return new Promise((done) => { setTimeout(done, milliseconds); });
}

function buildHeaders(kind) {
  const token = sessionStorage.getItem(TOKEN);
  const language = { "Accept-Language": document.documentElement.lang || "en" };
  return { ...language, ...(token && { Authorization: `Bearer ${token}` }), ...(kind && { "Content-Type": kind }) };
}

function say(name, values) {
  return createFormatter(document.documentElement.lang)(name, values);
}

/** An error with the server's own sentence. `status` 0 means that it did not answer. */
class ServerError extends Error {
  constructor(text, status = 0) {
    super(text);
    this.status = status;
  }
}

async function request(path, { body, kind = "application/json", signal } = {}) {
  const begun = performance.now();
  let answer;
  try {
    const options = body === undefined ? { headers: buildHeaders() } : { method: "POST", body, headers: buildHeaders(kind) };
    answer = await fetch(`api/${path}`, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    noticeConnection(true);
    throw new ServerError(say("noAnswer"));
  }
  noticeConnection(false);
  if (answer.ok) {
    for (const success of successes) success(begun);
    return answer;
  }
  const text = await answer.json().then(({ error }) => error, () => say("badStatus", { status: answer.status }));
  throw new ServerError(text, answer.status);
}

/** A busy server (503) is asked again a few times. */
async function requestWithRetry(path, options) {
  for (let turn = 0; ; turn += 1) {
    try {
      return await request(path, options);
    } catch (error) {
      if (error.status !== 503 || turn === 4) throw error;
      await pause(400 * 2 ** turn);
    }
  }
}

export async function getJson(path, options) {
  return (await requestWithRetry(path, options)).json();
}

export async function postJson(path, values, options) {
  return (await requestWithRetry(path, { ...options, body: JSON.stringify(values) })).json();
}

export async function postFile(path, file, options) {
  return (await request(path, { ...options, body: file, kind: "application/octet-stream" })).json();
}

export async function getBytes(path, options) {
  return (await requestWithRetry(path, options)).arrayBuffer();
}

/** Events of an answer while it comes: `for await (const { name, data } of streamEvents("translate", { … }))`. */
export async function* streamEvents(path, values, options = {}) {
  const body = values && JSON.stringify(values);
  const answer = await requestWithRetry(path, { ...options, body });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let ended = false;
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        noticeConnection(true);
        throw new ServerError(say("halfAnswer"));
      });
      ended = done;
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part);
        if (name === "error") throw new ServerError(JSON.parse(data).error, 500);
        yield { name, data: JSON.parse(data) };
      }
    }
  } finally {
    if (!ended) reader.cancel().catch(() => {}); // who has read all must not: the browser would call it a failure
  }
}
