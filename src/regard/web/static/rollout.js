// Attention rollout (Abnar & Zuidema 2020, §3): how much of each input position is in each position behind a layer.
// regard.inspect.measure.rollouts has the same formula; a test compares the two.

import { createLocalSource } from "./source.js";
import { MEAN } from "./sites.js";
import { readWeights } from "./tables.js";

const MOST = 512; // positions: a product of two tables takes their cube
const RESIDUAL = 0.5;

/** The places of the layers whose attentions follow one another up to this one; none if there is no such stack. */
export function findStack(sites, place) {
  const own = sites[place];
  const family = (site) => site.name.replace(/\d+/g, "#");
  const fits = (site) => site.whole && !site.across && site.kind !== "difference" && site.rows === own.rows && site.columns === own.rows && family(site) === family(own);
  if (!fits(own) || own.rows > MOST) return [];
  const stack = sites.map((site, at) => (fits(site) ? at : -1)).filter((at) => at >= 0);
  return stack.length > 1 ? stack.slice(0, stack.indexOf(place) + 1) : [];
}

/** The rollout of these sites, first to last, as a source. */
export async function createRollout(sites) {
  const size = sites[0].rows;
  let result; // of the layers before
  for (const site of sites) {
    const mixed = mixResidual(readWeights(await site.source(site.heads > 1 ? MEAN : 0)), size);
    result = result ? multiply(mixed, result, size) : mixed;
  }
  return createLocalSource(Float32Array.from(result), size, size);
}

function mixResidual(weights, size) {
  const mixed = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    let total = 0;
    for (let column = 0; column < size; column += 1) {
      const cell = row * size + column;
      mixed[cell] = (row === column ? RESIDUAL : 0) + (1 - RESIDUAL) * weights[cell];
      total += mixed[cell];
    }
    for (let column = 0; column < size; column += 1) mixed[row * size + column] /= total || 1;
  }
  return mixed;
}

function multiply(left, right, size) {
  const product = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    for (let inner = 0; inner < size; inner += 1) {
      const factor = left[row * size + inner];
      if (factor === 0) continue;
      for (let column = 0; column < size; column += 1) product[row * size + column] += factor * right[inner * size + column];
    }
  }
  return product;
}
