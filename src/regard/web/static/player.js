// A player of a short sound that says where it is, frame by frame.
//
//   const player = createPlayer(element, audio, { label(), onmove(share) });   // `audio` is a WAV file in base64
//   player.seek(share); player.label(text);

import { make } from "./controls.js";

export function createPlayer(element, audio, { label, onmove }) {
  const bytes = Uint8Array.from(atob(audio), (sign) => sign.charCodeAt(0));
  const player = make("audio", { controls: true, className: "regard-player", ariaLabel: label(), src: URL.createObjectURL(new Blob([bytes], { type: "audio/wav" })) });
  const move = () => { if (player.duration) onmove(player.currentTime / player.duration); };
  const run = () => {
    move();
    if (!player.paused && player.isConnected) requestAnimationFrame(run);
  };
  player.addEventListener("play", run);
  player.addEventListener("seeked", move);
  player.addEventListener("ended", move);
  element.append(player);
  return {
    label: (text) => player.setAttribute("aria-label", text),
    seek(share) {
      if (player.duration) player.currentTime = share * player.duration;
    },
  };
}
