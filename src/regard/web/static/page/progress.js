// What is known of a run that is followed: its metrics, whether it trains, how far it is, and when it will have ended.

const RECENT = 20; // events that the speed is taken from
const STALLED = 60; // seconds without news, at least, after which a run that trains is called stalled

/** { series, take(kind, data, changed), … }: series by metric, each a Map from "training" or "validation" to points. */
export function createFollowed() {
  return {
    stop: new AbortController(), begun: false, start: 0, series: new Map(), events: [], plan: {}, running: undefined, news: -Infinity,
    take(kind, data, changed) {
      if (kind === "again") Object.assign(this, { series: new Map(), events: [], start: 0 });
      if (kind === "status") Object.assign(this, { plan: data, running: data.running, news: Math.max(this.news, performance.now() - 1000 * data.age) });
      if (kind === "points") {
        if (this.events.length) this.news = performance.now();
        this.start = data.end;
        for (const point of data.points) addPoint(this, point);
      }
      if (kind !== "alive") changed();
    },
  };
}

function addPoint({ series, events }, { step, epoch, loss, rate, seconds, metrics }) {
  const add = (name, kind, value) => {
    if (!series.has(name)) series.set(name, new Map());
    const lines = series.get(name);
    if (!lines.has(kind)) lines.set(kind, []);
    lines.get(kind).push([step, value]);
  };
  if (loss !== undefined) add("loss", "training", loss);
  for (const [name, value] of Object.entries(metrics ?? {})) add(name, "validation", value);
  if (rate !== undefined) add("rate", "training", rate);
  events.push({ step, epoch, seconds });
}

/** How far a run is, in words: running with what is left, finished, stopped, or stalled. */
export function computeProgress({ events, plan, running, news }, say) {
  if (!events.length) return say(running ? "waiting" : "noMetrics");
  const { step, epoch } = events.at(-1);
  const planned = plan.steps ?? (plan.epochs && epoch > 0 ? Math.round((step / epoch) * plan.epochs) : undefined);
  const share = planned ? Math.min(1, step / planned) : undefined;
  const far = [say("atStep", { step: step.toLocaleString() }), share !== undefined && `${Math.floor(100 * share)} %`].filter(Boolean).join(" · ");
  if (!running) return `${share === undefined || share === 1 ? "■" : "□"} ${say(share === 1 ? "finished" : "stopped")} · ${far}`;
  const pace = computePace(events);
  const quiet = (performance.now() - news) / 1000;
  if (quiet > Math.max(STALLED, 20 * (pace ?? 0))) return `▲ ${say("stalled", { time: formatTime(quiet, say) })} · ${far}`;
  const left = planned && pace ? ` · ${say("left", { time: formatTime((planned - step) * pace, say) })}` : "";
  return `● ${say("live")} · ${far}${left}`;
}

/** Seconds for a step, of late. */
function computePace(events) {
  const timed = events.filter(({ seconds }) => seconds !== undefined).slice(-RECENT);
  if (timed.length < 2) return undefined;
  const seconds = timed.slice(1).reduce((sum, one) => sum + one.seconds, 0);
  return seconds / Math.max(1, timed.at(-1).step - timed[0].step);
}

function formatTime(seconds, say) {
  const [size, unit] = seconds < 90 ? [1, "seconds"] : seconds < 5400 ? [60, "minutes"] : [3600, "hours"];
  return say(unit, { count: Math.max(1, Math.round(seconds / size)) });
}
