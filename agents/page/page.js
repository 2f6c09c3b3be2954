"use strict";
// Steps through the replays. All that is known of the rules was written into the data: nothing is worked out here but
// what follows from the cards that have left: which cards lie open, and in which pile a turned card lies.
(() => {
  const { table, games } = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("replay");
  if (!root) return;
  const at = (id) => document.getElementById(id);
  const RANKS = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"];
  const SUITS = ["♣", "♦", "♥", "♠"];
  const [GONE, CURSOR, PASS, SCORE, SEEN, VALUE, MADE, LOSS, MOVES] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const PLACES = table.places.length;
  let game = 0, step = 0, marked = [];

  const rank = (id) => RANKS[id % 13], suit = (id) => Math.floor(id / 13), isRed = (id) => suit(id) === 1 || suit(id) === 2;
  const name = (id) => rank(id) + SUITS[suit(id)];
  const signed = (value) => (value === null ? "–" : String(value).replace("-", "−"));

  // ---- the position -------------------------------------------------------------------------------------------------
  function position() {
    const { steps } = games[game], left = new Set(games[game].cards.keys());
    for (let t = 1; t <= step; t++) for (const card of steps[t][GONE]) left.delete(card);
    const piles = Array.from({ length: table.piles }, () => []), ahead = [];
    for (let k = 0; k < table.stock; k++) {
      if (!left.has(PLACES + k)) continue;
      if (k < steps[step][CURSOR]) piles[k % table.piles].push(PLACES + k); else ahead.push(PLACES + k);
    }
    return { left, piles, ahead, now: steps[step], last: steps.length - 1 };
  }

  // ---- the board ----------------------------------------------------------------------------------------------------
  function face(card, x, y, kind) {
    const id = games[game].cards[card], ink = isRed(id) ? "red" : "black";
    const size = rank(id).length > 1 ? 0.36 : 0.46;
    return `<g class="${kind}${marked.includes(card) ? " marked" : ""}" transform="translate(${x} ${y})"><title>${name(id)}</title>` +
      `<rect class="face" x=".02" y=".02" width=".96" height="${table.height - 0.04}" rx=".1"/>` +
      `<text class="${ink}" x=".09" y=".46" font-size="${size}">${rank(id)}</text>` +
      `<path class="${ink}" transform="translate(.75 .3) scale(.15)" d="${table.suits[suit(id)]}"/>` +
      (kind === "covered" ? "" : `<path class="${ink}" transform="translate(.5 .95) scale(.27)" d="${table.suits[suit(id)]}"/>`) + "</g>";
  }
  const slot = (x, y, kind, pattern) => `<g transform="translate(${x} ${y})">` +
    `<rect class="${kind}" x=".02" y=".02" width=".96" height="${table.height - 0.04}" rx=".1"/>` +
    (pattern ? '<path class="pattern" d="M.5 .25L.85 .7L.5 1.15L.15 .7Z"/>' : "") + "</g>";
  const label = (x, y, text) => `<text class="label" text-anchor="middle" x="${x}" y="${y}" font-size=".27">${text}</text>`;

  function drawBoard({ left, piles, ahead, now }) {
    const parts = [], xs = table.places.map((spot) => spot[0]);
    const bottom = Math.max(...table.places.map((spot) => spot[1])) + table.height;
    table.places.forEach(([x, y], card) => {
      if (!left.has(card)) return;
      parts.push(face(card, x, y, table.covers[card].some((other) => left.has(other)) ? "covered" : "open"));
    });
    const count = table.piles + (table.hasStock ? 1 : 0), [right, down] = table.fanStep;
    const pitch = table.piles === 1 ? 1.6 : 1.12, top = bottom + 0.35, deep = Math.max(0, table.fan - 1);
    const wide = (count - 1) * pitch + 1 + (table.piles === 1 ? deep * right : 0), start = -wide / 2;
    const below = top + table.height + (table.piles > 1 ? deep * down : 0) + 0.38;
    if (table.hasStock && count) {
      const shown = ahead.length && (table.stockTop || at("hidden").checked);
      if (shown) parts.push(face(ahead[0], start, top, table.stockTop ? "open" : now[SEEN] > ahead[0] - PLACES ? "covered" : "peek"));
      else parts.push(slot(start, top, ahead.length ? "back" : "empty", ahead.length));
      parts.push(label(start + 0.5, below, `stock ${ahead.length}`));
    }
    piles.forEach((pile, number) => {
      const x = start + (number + (table.hasStock ? 1 : 0)) * pitch, seen = pile.slice(-table.fan);
      if (!seen.length) parts.push(slot(x, top, "empty", false));
      seen.forEach((card, k) => parts.push(face(card, +(x + k * right).toFixed(3), +(top + k * down).toFixed(3), k === seen.length - 1 ? "open" : "covered")));
      parts.push(label(x + 0.5, below, table.piles === 1 ? `waste ${pile.length}` : String(pile.length)));
    });
    const half = Math.max(-Math.min(...xs), wide / 2) + 0.15;
    const said = `Pyramid: ${[...left].filter((card) => card < PLACES).length} cards left; stock ${ahead.length}; waste ${piles.map((p) => p.length).join(", ")}`;
    at("board").innerHTML = `<svg role="img" aria-label="${said}" viewBox="${-half} -.12 ${2 * half} ${(count ? below : bottom) + 0.3}">${parts.join("")}</svg>`;
  }

  function drawStock({ left, piles, now }) {
    const list = at("stock"), tops = piles.map((pile) => pile[pile.length - 1]);
    list.replaceChildren();
    for (let k = 0; k < table.stock; k++) {
      const card = PLACES + k, item = document.createElement("li"), id = games[game].cards[card];
      let kind = "ahead", said = `${name(id)}, to come`;
      if (!left.has(card)) [kind, said] = ["gone", "has left"];
      else if (tops.includes(card)) [kind, said] = ["top", `${name(id)}, top of the waste`];
      else if (k < now[CURSOR]) [kind, said] = ["turned", `${name(id)}, in the waste`];
      else if (k >= now[SEEN]) [kind, said] = at("hidden").checked ? ["peek", `${name(id)}, not seen yet`] : ["hidden", "not seen yet"];
      item.className = kind;
      item.title = said;
      item.setAttribute("aria-label", said);
      item.textContent = kind === "hidden" || kind === "gone" ? "·" : name(id);
      if (kind !== "hidden" && kind !== "gone" && isRed(id)) item.classList.add("hearts");
      list.append(item);
    }
  }

  // ---- the moves ----------------------------------------------------------------------------------------------------
  function cell(row, text, kind, head) {
    const made = document.createElement(head ? "th" : "td");
    if (head) made.scope = "row";
    if (kind) made.className = kind;
    made.textContent = text;
    row.append(made);
    return made;
  }

  function drawMoves({ ahead, now, last }) {
    const body = at("moves"), { says } = games[game], moves = now[MOVES];
    body.replaceChildren();
    at("says").hidden = !says;
    at("says").textContent = says === "probability" ? "policy" : says;
    at("network").hidden = says !== "probability";
    at("expects").hidden = says !== "value";
    at("teacher").hidden = says !== "rating";
    const unsure = moves.some((move) => move[3]);
    const best = moves.reduce((most, move) => (move[2] === null ? most : Math.max(most, move[2])), -Infinity);
    moves.forEach(([cards, share, worth, open], number) => {
      const row = document.createElement("tr"), made = number === now[MADE];
      const lost = worth === null ? null : best - worth;
      const text = cards.length ? cards.map((card) => name(games[game].cards[card])).join(" + ") : ahead.length ? "draw" : "recycle";
      cell(row, text, "", true);
      if (says === "value") cell(row, signed(share.toFixed(2)), "");
      else if (says) {
        const bar = cell(row, "", ""), box = document.createElement("span"), inside = document.createElement("i");
        box.className = "share";
        inside.style.width = `${100 * share}%`;
        box.append(inside);
        bar.append(box, says === "rating" ? share.toFixed(2) : `${(100 * share).toFixed(1)} %`);
      }
      cell(row, worth === null ? "only move" : `${open ? "≈ " : ""}${signed(worth)}`, worth === best ? "best" : "");
      cell(row, lost ? `${unsure ? "≈ " : ""}${signed(-lost)}` : "", lost ? "loss" : "");
      if (made) {
        row.classList.add("made");
        if (now[LOSS]) row.classList.add("lossy");
        row.setAttribute("aria-current", "true");
      }
      const mark = (on) => { marked = on ? cards : []; drawBoard(position()); };
      row.addEventListener("mouseenter", () => mark(true));
      row.addEventListener("mouseleave", () => mark(false));
      body.append(row);
    });
    at("none").hidden = step < last;
    const points = table.unit === "wins" ? "" : `, ${signed(games[game].score)} points`;
    at("none").textContent = `The game is over: ${games[game].won ? "won" : "not won"}${points}.`;
    const value = now[VALUE];
    at("value").hidden = value === null;
    if (value !== null) at("value").textContent = `Value of the position, by the network: ${signed(value.toFixed(2))} (reward it expects from here on)`;
  }

  // ---- all of it ----------------------------------------------------------------------------------------------------
  function draw(keep) {
    const here = position(), { now, last } = here, chosen = games[game];
    marked = [];
    drawBoard(here);
    drawStock(here);
    drawMoves(here);
    at("slider").max = last;
    at("slider").value = step;
    const passes = table.passes ? ` of ${table.passes}` : "";
    const moveText = step < last ? `move ${step + 1} of ${last}` : `after move ${last}`;
    at("slider").setAttribute("aria-valuetext", moveText);
    at("standing").textContent = `${moveText} · pass ${now[PASS]}${passes} · score ${signed(now[SCORE])}`;
    at("first").disabled = at("previous").disabled = step === 0;
    at("next").disabled = at("last").disabled = step === last;
    at("loss").disabled = nextLoss() < 0;
    at("game").value = game;
    at("lossmarks").replaceChildren(...chosen.steps.flatMap((each, t) => {
      if (!each[LOSS]) return [];
      const tick = document.createElement("i");
      tick.style.left = `${(100 * t) / Math.max(last, 1)}%`;
      tick.title = `move ${t + 1}: −${each[LOSS]}`;
      return [tick];
    }));
    document.querySelectorAll(".games tbody tr").forEach((row, number) => row.classList.toggle("now", number === game));
    if (!keep) history.replaceState(null, "", `#game=${game + 1}&move=${step + 1}`);
  }
  const nextLoss = () => games[game].steps.findIndex((each, t) => t > step && each[LOSS]);
  function go(to) {
    step = Math.max(0, Math.min(games[game].steps.length - 1, to));
    draw();
  }
  function follow() {
    const found = /^#game=(\d+)&move=(\d+)$/.exec(location.hash);
    if (!found || !games[found[1] - 1]) return false;
    game = found[1] - 1;
    step = Math.max(0, Math.min(games[game].steps.length - 1, found[2] - 1));
    draw(true);
    at("replays").scrollIntoView();
    root.scrollIntoView();
    return true;
  }

  games.forEach((each, number) => at("game").append(new Option(`${number + 1}. ${each.agent} · deal ${each.deal} · ${each.why}`, number)));
  at("game").addEventListener("change", () => { game = +at("game").value; step = 0; draw(); });
  at("slider").addEventListener("input", () => go(+at("slider").value));
  at("hidden").addEventListener("change", () => draw(true));
  at("first").addEventListener("click", () => go(0));
  at("previous").addEventListener("click", () => go(step - 1));
  at("next").addEventListener("click", () => go(step + 1));
  at("last").addEventListener("click", () => go(Infinity));
  at("loss").addEventListener("click", () => go(nextLoss()));
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, .scroll")) return;
    const inside = root.contains(event.target);
    if (event.key === "ArrowRight") go(step + 1);
    else if (event.key === "ArrowLeft") go(step - 1);
    else if (event.key === "Home" && inside) go(0);
    else if (event.key === "End" && inside) go(Infinity);
    else return;
    event.preventDefault();
  });
  window.addEventListener("hashchange", follow);
  if (!follow()) draw(true);
})();
