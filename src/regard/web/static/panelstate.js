// What a panel remembers, where no address does: `state.get(name)`, `state.set({ … })`.

export const PANEL_STATE = {
  site: -1, head: -1, heads: "", scale: "", threshold: 0, drawing: "map", words: "", order: "", pick: "", look: "",
};

export function createPanelState(values = {}) {
  const kept = { ...PANEL_STATE, ...values };
  return { get: (name) => kept[name], set: (changes) => { Object.assign(kept, changes); } };
}
