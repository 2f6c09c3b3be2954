// The table: draws the state that Python sends, and sends what a person does. It knows no rules: which moves there are,
// what they are called and why one is refused comes from Python (pyramid_env/table/session.py). The same file is the
// notebook's widget (anywidget's front end) and the page on localhost (page.js hands it a model of its own).

const IDLE_MS = 300_000; // as IDLE_S in clock.py
const AWAKE_MS = 60_000; // how often Python hears that somebody is still there
const DRAG_FROM = 6; // pixels from which a press is a drag
const REACH = 1.15; // card widths within which a target attracts a dragged card
const HOME = 0.6; // card widths within which a dragged card is put back

const ICONS = {
  draw: "M5 3h9v13H5zM10 8l9 2-3 12-8.5-2M9.5 7v5M7.5 10l2 2 2-2",
  undo: "M9 7L4 12l5 5M4 12h11a5 5 0 0 1 0 10h-2",
  redo: "M15 7l5 5-5 5M20 12H9a5 5 0 0 0 0 10h2",
  restart: "M5 12a7 7 0 1 0 2.6-5.4M8 2v5h5",
  hint: "M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0c-.6.5-.9 1-1 2h-5c-.1-1-.4-1.5-1-2z",
  best: "M4 18.5h16M5 15L4 7l4.5 4L12 5l3.5 6L20 7l-1 8z",
  outlook: "M9.2 9a3 3 0 1 1 4.4 2.6c-1 .6-1.6 1.2-1.6 2.4M12 17.5v.5M12 2.5a9.5 9.5 0 1 1 0 19 9.5 9.5 0 0 1 0-19z",
  new: "M7 3h10a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM12 8.5v7M8.5 12h7",
  pause: "M8 5v14M16 5v14",
  resume: "M7 4.5v15l12-7.5z",
  statistics: "M5 20V11M12 20V4M19 20v-6M3 20.5h18",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  star: "M12 3l2.6 5.6 6.1.7-4.5 4.2 1.2 6L12 16.6 6.6 19.5l1.2-6L3.3 9.3l6.1-.7z",
  help: "M5 5h14v10H5zM3 19h18M8 8h.1M11 8h.1M14 8h.1M8 12h8",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  first: "M6 5v14M19 5l-9 7 9 7z",
  back: "M16 5l-9 7 9 7z",
  next: "M8 5l9 7-9 7z",
  last: "M18 5v14M5 5l9 7-9 7z",
  hand: "M8 12V6a1.5 1.5 0 0 1 3 0v5-7a1.5 1.5 0 0 1 3 0v7-5a1.5 1.5 0 0 1 3 0v8c0 4-2 7-6 7-3 0-4.5-1.5-6-4l-2-3.5a1.5 1.5 0 0 1 2.6-1.5z",
};

const COPIED = /^Pyramid solitaire, (.+), (deal \d+|[^,]+)$/;

const KEYS = [
  ["Arrow keys", "go from card to card"],
  ["Enter, space", "choose a card, then its partner; kings leave at once"],
  ["Esc", "choose none"],
  ["D", "draw, or turn the waste over"],
  ["U, Ctrl+Z", "undo"],
  ["R, Ctrl+Y", "redo"],
  ["H", "hint"],
  ["B", "the solver's best move"],
  ["W", "can it still be won?"],
  ["N", "new deal"],
  ["P", "pause, go on"],
  ["S", "statistics"],
  ["F", "full screen"],
  ["?", "this list"],
];

/** An element with attributes, properties (on...) and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function icon(name) {
  const holder = document.createElement("span");
  holder.className = "pt-icon";
  holder.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${ICONS[name]}"/></svg>`;
  return holder;
}

function clockWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 60) % 60, whole % 60];
  if (whole >= 3600) parts.unshift(Math.floor(whole / 3600));
  return parts.map((part, at) => (at ? String(part).padStart(2, "0") : String(part))).join(":");
}

function percent(share) {
  return share == null ? "–" : `${(100 * share).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`;
}

function number(value, digits = 1) {
  return value == null ? "–" : value.toFixed(digits).replace("-", "−");
}

let tables = 0; // for names of elements: several tables may stand on one page

class TableView {
  constructor(model, root) {
    this.model = model;
    this.name = `pt${++tables}`;
    this.state = null;
    this.chosen = null; // {spot, card} that waits for its partner
    this.drag = null;
    this.waiting = 0;
    this.stoppers = [];
    this.lastTouch = Date.now();
    this.lastAwake = Date.now();
    this.playing = null; // timer of an agent's game that plays
    this.build(root);
    this.listen();
    this.show(model.get("state"));
  }

  // ---- building ----------------------------------------------------------------------------------------------------

  build(root) {
    this.buttons = {};
    const button = (name, label, action, extra = {}) => {
      const made = make(
        "button",
        { type: "button", class: "pt-button", "data-control": name, "aria-label": label, title: label, onclick: action, ...extra },
        icon(name), make("span", { class: "pt-word", "aria-hidden": "true" }, extra["data-word"] ?? label),
      );
      this.buttons[name] = made;
      return made;
    };
    const send = (type, more = {}) => () => this.send({ type, ...more });
    this.presets = make("select", {
      class: "pt-presets", "data-control": "rules", "aria-label": "Rules",
      onchange: () => { this.send({ type: "rules", rules: this.presets.value }); this.focusBoard(); },
    });
    const star = button("star", "Favourite", () => {
      this.send({ type: "favourite", rules: this.state.rules, on: !this.isFavourite() });
    }, { "aria-pressed": "false" });
    this.bar = make(
      "div", { class: "pt-bar", role: "toolbar", "aria-label": "Table" },
      make("span", { class: "pt-group" }, this.presets, star),
      make(
        "span", { class: "pt-group" },
        button("new", "New deal", () => this.openNew(), { "data-word": "New" }),
        button("restart", "Restart this deal", send("restart"), { "data-word": "Restart" }),
      ),
      make("span", { class: "pt-group" }, button("undo", "Undo", send("undo")), button("redo", "Redo", send("redo"))),
      make(
        "span", { class: "pt-group" },
        button("draw", "Draw", () => this.draw()),
        button("hint", "Hint", send("hint", { solver: false })),
        button("best", "The solver's best move", send("hint", { solver: true }), { "data-word": "Best" }),
        button("outlook", "Can it still be won?", send("outlook"), { "data-word": "Winnable?" }),
      ),
      make(
        "span", { class: "pt-group" },
        button("pause", "Pause", () => this.send({ type: "pause", on: !this.state.paused })),
        button("statistics", "Statistics", () => this.openStatistics()),
        button("settings", "Settings", () => this.open(this.settings)),
        button("help", "Keys", () => this.open(this.help)),
        button("full", "Full screen", () => this.fullScreen()),
      ),
    );
    this.copyButton = make("button", {
      type: "button", class: "pt-copy", "data-control": "copy", title: "Copy the deal, to share it", onclick: () => this.copyDeal(this.copyButton),
    }, "deal", icon("copy"));
    this.status = make("div", { class: "pt-status" }, this.copyButton);
    this.board = make("div", { class: "pt-board" });
    this.message = make("div", { class: "pt-message", role: "status", "aria-live": "polite" });
    this.veil = make(
      "div", { class: "pt-veil", hidden: true },
      make("p", {}, "Paused"),
      make("button", { type: "button", class: "pt-big", "data-control": "resume", onclick: send("pause", { on: false }) }, "Go on"),
    );
    this.watch = make("section", { class: "pt-watch", "aria-label": "The agent", hidden: true });
    this.newDialog = this.buildNew();
    this.statisticsDialog = this.dialog("Statistics", make("div", { class: "pt-scroll" }));
    this.settings = this.buildSettings();
    this.help = this.buildHelp();
    this.root = make(
      "div", { class: "pt", tabindex: "-1", role: "region", "aria-label": "Pyramid solitaire" },
      this.bar, this.status,
      make("div", { class: "pt-middle" }, make("div", { class: "pt-felt" }, this.board, this.veil, this.message), this.watch),
      this.newDialog, this.statisticsDialog, this.settings, this.help,
    );
    root.append(this.root);
  }

  /** The document, or the shadow root that a notebook (marimo) puts the table into. */
  get scope() {
    const scope = this.root.getRootNode();
    return "elementsFromPoint" in scope ? scope : document;
  }

  dialog(title, ...children) {
    const id = `${this.name}-${title.toLowerCase().replaceAll(" ", "-")}`;
    const made = make(
      "dialog", { class: "pt-dialog", "aria-labelledby": id },
      make("h2", { id }, title), ...children,
      make("form", { method: "dialog", class: "pt-close" }, make("button", { class: "pt-plain", "data-control": "close" }, "Close")),
    );
    made.addEventListener("click", (event) => { if (event.target === made) made.close(); });
    made.addEventListener("close", () => this.focusBoard());
    return made;
  }

  buildNew() {
    this.numberField = make("input", {
      type: "text", class: "pt-number", "data-control": "number", "aria-label": "Number of the deal", placeholder: "number of a deal",
      autocomplete: "off", spellcheck: "false", inputmode: "numeric",
    });
    this.rulesField = make("input", {
      type: "text", class: "pt-number", "data-control": "rules-text", "aria-label": "Other rules", placeholder: "microsoft:passes=1",
      autocomplete: "off", spellcheck: "false", autocapitalize: "off",
    });
    this.winnable = make("input", { type: "checkbox", "data-control": "winnable" });
    const ask = (event) => { made.close(); this.send(event); };
    /** A line with a field of its own: Enter there means its own button; without a word it does nothing. */
    const field = (input, control, label, event) => make(
      "form", { class: "pt-line", onsubmit: (submitted) => { submitted.preventDefault(); if (input.value.trim()) ask(event(input.value.trim())); } },
      input, make("button", { type: "submit", class: "pt-plain", "data-control": control }, label),
    );
    const made = this.dialog(
      "New deal",
      make("p", { class: "pt-line" },
        make("button", { type: "button", class: "pt-big", "data-control": "random", onclick: () => ask({ type: "new", winnable: this.winnable.checked }) }, "Random deal"),
        make("label", {}, this.winnable, " one that can be won"),
      ),
      make("p", { class: "pt-line" },
        make("button", { type: "button", class: "pt-plain", "data-control": "daily", onclick: () => ask({ type: "daily" }) }, "Deal of the day"),
      ),
      field(this.numberField, "deal", "Deal it", (text) => {
        const copied = text.match(COPIED); // what the copy button gives
        if (copied && copied[1] !== this.state.rules) this.send({ type: "rules", rules: copied[1] });
        return { type: "new", deal: (copied ? copied[2] : text).replace(/^(deal |#)\s*/i, "") };
      }),
      field(this.rulesField, "other-rules", "Play these rules", (rules) => ({ type: "rules", rules })),
      make("p", { class: "pt-note" }, "A number is the same cards for everyone, for ever. A deal that you leave after a move counts as played."),
    );
    return made;
  }

  buildSettings() {
    this.checks = {};
    const check = (name, label) => {
      const box = make("input", {
        type: "checkbox", "data-control": name,
        onchange: () => this.send({ type: "preference", name, value: box.checked }),
      });
      this.checks[name] = box;
      return make("p", { class: "pt-line" }, make("label", {}, box, ` ${label}`));
    };
    this.theme = make(
      "select", { "data-control": "theme", onchange: () => this.send({ type: "preference", name: "theme", value: this.theme.value }) },
      make("option", { value: "auto" }, "as the system"), make("option", { value: "light" }, "light"), make("option", { value: "dark" }, "dark"),
    );
    return this.dialog(
      "Settings", check("large_cards", "Large cards"), check("four_colours", "A colour for each suit"),
      check("auto_pause", "Pause by itself after five idle minutes"),
      make("p", { class: "pt-line" }, make("label", {}, "Colours: ", this.theme)),
    );
  }

  buildHelp() {
    const rows = KEYS.map(([key, what]) => make("tr", {}, make("th", { scope: "row" }, key), make("td", {}, what)));
    return this.dialog(
      "Keys", make("table", { class: "pt-table" }, make("tbody", {}, ...rows)),
      make("p", { class: "pt-note" },
        "By hand: click a card and then its partner, or drag one onto the other. A click on a king takes it, a click on the stock draws. "
        + "Where the stock's top card plays, choose the other card first, or drag."),
    );
  }

  // ---- listening ---------------------------------------------------------------------------------------------------

  listen() {
    const on = (target, type, handler, options) => {
      target.addEventListener(type, handler, options);
      this.stoppers.push(() => target.removeEventListener(type, handler, options));
    };
    on(this.board, "pointerdown", (event) => this.press(event));
    on(this.root, "pointerdown", (event) => { // beside the cards: the keys stay the table's
      if (!event.target.closest("button, input, select, label, a, dialog, [data-spot]")) { event.preventDefault(); this.focusBoard(); }
    });
    on(this.board, "pointermove", (event) => this.move(event));
    on(this.board, "pointerup", (event) => this.release(event));
    on(this.board, "pointercancel", () => this.endDrag());
    on(this.board, "touchstart", (event) => { // a finger on a card drags the card, not the page
      const group = event.target.closest?.("[data-spot]");
      if (group?.dataset.card && this.choosable().includes(group)) event.preventDefault();
    }, { passive: false });
    const wide = this.model.wholePage ? document : this.root; // keys need no focus where nothing else is on the page
    on(wide, "keydown", (event) => this.key(event));
    // JupyterLab reads keys before the table does; this attribute, on the very element, tells it which are not its own.
    on(window, "keydown", (event) => {
      if (!this.root.contains(event.target)) return;
      const ours = !(event.ctrlKey || event.metaKey) || ["z", "y"].includes(event.key.toLowerCase());
      event.target.toggleAttribute("data-lm-suppress-shortcuts", ours);
    }, { capture: true });
    for (const type of ["pointermove", "pointerdown", "keydown"]) on(wide, type, () => { this.lastTouch = Date.now(); }, { passive: true });
    const changed = () => this.show(this.model.get("state"));
    this.model.on("change:state", changed);
    this.stoppers.push(() => this.model.off("change:state", changed));
    const ticking = setInterval(() => this.tick(), 250);
    this.stoppers.push(() => clearInterval(ticking));
  }

  close() {
    this.stopPlaying();
    for (const stop of this.stoppers) stop();
  }

  send(event) {
    this.waiting += 1;
    const sent = this.waiting;
    setTimeout(() => { if (this.waiting >= sent && this.waiting) this.root.classList.add("pt-waiting"); }, 250);
    if (event.type === "outlook" || event.solver) {
      setTimeout(() => {
        if (this.waiting >= sent && this.waiting) this.message.textContent = "The solver thinks; the very first time it is compiled, about a minute";
      }, 700);
    }
    this.model.send(event);
  }

  tick() {
    const state = this.state;
    if (!state) return;
    if (state.running && this.time) this.time.textContent = clockWords(state.elapsed_s + (Date.now() - this.shownAt) / 1000);
    if (!state.running || state.paused) return;
    if (state.preferences.auto_pause && Date.now() - this.lastTouch > IDLE_MS) {
      this.lastTouch = Date.now() - IDLE_MS + 2_000; // ask again: Python knows whether somebody plays elsewhere
      this.model.send({ type: "idle" });
    } else if (Date.now() - this.lastAwake > AWAKE_MS && Date.now() - this.lastTouch < AWAKE_MS) {
      this.lastAwake = Date.now();
      this.model.send({ type: "awake" });
    }
  }

  // ---- showing -----------------------------------------------------------------------------------------------------

  show(state) {
    if (!state || state.version === undefined) return;
    const before = this.state;
    this.state = state;
    this.shownAt = Date.now();
    this.lastAwake = Date.now();
    this.waiting = 0;
    this.played = null; // the spot whose card was just sent for
    this.root.classList.remove("pt-waiting");
    this.root.dataset.theme = state.preferences.theme;
    this.root.dataset.version = state.version;
    this.root.classList.toggle("pt-over", state.over);
    this.root.classList.toggle("pt-paused", state.paused);
    this.showBar(state);
    this.showStatus(state);
    this.showBoard(state, before);
    this.veil.hidden = !state.paused;
    this.message.textContent = state.message.text;
    this.message.dataset.kind = state.message.kind;
    this.showStatistics(state);
    this.showWatch(state);
  }

  isFavourite() {
    return this.state.presets.some((each) => each.rules === this.state.rules && each.favourite);
  }

  showBar(state) {
    const text = JSON.stringify(state.presets);
    if (text !== this.presetsText) {
      this.presetsText = text;
      this.presets.replaceChildren(...state.presets.map((each) =>
        make("option", { value: each.rules }, `${each.favourite ? "★ " : ""}${each.title}`)));
    }
    this.presets.value = state.rules;
    const star = this.buttons.star;
    star.setAttribute("aria-pressed", String(this.isFavourite()));
    const playing = !state.paused && !state.over;
    const able = {
      draw: playing && state.draw, undo: state.can_undo, redo: state.can_redo, restart: !state.paused && (state.can_undo || state.can_redo), hint: playing, best: playing,
      outlook: playing, pause: !state.over,
    };
    const had = this.scope.activeElement;
    for (const [name, on] of Object.entries(able)) this.buttons[name].disabled = !on;
    const drawing = state.draw === "recycle" ? "Turn the waste over" : "Draw";
    this.buttons.draw.setAttribute("aria-label", drawing);
    this.buttons.draw.title = drawing;
    if (had && had.disabled && this.root.contains(had)) this.board.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
    const word = state.paused ? "Go on" : "Pause";
    this.buttons.pause.setAttribute("aria-label", word);
    this.buttons.pause.title = word;
    this.buttons.pause.querySelector(".pt-word").textContent = word;
    this.buttons.pause.querySelector("path").setAttribute("d", ICONS[state.paused ? "resume" : "pause"]);
    for (const [name, box] of Object.entries(this.checks)) box.checked = state.preferences[name];
    this.theme.value = state.preferences.theme;
  }

  showStatus(state) {
    this.time = make("span", { class: "pt-time", "data-shows": "time", role: "timer", "aria-label": "Time" }, clockWords(state.elapsed_s));
    const part = (name, text) => make("span", { "data-shows": name }, text);
    const deal = state.deal === null ? "own cards" : `deal ${state.deal}`;
    const copy = this.copyButton;
    copy.setAttribute("aria-label", `Copy: ${deal}`);
    copy.firstChild.data = deal;
    const match = state.match;
    this.time.hidden = Boolean(state.watch);
    const parts = [
      copy, this.time, part("moves", `${state.made} ${state.made === 1 ? "move" : "moves"}`),
      state.score_word ? part("score", `${state.score_word} ${number(state.score, 0)}`) : null,
      part("pass", state.pass_text), part("left", `${state.cards_left} left`),
      match ? part("match", this.matchWords(match)) : null,
      state.keeps || state.watch ? null : part("keeps", "not saved"),
    ];
    while (copy.nextSibling) copy.nextSibling.remove(); // the button stays, and so does its focus
    this.status.append(...parts.slice(1).filter(Boolean));
  }

  matchWords(match) {
    const total = number(match.total, 0);
    if (match.complete) return `match ${match.number}: ${total}, ${match.par ? "par or better" : "below par"}`;
    return `match ${match.number}: game ${match.game} of ${match.games}, total ${total}`;
  }

  async copyDeal(button) {
    const state = this.state;
    const cards = state.deal === null ? state.deal_text : `deal ${state.deal}`;
    try {
      await navigator.clipboard.writeText(`Pyramid solitaire, ${state.rules}, ${cards}`);
      button.classList.add("pt-done");
      setTimeout(() => button.classList.remove("pt-done"), 1200);
    } catch {
      this.message.textContent = `To share: ${state.rules}, ${cards}`;
    }
  }

  showBoard(state, before) {
    if (before && before.svg === state.svg) return;
    const focused = this.scope.activeElement?.closest?.("[data-spot]");
    const focusedSpot = focused && this.board.contains(focused) ? focused.dataset.spot : null;
    const old = this.spots();
    const bounds = old.size ? this.board.querySelector("svg").getAttribute("viewBox") : null;
    this.endDrag();
    this.board.innerHTML = state.svg;
    const svg = this.board.querySelector("svg");
    if (!svg) { this.chosen = null; return; }
    const now = this.spots();
    if (this.chosen && now.get(this.chosen.spot)?.dataset.card !== this.chosen.card) this.chosen = null;
    if (this.chosen) now.get(this.chosen.spot).classList.add("pyr-selected");
    this.markReachable();
    if (focusedSpot !== null) this.focusNear(focusedSpot, old);
    else this.setTabStop(this.choosable()[0]);
    if (before && before.deal === state.deal && before.rules === state.rules && bounds === svg.getAttribute("viewBox")) this.animate(svg, old, now);
  }

  /** Cards that left fade away; a card that was drawn comes from the stock. */
  animate(svg, old, now) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const gone = [...old].filter(([spot, group]) => group.dataset.card && !/^waste|^stock/.test(spot) && !now.get(spot)?.dataset.card);
    for (const [, group] of gone) {
      const ghost = this.ghost(svg, group, "pyr-leaving");
      ghost.addEventListener("animationend", () => ghost.remove());
    }
    const stock = now.get("stock");
    if (!stock || gone.length) return;
    for (const [spot, group] of now) {
      if (!/^waste\d+$/.test(spot) || !group.dataset.card || old.get(spot)?.dataset.card === group.dataset.card) continue;
      const from = this.place(stock), to = this.place(group), ghost = this.ghost(svg, group, "pyr-flying");
      group.classList.add("pyr-arriving"); // it lies there already, and can be clicked
      const flight = ghost.animate(
        [{ transform: `translate(${from.x}px, ${from.y}px)` }, { transform: `translate(${to.x}px, ${to.y}px)` }],
        { duration: 160, easing: "ease-out" },
      );
      flight.finished.catch(() => {}).then(() => { ghost.remove(); group.classList.remove("pyr-arriving"); });
    }
  }

  /** A likeness of a card that no pointer and no reader meets. */
  ghost(svg, group, name) {
    const ghost = group.cloneNode(true);
    for (const attribute of ["data-spot", "tabindex", "role", "aria-label"]) ghost.removeAttribute(attribute);
    ghost.setAttribute("aria-hidden", "true");
    ghost.classList.add(name);
    svg.append(ghost);
    return ghost;
  }

  spots() {
    return new Map([...this.board.querySelectorAll("[data-spot]")].map((group) => [group.dataset.spot, group]));
  }

  place(group) {
    const matrix = group.transform.baseVal.consolidate()?.matrix;
    return { x: matrix ? matrix.e : 0, y: matrix ? matrix.f : 0 };
  }

  centre(group) {
    const { x, y } = this.place(group), box = group.getBBox();
    return { x: x + box.x + box.width / 2, y: y + box.y + box.height / 2 };
  }

  // ---- choosing ----------------------------------------------------------------------------------------------------

  moveOf(...spots) {
    const wanted = [...spots].sort().join();
    return this.state.moves.find((move) => [...move.spots].sort().join() === wanted && (spots.length > 1 || !move.draw));
  }

  partners(spot) {
    return this.state.moves.filter((move) => move.spots.length === 2 && move.spots.includes(spot))
      .map((move) => move.spots.find((other) => other !== spot));
  }

  /** Groups that a person may go to: open cards, cards of a legal move, and the stock. */
  choosable() {
    const inMoves = new Set(this.state.moves.flatMap((move) => move.spots));
    return [...this.spots()].filter(([spot, group]) =>
      inMoves.has(spot) || group.classList.contains("pyr-exposed") || spot === "stock").map(([, group]) => group);
  }

  activate(spot) {
    const group = this.spots().get(spot);
    if (!group || this.state.paused) return;
    if (this.played === spot) return; // the second half of a double click: what lay there is on its way
    const chosen = this.chosen;
    if (chosen && chosen.spot === spot) return this.choose(null);
    if (chosen && this.moveOf(chosen.spot, spot)) return this.play([chosen.spot, spot]);
    if (this.moveOf(spot)) return this.play([spot]);
    if (spot === "stock") return this.state.draw ? this.draw() : this.explain(["draw"], []);
    if (!group.dataset.card) return;
    const open = this.choosable().includes(group);
    if (chosen) this.explain([chosen.spot, spot], [chosen.card, group.dataset.card]);
    else if (!open) this.explain([spot], [group.dataset.card]);
    this.choose(open ? spot : null);
  }

  choose(spot) {
    for (const group of this.board.querySelectorAll(".pyr-selected")) group.classList.remove("pyr-selected");
    const group = spot === null ? null : this.spots().get(spot);
    this.chosen = group ? { spot, card: group.dataset.card } : null;
    group?.classList.add("pyr-selected");
    this.markReachable();
  }

  /** Partners of the chosen card. */
  markReachable() {
    const reach = new Set(this.chosen ? this.partners(this.chosen.spot) : []);
    for (const [spot, group] of this.spots()) group.classList.toggle("pyr-partner", reach.has(spot));
  }

  play(spots) {
    const groups = this.spots();
    const cards = spots.map((spot) => groups.get(spot)?.dataset.card ?? "");
    this.chosen = null;
    this.played = spots.at(-1);
    this.send({ type: "play", spots, cards });
  }

  /** A play that is not legal: Python says why. */
  explain(spots, cards) {
    this.send({ type: "play", spots, cards });
  }

  draw() {
    this.chosen = null;
    this.send({ type: "play", spots: ["draw"], cards: [] });
  }

  // ---- pointer -----------------------------------------------------------------------------------------------------

  point(event) {
    const svg = this.board.querySelector("svg");
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: at.x, y: at.y };
  }

  press(event) {
    if (event.button || this.drag) return;
    const group = event.target.closest?.("[data-spot]");
    if (!group || !this.board.contains(group)) { this.choose(null); return; }
    const spot = group.dataset.spot;
    this.drag = { spot, group, from: { x: event.clientX, y: event.clientY }, start: this.point(event), id: event.pointerId, ghost: null, target: null, away: 0 };
    try { this.board.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ }
    if (group.dataset.card) event.preventDefault();
    if (!this.choosable().includes(group)) return;
    this.setTabStop(group);
    group.focus({ preventScroll: true });
  }

  move(event) {
    const drag = this.drag;
    if (!drag || event.pointerId !== drag.id) return;
    if (!drag.ghost) {
      const far = Math.hypot(event.clientX - drag.from.x, event.clientY - drag.from.y);
      if (far < DRAG_FROM || !this.choosable().includes(drag.group) || !drag.group.dataset.card) return;
      this.lift(drag);
    }
    const at = this.point(event), home = this.place(drag.group);
    const here = { x: home.x + at.x - drag.start.x, y: home.y + at.y - drag.start.y };
    const middle = { x: drag.centre.x + here.x - home.x, y: drag.centre.y + here.y - home.y };
    let nearest = null;
    const fromHome = Math.hypot(here.x - home.x, here.y - home.y);
    drag.away = fromHome / drag.width;
    for (const target of drag.targets) { // one that is nearer than the card's own place
      const distance = Math.hypot(target.centre.x - middle.x, target.centre.y - middle.y);
      if (distance < Math.min(REACH * drag.width, fromHome) && (!nearest || distance < nearest.distance)) nearest = { ...target, distance };
    }
    if (drag.target && drag.target !== nearest?.group) drag.target.classList.remove("pyr-target");
    drag.target = nearest?.group ?? null;
    drag.target?.classList.add("pyr-target");
    const pull = nearest ? 0.55 : 0;
    const x = here.x + pull * ((nearest?.centre.x ?? 0) - middle.x), y = here.y + pull * ((nearest?.centre.y ?? 0) - middle.y);
    drag.ghost.setAttribute("transform", `translate(${x.toFixed(3)} ${y.toFixed(3)})`);
  }

  lift(drag) {
    const svg = this.board.querySelector("svg"), groups = this.spots();
    drag.ghost = this.ghost(svg, drag.group, "pyr-dragged");
    drag.group.classList.add("pyr-lifted");
    drag.centre = this.centre(drag.group);
    drag.width = drag.group.getBBox().width;
    drag.targets = this.partners(drag.spot).map((spot) => groups.get(spot)).filter(Boolean)
      .map((group) => ({ group, centre: this.centre(group) }));
    for (const { group } of drag.targets) group.classList.add("pyr-partner");
    this.root.classList.add("pt-dragging");
  }

  release(event) {
    const drag = this.drag;
    if (!drag || event.pointerId !== drag.id) return;
    const { spot, target, ghost, away } = drag;
    this.endDrag();
    const under = this.scope.elementsFromPoint(event.clientX, event.clientY).map((each) => each.closest?.("[data-spot]"))
      .filter((each) => each && this.board.contains(each));
    if (!ghost) return under.includes(drag.group) ? this.activate(spot) : undefined;
    if (target) return this.play([spot, target.dataset.spot]);
    const other = under.find((each) => each.dataset.spot !== spot && each.dataset.card);
    if (away < HOME) return; // put back
    if (this.moveOf(spot)) return this.play([spot]); // a king, dragged off
    if (other) {
      const groups = this.spots();
      this.explain([spot, other.dataset.spot], [groups.get(spot)?.dataset.card ?? "", other.dataset.card]);
    }
  }

  endDrag() {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    drag.ghost?.remove();
    drag.group.classList.remove("pyr-lifted");
    drag.target?.classList.remove("pyr-target");
    this.root.classList.remove("pt-dragging");
    if (this.board.querySelector("svg")) this.markReachable();
  }

  // ---- keyboard ----------------------------------------------------------------------------------------------------

  key(event) {
    if (event.target.closest("dialog, input, select, textarea")) return;
    const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey) {
      const undo = letter === "z" && !event.shiftKey, redo = letter === "y" || (letter === "z" && event.shiftKey);
      if (!undo && !redo) return;
      event.preventDefault();
      event.stopPropagation();
      return this.buttons[undo ? "undo" : "redo"].click();
    }
    if (event.altKey) return;
    const onCard = event.target.closest?.("[data-spot]");
    const actions = {
      d: () => (this.state.draw && !this.state.paused ? this.draw() : this.explain(["draw"], [])), u: () => this.buttons.undo.click(), r: () => this.buttons.redo.click(),
      h: () => this.buttons.hint.click(), b: () => this.buttons.best.click(), w: () => this.buttons.outlook.click(),
      n: () => this.openNew(), p: () => this.buttons.pause.click(), s: () => this.openStatistics(), f: () => this.fullScreen(),
      "?": () => this.open(this.help), Escape: () => { this.endDrag(); this.choose(null); },
    };
    if (onCard && ["Enter", " "].includes(event.key)) actions[letter] = () => this.activate(onCard.dataset.spot);
    if (event.key.startsWith("Arrow") && !event.target.closest("button")) {
      actions[letter] = () => (onCard ? this.walk(onCard, event.key) : this.focusBoard());
    }
    if (!actions[letter]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[letter]();
  }

  /** To the nearest card in a direction. */
  walk(from, key) {
    const axis = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    const here = this.centre(from);
    let best = null;
    for (const group of this.choosable()) {
      const there = this.centre(group), dx = there.x - here.x, dy = there.y - here.y;
      const along = dx * axis[0] + dy * axis[1], aside = Math.abs(dx * axis[1]) + Math.abs(dy * axis[0]);
      if (along > 0.05 && (!best || along + 2 * aside < best.cost)) best = { group, cost: along + 2 * aside };
    }
    if (best) { this.setTabStop(best.group); best.group.focus({ preventScroll: true }); }
  }

  focusBoard() {
    (this.board.querySelector("[tabindex='0']") ?? this.root).focus({ preventScroll: true });
  }

  setTabStop(group) {
    for (const each of this.board.querySelectorAll("[data-spot][tabindex='0']")) each.setAttribute("tabindex", "-1");
    group?.setAttribute("tabindex", "0");
  }

  /** Keep the focus where it was, or on the card that is nearest to where it was. */
  focusNear(spot, old) {
    const groups = this.choosable();
    let next = groups.find((group) => group.dataset.spot === spot);
    const was = old.get(spot);
    if (!next && was && groups.length) {
      const { x, y } = this.place(was);
      const distance = (group) => { const at = this.place(group); return Math.hypot(at.x - x, at.y - y); };
      next = groups.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    }
    this.setTabStop(next);
    next?.focus({ preventScroll: true });
  }

  // ---- dialogs and the rest ----------------------------------------------------------------------------------------

  open(dialog) {
    if (!dialog.open) dialog.showModal();
  }

  openNew() {
    this.numberField.value = this.rulesField.value = "";
    this.open(this.newDialog);
  }

  openStatistics() {
    this.send({ type: "statistics" });
    this.open(this.statisticsDialog);
  }

  showStatistics(state) {
    const text = JSON.stringify(state.statistics);
    if (text === this.statisticsText) return;
    this.statisticsText = text;
    const holder = this.statisticsDialog.querySelector(".pt-scroll");
    if (!state.statistics.length) {
      holder.replaceChildren(make("p", {}, state.keeps ? "No game is finished yet." : "Nothing is kept."));
      return;
    }
    const heads = ["", "played", "won", "share", "best time", "streak", "longest", "average par"];
    const rows = state.statistics.map((each) => make(
      "tr", { "data-rules": each.rules, class: each.rules === state.rules ? "pt-now" : "" },
      make("th", { scope: "row" }, each.title),
      ...[
        ["played", each.played], ["won", each.helped ? `${each.won} (${each.helped} with help)` : each.won], ["share", percent(each.share)],
        ["best", each.best_time ?? "–"], ["streak", each.current_streak], ["longest", each.longest_streak],
        ["par", each.average_msc == null ? number(each.average_par) : `${number(each.average_par)} (${number(each.average_msc, 0)} points)`],
      ].map(([name, value], at) => make("td", { "data-shows": name, "data-label": heads[at + 1] }, String(value))),
    ));
    holder.replaceChildren(make(
      "table", { class: "pt-table" },
      make("thead", {}, make("tr", {}, ...heads.map((head) => (head ? make("th", { scope: "col" }, head) : make("td"))))),
      make("tbody", {}, ...rows),
    ));
  }

  fullScreen() {
    if (this.scope.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.().catch(() => { this.message.textContent = "This page can't fill the screen."; });
  }

  // ---- an agent's game ---------------------------------------------------------------------------------------------

  showWatch(state) {
    const watch = state.watch;
    this.watch.hidden = !watch;
    if (!watch) return;
    if (!this.watchParts) this.buildWatch();
    const parts = this.watchParts;
    parts.title.textContent = `Agent: ${watch.agent}`;
    parts.slider.max = watch.length;
    parts.slider.value = watch.at;
    parts.slider.setAttribute("aria-valuetext", `move ${watch.at} of ${watch.length}`);
    parts.where.textContent = `move ${watch.at} of ${watch.length}`;
    parts.takeover.textContent = watch.by_hand ? "Hand back to the agent" : "Take over";
    parts.takeover.setAttribute("aria-pressed", String(watch.by_hand));
    parts.takeover.disabled = state.paused;
    for (const name of ["first", "back"]) parts[name].disabled = state.paused || watch.at === 0;
    for (const name of ["next", "last"]) parts[name].disabled = state.paused || watch.at >= watch.length;
    parts.run.disabled = state.paused || watch.at >= watch.length || watch.by_hand;
    parts.slider.disabled = state.paused;
    if (parts.run.disabled) this.stopPlaying();
    parts.value.textContent = [
      watch.value == null ? "" : `it expects ${number(watch.value, 2)}`, watch.outlook ?? "",
    ].filter(Boolean).join(" · ");
    const most = Math.max(...watch.moves.map((move) => move.agent ?? 0), 1e-9);
    const whole = watch.says === "probability" ? 1 : most;
    const head = make("tr", {}, ...["move", watch.says ?? "agent", "solver"].map((text) => make("th", { scope: "col" }, text)));
    const rows = watch.moves.map((move) => make(
      "tr", { class: [move.made ? "pt-made" : "", move.best ? "pt-best" : ""].join(" ") },
      make("th", { scope: "row" }, make("button", {
        type: "button", class: "pt-move", "aria-label": `${move.text}: show it`,
        onclick: () => this.flash(move.spots),
      }, move.text), move.made ? make("span", { class: "pt-tag" }, watch.by_hand ? "next" : "plays") : null),
      make("td", {}, move.agent == null ? "–" : make("span", { class: "pt-share" },
        make("span", { class: "pt-fill", style: `width:${Math.max(0, Math.min(1, move.agent / whole)) * 100}%` }),
        make("span", {}, watch.says === "probability" ? percent(move.agent) : number(move.agent, 2)))),
      make("td", { class: "pt-solver" }, `${move.solver ?? "?"}${move.best ? " ✓" : ""}`),
    ));
    parts.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }

  buildWatch() {
    const step = (name, label, action) => make("button", { type: "button", class: "pt-button", "data-control": `watch-${name}`, "aria-label": label, title: label, onclick: action }, icon(name));
    const to = (where) => () => { this.stopPlaying(); this.send({ type: "watch", to: where() }); };
    const parts = this.watchParts = {
      title: make("h2"), where: make("span", { class: "pt-where" }), value: make("p", { class: "pt-note", "data-shows": "value" }),
      table: make("table", { class: "pt-table pt-ratings" }),
      first: step("first", "To the start", to(() => 0)), back: step("back", "One move back", to(() => this.state.watch.at - 1)),
      next: step("next", "One move on", to(() => this.state.watch.at + 1)), last: step("last", "To the end", to(() => this.state.watch.length)),
      run: make("button", { type: "button", class: "pt-button", "data-control": "watch-run", "aria-label": "Play", title: "Play", onclick: () => this.togglePlaying() }, icon("resume")),
      slider: make("input", { type: "range", min: 0, "data-control": "watch-slider", "aria-label": "Move", oninput: () => { this.stopPlaying(); this.send({ type: "watch", to: Number(parts.slider.value) }); } }),
      speed: make("select", { "data-control": "watch-speed", "aria-label": "Speed", onchange: () => { if (this.playing) { this.stopPlaying(); this.togglePlaying(); } } },
        ...[["2000", "slow"], ["900", "normal"], ["350", "fast"], ["100", "very fast"]].map(([value, text]) => make("option", { value, selected: value === "900" }, text))),
      takeover: make("button", { type: "button", class: "pt-plain", "data-control": "watch-takeover", "aria-pressed": "false",
        onclick: () => { this.stopPlaying(); this.send({ type: "takeover", on: !this.state.watch.by_hand }); } }),
    };
    this.watch.replaceChildren(
      parts.title, make("div", { class: "pt-line" }, parts.first, parts.back, parts.run, parts.next, parts.last, parts.speed),
      make("div", { class: "pt-line" }, parts.slider, parts.where), make("div", { class: "pt-line" }, parts.takeover),
      parts.value, make("div", { class: "pt-scroll" }, parts.table),
    );
  }

  togglePlaying() {
    if (this.playing) return this.stopPlaying();
    this.setRun(true);
    const advance = () => {
      const watch = this.state.watch;
      if (!watch || watch.at >= watch.length || this.state.paused) return this.stopPlaying();
      if (!this.waiting) this.send({ type: "watch", to: watch.at + 1 });
    };
    this.playing = setInterval(advance, Number(this.watchParts.speed.value));
    advance();
  }

  stopPlaying() {
    if (this.playing) clearInterval(this.playing);
    this.playing = null;
    if (this.watchParts) this.setRun(false);
  }

  setRun(on) {
    const run = this.watchParts.run;
    run.setAttribute("aria-label", on ? "Stop" : "Play");
    run.title = on ? "Stop" : "Play";
    run.querySelector("path").setAttribute("d", ICONS[on ? "pause" : "resume"]);
  }

  flash(spots) {
    const groups = this.spots();
    for (const group of groups.values()) group.classList.toggle("pyr-hinted", spots.includes(group.dataset.spot));
  }
}

function render({ model, el }) {
  const view = new TableView(model, el);
  return () => view.close();
}

export default { render };
