// The page on localhost: a model as anywidget has it, whose events go to the server; the answer is the next state.
import table from "./table.js";

class Model {
  constructor(state) {
    this.state = state;
    this.wholePage = true;
    this.handlers = new Set();
    this.last = Promise.resolve();
  }

  get(name) { return name === "state" ? this.state : undefined; }
  on(_, handler) { this.handlers.add(handler); }
  off(_, handler) { this.handlers.delete(handler); }

  /** Events go one after the other, in the order in which they were made. */
  send(event) {
    this.last = this.last.then(() => this.ask("event", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(event) }));
  }

  async ask(where, options = {}) {
    try {
      const answer = await fetch(where, options);
      if (!answer.ok) throw new Error(await answer.text());
      const state = await answer.json();
      if (state.version < this.state.version && where === "state") return;
      this.take(state);
    } catch (error) {
      const lost = error instanceof TypeError;
      const text = lost ? "The table's program does not answer. Start it again: python -m pyramid_env play" : String(error.message).trim();
      this.take({ ...this.state, running: false, message: { text, kind: "error" } });
    }
  }

  take(state) {
    this.state = state;
    for (const handler of this.handlers) handler();
  }
}

const first = await (await fetch("state")).json();
const model = new Model(first);
table.render({ model, el: document.getElementById("table") });
document.addEventListener("visibilitychange", () => { if (!document.hidden) model.ask("state"); });
