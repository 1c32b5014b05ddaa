"use strict";
// Draws the lists and charts of a result page from the payload. Values of tables become text nodes
// and attributes, never markup.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = {
    invented: "invented", missed: "missed", place: "wrong place", severity: "wrong severity",
    comparison: "comparison",
  };
  const LEGEND = {
    ...KINDS, agreed: "agreed", supported: "supported by the image", contradicted: "contradicted by the image", positive: "positive", denied: "denied", uncertain: "uncertain",
    removed: "removed", added: "added",
  };
  const BINS = 24;
  const PRINTED = 60;

  const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isNumber = (value) => typeof value === "number";
  function shown(value) {
    if (value === null || value === undefined) return "–";
    if (!isNumber(value)) return String(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
    const size = Math.abs(value);
    if (size < 0.0005) return value.toExponential(1);
    return size >= 10000 ? value.toPrecision(4) : value.toFixed(size < 10 ? 3 : 1);
  }
  const arrow = (better) => (better > 0 ? " ↑" : better < 0 ? " ↓" : "");
  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) if (isNumber(value)) { if (value < low) low = value; if (value > high) high = value; }
    if (low > high) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }
  const mean = (values) => { const own = values.filter(isNumber); return own.length ? own.reduce((a, b) => a + b, 0) / own.length : null; };

  // -- texts and one case ----------------------------------------------------------------------

  function textOf(pieces) { return pieces.map((piece) => (typeof piece === "string" ? piece : piece[0])).join(""); }

  function markedText(pieces, light) {
    const paragraph = el("p");
    for (const piece of pieces) {
      if (typeof piece === "string") { paragraph.append(piece); continue; }
      const [text, kinds, numbers] = piece;
      const words = kinds.split(" ").map((kind) => LEGEND[kind] || kind).join(", ");
      const span = el("span", { class: `mark ${kinds}`, title: words, "data-errors": numbers.join(" ") }, text);
      if (numbers.length) span.append(el("sup", {}, numbers.join(",")));
      span.addEventListener("pointerenter", () => light(numbers, true));
      span.addEventListener("pointerleave", () => light(numbers, false));
      paragraph.append(span);
    }
    if (!pieces.length) paragraph.append(el("em", {}, "(empty)"));
    return paragraph;
  }

  function drawBlock(block) {
    const node = el("div", { class: "block" });
    if (block.title) node.append(el("h4", {}, block.title));
    const light = (numbers, on) => {
      for (const each of node.querySelectorAll("[data-errors]")) {
        const own = each.dataset.errors.split(" ");
        each.classList.toggle("lit", on && numbers.some((number) => own.includes(String(number))));
      }
    };
    const kinds = new Set();
    for (const [, pieces] of block.texts) for (const piece of pieces) if (typeof piece !== "string") piece[1].split(" ").forEach((kind) => kinds.add(kind));
    if (kinds.size) {
      node.append(el("div", { class: "legend" }, ...Object.keys(LEGEND).filter((kind) => kinds.has(kind)).map(
        (kind) => el("span", {}, el("span", { class: `mark ${kind}` }, LEGEND[kind])))));
    }
    const texts = el("div", { class: "texts" });
    for (const [role, pieces] of block.texts) texts.append(el("div", { class: "text" }, el("h4", {}, role), markedText(pieces, light)));
    node.append(texts);
    if (block.claims) node.append(drawClaims(block.claims));
    if (block.errors) {
      const list = el("ol", { class: "errors" });
      block.errors.forEach(({ kind, severity, finding, reason, correction }, index) => {
        const item = el("li", {}, el("b", {}, String(index + 1)),
          el("span", { class: `tag ${kind}` }, KINDS[kind]),
          el("span", {}, el("b", {}, finding), " ", el("span", { class: "sev" }, `severity ${severity} of 5`), " ", el("em", {}, reason)));
        if (correction) item.append(el("span", { class: "fix" }, `→ ${correction}`));
        item.addEventListener("pointerenter", () => light([index + 1], true));
        item.addEventListener("pointerleave", () => light([index + 1], false));
        list.append(item);
      });
      node.append(list);
    }
    if (block.shares) node.append(drawShares(block.shares));
    if (block.maps) node.append(drawMaps(block.maps));
    return node;
  }

  function drawClaims(claims) {
    // Runs of earlier versions have verdicts against their own probability: no colour for these.
    const tone = (verdict, probability) => (verdict === "cannot tell" || (verdict === "supported") !== (probability > 0.5) ? "cannot-tell" : verdict);
    const rows = claims.map(({ report, finding, claim, verdict, probability }) => el("tr", {},
      el("td", { class: "words" }, `${report} ${claim === "stated" ? "states" : "denies"} `, el("b", {}, finding)),
      el("td", {}, el("span", { class: `tag ${tone(verdict, probability)}` }, verdict)),
      el("td", {}, probability === null ? "no evidence" : probability.toFixed(2))));
    const head = el("tr", {}, ...["claim", "image", "probability"].map((name) => el("th", { scope: "col" }, name)));
    const note = "Probability: that the claim is true, where findings are as frequent as in the calibration images.";
    return el("div", {}, el("h4", {}, "Claims: what the image says"), el("table", { class: "claims" }, el("thead", {}, head), el("tbody", {}, ...rows)), el("p", { class: "caption" }, note));
  }

  function drawShares(shares) {
    const all = [...shares.candidate, ...shares.reference].map((each) => Math.abs(each.share));
    const most = Math.max(...all, 1e-9);
    const table = el("div", { class: "shares" });
    for (const [side, note] of [["candidate", "what each sentence costs (below 0: it helps)"], ["reference", "what its absence costs"]]) {
      table.append(el("h5", {}, `${side}: ${note}`));
      for (const each of shares[side]) {
        const width = (45 * Math.abs(each.share)) / most;
        table.append(
          el("span", { class: "number" }, (each.share < 0 ? "−" : "+") + Math.abs(each.share).toFixed(3)),
          el("span", { class: "track", title: each.share > 0 ? "costs" : "helps" },
            el("i", { class: each.share > 0 ? "cost" : "gain", style: each.share > 0 ? { right: "50%", width: `${width}%` } : { left: "50%", width: `${width}%` } })),
          el("span", {}, each.text));
      }
    }
    const how = "By deletion: how much better the score is without the candidate's sentence, or with the reference's sentence added.";
    return el("div", {}, el("h4", {}, `${shares.metric} ${shown(shares.score)}: share of each sentence`), table, el("p", { class: "caption" }, how));
  }

  // The image as the encoder reads it, below the places that a sentence looks at.
  function drawMaps(maps) {
    const picture = el("div", { class: "map" }), note = el("p", { class: "caption", role: "status" });
    const show = (map) => {
      const side = Math.sqrt(map.places.length), grid = svg("svg", { viewBox: `0 0 ${side} ${side}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      map.places.forEach((value, place) => grid.append(svg("rect", { x: place % side, y: Math.floor(place / side), width: 1, height: 1, "fill-opacity": (0.65 * value ** 2).toFixed(3) })));
      picture.replaceChildren(el("img", { src: maps.image, alt: "The image as the encoder reads it" }), grid);
      const good = map.beaten >= 0.9 * map.copies;
      note.textContent = map.note || `Check: blurring the marked places lowers the agreement of image and sentence more than ${map.beaten} of ${map.copies} copies of the map at other places do (a useless map: half). ${good ? "This map passes." : "Do not trust this map."}`;
    };
    const first = maps.sentences.reduce((best, map, index) => (map.beaten > maps.sentences[best].beaten ? index : best), 0);
    const choices = maps.sentences.map((map, index) => el("label", {}, el("input", { type: "radio", name: "map", checked: index === first, onchange: () => show(map) }), ` ${map.text} `, map.note ? "" : el("span", { class: "sev" }, `${map.beaten} of ${map.copies}`)));
    if (maps.sentences.length) show(maps.sentences[first]);
    return el("div", {}, el("h4", {}, maps.sentences.some((map) => map.note) ? "Where the evidence of each finding lies" : "Where each sentence looks"), el("div", { class: "pictures" }, el("figure", {}, picture, note), el("div", { class: "choices" }, ...choices)));
  }

  // Image and reference span the base; the candidate is above its foot.
  function drawTriangle({ foot, image_reference: base, image_candidate: side, area }) {
    const height = (2 * area) / base, at = foot * base;
    const left = Math.min(0, at), right = Math.max(base, at);
    const scale = Math.min(240 / (right - left || 1), 150 / (height || 1));
    const x = (value) => 44 + (value - left) * scale, floor = 24 + Math.max(height * scale, 18), y = (value) => floor - value * scale;
    const picture = svg("svg", { class: "triangle", viewBox: `0 0 330 ${floor + 40}`, role: "img" },
      svg("title", {}, `Triangle of image, reference and candidate: area ${shown(area)}, foot ${shown(foot)}`),
      svg("line", { class: "base", x1: x(left), x2: x(right), y1: floor, y2: floor }),
      svg("polygon", { points: `${x(0)},${floor} ${x(base)},${floor} ${x(at)},${y(height)}` }),
      svg("line", { class: "height", x1: x(at), x2: x(at), y1: floor, y2: y(height) }),
      svg("circle", { cx: x(0), cy: floor, r: 4 }), svg("circle", { cx: x(base), cy: floor, r: 4 }),
      svg("circle", { cx: x(at), cy: y(height), r: 4 }), svg("circle", { class: "foot", cx: x(at), cy: floor, r: 3 }));
    const label = (text, px, py, strong) => picture.append(svg("text", { x: px, y: py, "text-anchor": "middle", class: strong && "strong" }, text));
    label("image", x(0), floor + 16, true); label("reference", x(base), floor + 16, true);
    label("candidate", x(at), y(height) - 9, true); label(`foot ${shown(foot)}`, x(at), floor + 32);
    return el("figure", {}, picture, el("figcaption", {}, `Area ${shown(area)}: image to reference ${shown(base)}, image to candidate ${shown(side)}, height ${shown(height)}.`));
  }

  // -- charts of a run ----------------------------------------------------------------------------

  function drawForest(forest) {
    const known = forest.rows.flatMap((row) => row.slice(1)).filter(isNumber);
    let [low, high] = range(forest.zero ? [...known, 0] : known);
    const pad = (high - low) * 0.04; low -= pad; high += pad;
    const x = (value) => `${(100 * (value - low)) / (high - low)}%`;
    const values = forest.rows.map((row) => row[1]).filter(isNumber);
    const best = forest.better > 0 ? Math.max(...values) : forest.better < 0 ? Math.min(...values) : null;
    const table = el("div", { class: "forest" });
    for (const [name, value, from, to] of forest.rows) {
      const hollow = forest.hollow.includes(name);
      const chart = svg("svg", { "aria-hidden": "true" });
      if (forest.zero && low < 0 && high > 0) chart.append(svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: 18 }));
      if (isNumber(from) && isNumber(to)) chart.append(svg("line", { x1: x(from), x2: x(to), y1: 9, y2: 9 }));
      if (isNumber(value)) chart.append(svg("circle", { class: hollow && "hollow", cx: x(value), cy: 9, r: 4 }));
      const interval = isNumber(from) && isNumber(to) ? ` [${shown(from)}, ${shown(to)}]` : "";
      table.append(el("span", { class: value !== null && value === best && values.length > 1 ? "name best" : "name" }, name), chart, el("span", { class: "number" }, shown(value) + interval));
    }
    return el("div", { class: "panel" }, el("h3", {}, forest.title + arrow(forest.better), forest.note ? el("small", {}, ` ${forest.note}`) : null), table);
  }

  function drawCurves(curve) {
    // Python counts days from the year 1, and JavaScript from 1970.
    const named = (value) => (curve.dates ? new Date((value - 719163) * 864e5).toISOString().slice(0, 10) : shown(value));
    const width = 460, height = 230, left = 52, bottom = 28, top = 10;
    const [x0, x1] = range(curve.series.flatMap((each) => each[1])), [y0, y1] = range(curve.series.flatMap((each) => each[2]));
    const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - 10), y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - top);
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, svg("title", {}, curve.title),
      svg("line", { class: "axis", x1: left, x2: left, y1: top, y2: height - bottom }), svg("line", { class: "axis", x1: left, x2: width - 10, y1: height - bottom, y2: height - bottom }));
    for (const value of [y0, (y0 + y1) / 2, y1]) chart.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
    for (const value of [x0, x1]) chart.append(svg("text", { x: x(value), y: height - 10, "text-anchor": value === x0 ? "start" : "end" }, named(value)));
    chart.append(svg("text", { x: width / 2, y: height - 10, "text-anchor": "middle" }, curve.x));
    if (isNumber(curve.at)) chart.append(svg("line", { class: "best", x1: x(curve.at), x2: x(curve.at), y1: top, y2: height - bottom }), svg("text", x(curve.at) < width * .6 ? { x: x(curve.at) + 4, y: top + 10 } : { x: x(curve.at) - 4, y: top + 10, "text-anchor": "end" }, `${curve.mark}: ${named(curve.at)}`));
    const legend = el("div", { class: "legend" });
    curve.series.forEach(([name, xs, ys], index) => {
      const points = xs.map((value, k) => [value, ys[k]]).filter(([, value]) => isNumber(value));
      const style = `c${index % 6}`;
      chart.append(svg("path", { class: style, d: points.map(([a, b], k) => `${k ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("") }));
      legend.append(el("span", {}, svg("svg", { viewBox: "0 0 28 8" }, svg("path", { class: style, d: "M0,4L28,4", "stroke-width": 2 })), name));
    });
    return el("div", { class: "panel curve" }, el("h3", {}, curve.title), chart, legend);
  }

  // -- a list of cases with its filters, cards, bars and scatter -----------------------------------

  class CaseList {
    constructor(list, section, number) {
      Object.assign(this, { list, section, number });
      this.columns = list.columns; this.values = list.values; this.rows = list.rows;
      this.main = this.columns.filter((column) => column.card && column.main && !column.text);
      this.errors = this.errorsOfRows();
      this.filter = { words: "", kind: null, finding: null, picks: {}, ranges: {} };
      [this.sortName, this.descending] = list.sort;
      this.order = []; this.active = -1; this.opened = null; this.wide = false; this.searchable = null;
      this.worst = this.worstTenth();
      const names = this.values[this.columns[0].name];
      this.idWidth = Math.min(Math.max(...names.slice(0, 500).map((name) => String(name).length), 6) + 3, 30);
      this.makeCards(); this.makeWhy(); this.makeScatter(); this.makeList();
      this.apply();
    }
    part(name) { return this.section.querySelector(`[data-part="${name}"]`); }

    // Errors of all blocks of each row, each with the title of its block.
    errorsOfRows() {
      if (!this.list.cases) return null;
      let any = false;
      this.titled = this.list.cases.some((blocks) => blocks.length > 1);
      const found = this.list.cases.map((blocks) => blocks.flatMap((block) => (block.errors || []).map((error) => { any = true; return { ...error, title: block.title }; })));
      return any ? found : null;
    }
    // The value from which on a row belongs to the worst tenth of its column.
    worstTenth() {
      const found = {};
      for (const column of this.columns) {
        if (column.text || !column.better) continue;
        const own = this.values[column.name].filter(isNumber).sort((a, b) => (a - b) * column.better);
        if (own.length >= 10 && own[0] !== own[own.length - 1]) found[column.name] = own[Math.floor(own.length / 10)];
      }
      return found;
    }

    // -- filters
    accepts(row, except) {
      const { words, kind, finding, picks, ranges } = this.filter;
      for (const [name, [low, high]] of Object.entries(ranges)) {
        if (name === except) continue;
        const value = this.values[name][row];
        if (!isNumber(value) || value < low || value > high) return false;
      }
      for (const [name, value] of Object.entries(picks)) if (this.values[name][row] !== value) return false;
      if (kind || finding) {
        const own = this.errors ? this.errors[row] : [];
        if (!own.some((error) => (!kind || error.kind === kind) && (!finding || error.finding === finding))) return false;
      }
      return !words || this.matches(row, words);
    }
    matches(row, words) {
      if (this.parsed !== words) { this.parsed = words; this.terms = this.parse(words); }
      for (const [names, sign, limit] of this.terms.numbers) {
        const holds = (value) => isNumber(value) && ({ "<": value < limit, ">": value > limit, "<=": value <= limit, ">=": value >= limit, "=": value === limit })[sign];
        if (!names.some((name) => holds(this.values[name][row]))) return false;
      }
      if (!this.terms.words.length) return true;
      const text = this.textOfRow(row);
      return this.terms.words.every((word) => text.includes(word));
    }
    // Conditions on numbers, each over the columns of which one must meet it, and words. The name of a
    // group, such as a metric of several systems, stands for all of its columns.
    parse(words) {
      const numbers = [], columns = {};
      for (const column of this.columns) {
        if (column.text) continue;
        if (column.group) (columns[column.group] ||= []).push(column.name);
      }
      for (const column of this.columns) if (!column.text) columns[column.name] = [column.name];
      let rest = words;
      for (const name of Object.keys(columns).sort((a, b) => b.length - a.length)) {
        for (;;) {
          const at = rest.toLowerCase().indexOf(name.toLowerCase());
          const found = at < 0 ? null : /^\s*(<=|>=|<|>|=)\s*(-?\d*\.?\d+)/.exec(rest.slice(at + name.length));
          if (!found) break;
          numbers.push([columns[name], found[1], Number(found[2])]);
          rest = rest.slice(0, at) + " " + rest.slice(at + name.length + found[0].length);
        }
      }
      const unknown = /(\S+?)\s*(?:<=|>=|<|>|=)\s*-?\d*\.?\d+/.exec(rest);
      return { numbers, unknown: unknown && unknown[1], known: Object.keys(columns), words: rest.toLowerCase().split(/\s+/).filter(Boolean) };
    }
    textOfRow(row) {
      this.searchable ||= [];
      return (this.searchable[row] ||= [
        ...this.columns.filter((column) => column.text).map((column) => this.values[column.name][row] ?? ""),
        ...(this.list.cases ? this.list.cases[row].flatMap((block) => block.texts.map((text) => textOf(text[1]))) : []),
      ].join("\n").toLowerCase());
    }

    apply() {
      const begin = performance.now(), rows = [];
      for (let row = 0; row < this.rows; row++) if (this.accepts(row)) rows.push(row);
      const values = this.sortName === "errors" ? this.errors.map((own) => own.reduce((sum, error) => sum + error.severity, 0)) : this.values[this.sortName];
      const ties = this.list.ties && this.sortName === this.list.sort[0] ? this.values[this.list.ties] : null;
      const sign = this.descending ? -1 : 1, signed = this.columns.some((column) => column.signed && column.name === this.sortName);
      const collator = new Intl.Collator(undefined, { numeric: true });
      rows.sort((a, b) => {
        let one = values[a], other = values[b];
        if (signed && isNumber(one) && isNumber(other)) { one = Math.abs(one); other = Math.abs(other); }
        if (one === other) return ties ? (ties[b] ?? 0) - (ties[a] ?? 0) || a - b : a - b;
        if (one === null || one === undefined) return 1;
        if (other === null || other === undefined) return -1;
        return sign * (isNumber(one) && isNumber(other) ? one - other : collator.compare(one, other));
      });
      this.order = rows;
      this.active = this.opened === null ? (rows.length ? 0 : -1) : rows.indexOf(this.opened);
      this.drawChips(); this.drawCards(); this.drawWhy(); this.drawHead(); this.drawRows(true); this.drawScatter();
      this.count.textContent = rows.length === this.rows ? `${this.rows.toLocaleString("en")} ${this.list.what}` : `${rows.length.toLocaleString("en")} of ${this.rows.toLocaleString("en")} ${this.list.what}`;
      if (this.filter.words && this.terms && this.terms.unknown) this.count.textContent += ` (no column ${this.terms.unknown}; there are ${this.terms.known.slice(0, 8).join(", ")}${this.terms.known.length > 8 ? ", ..." : ""})`;
      performance.measure("listed", { start: begin });
    }
    change(change) { change(this.filter); this.grid.scrollTop = 0; this.apply(); }

    drawChips() {
      const { kind, finding, picks, ranges } = this.filter, chips = [];
      const chip = (text, remove) => chips.push(el("button", { type: "button", title: "Remove this filter", onclick: () => this.change(remove) }, `${text} ×`));
      if (kind) chip(KINDS[kind], (filter) => { filter.kind = null; });
      if (finding) chip(finding, (filter) => { filter.finding = null; });
      for (const [name, value] of Object.entries(picks)) chip(`${name}: ${value}`, (filter) => { delete filter.picks[name]; });
      for (const [name, [low, high]] of Object.entries(ranges)) chip(`${name} ${shown(low)} to ${shown(high)}`, (filter) => { delete filter.ranges[name]; });
      this.chips.replaceChildren(...chips);
      for (const [name, select] of Object.entries(this.selects)) select.value = this.filter.picks[name] ?? "";
    }

    // -- cards
    makeCards() {
      if (this.rows < 2) { this.cards = []; return; }
      this.cards = this.main.slice(0, 12).map((column) => {
        const now = el("div", { class: "now" }), chart = svg("svg", { viewBox: "0 0 240 64", preserveAspectRatio: "none", role: "img", "aria-label": `Distribution of ${column.name}; press and drag to select a range` });
        const bounds = range(this.values[column.name]), ends = el("div", { class: "ends" }, el("span", {}, shown(bounds[0])), el("span", {}, shown(bounds[1])));
        const own = this.values[column.name].filter(isNumber), average = column.mean ? column.mean[0] : mean(own);
        const interval = column.mean && isNumber(column.mean[1]) ? ` [${shown(column.mean[1])}, ${shown(column.mean[2])}]` : "";
        const missing = this.rows - own.length;
        const card = el("div", { class: "panel card" }, el("h3", {}, column.name + arrow(column.better)),
          el("div", { class: "value" }, shown(average), el("small", {}, interval + (missing ? ` · ${missing} without a value` : ""))), chart, ends, now);
        this.select(chart, column.name, bounds);
        return { column, chart, now, bounds, average, node: card };
      });
      this.part("cards").replaceChildren(...this.cards.map((card) => card.node));
    }
    // Press and drag over a distribution selects a range; a click selects one bar.
    select(chart, name, [low, high]) {
      let from = null;
      const at = (event) => { const box = chart.getBoundingClientRect(); return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1); };
      const set = (a, b) => {
        const first = Math.floor(Math.min(a, b) * BINS), last = Math.min(Math.floor(Math.max(a, b) * BINS), BINS - 1), step = (high - low) / BINS;
        this.change((filter) => { filter.ranges[name] = [low + Math.min(first, BINS - 1) * step, last === BINS - 1 ? high : low + (last + 1) * step]; });
      };
      chart.addEventListener("pointerdown", (event) => { from = at(event); chart.setPointerCapture(event.pointerId); });
      chart.addEventListener("pointerup", (event) => { if (from !== null) set(from, at(event)); from = null; });
    }
    drawCards() {
      const rows = new Set(this.order), filtered = this.order.length !== this.rows;
      for (const { column, chart, now, bounds: [low, high], average } of this.cards) {
        const all = new Array(BINS).fill(0), some = new Array(BINS).fill(0), values = this.values[column.name];
        for (let row = 0; row < this.rows; row++) {
          if (!isNumber(values[row])) continue;
          const bin = Math.min(Math.floor(((values[row] - low) / (high - low)) * BINS), BINS - 1);
          all[bin] += 1; if (rows.has(row)) some[bin] += 1;
        }
        const most = Math.max(...all, 1), x = (value) => ((value - low) / (high - low)) * 240, parts = [];
        all.forEach((count, bin) => {
          const bar = (height, kind) => height && parts.push(svg("rect", { class: kind, x: bin * 10 + 0.5, width: 9, y: 64 - (60 * height) / most, height: (60 * height) / most }));
          bar(count, "hist-all"); bar(some[bin], "hist-now");
        });
        if (column.mean && isNumber(column.mean[1])) parts.push(svg("rect", { class: "hist-band", x: x(column.mean[1]), width: Math.max(x(column.mean[2]) - x(column.mean[1]), 1), y: 0, height: 64 }));
        if (isNumber(average)) parts.push(svg("line", { class: "hist-mean", x1: x(average), x2: x(average), y1: 0, y2: 64 }));
        const chosen = this.filter.ranges[column.name];
        if (chosen) parts.push(svg("rect", { class: "hist-range", x: x(chosen[0]), width: x(chosen[1]) - x(chosen[0]), y: 1, height: 62 }));
        chart.replaceChildren(...parts);
        now.textContent = filtered ? `selected: ${shown(mean(this.order.map((row) => values[row])))}` : "";
      }
    }

    // -- why: errors by kind and by finding
    makeWhy() {
      this.whyPanels = [];
      if (!this.errors) return;
      const any = new Set(this.errors.flat().map((error) => error.title));
      const titles = [...new Set(this.list.cases.flatMap((blocks) => blocks.map((block) => block.title)))].filter((title) => any.has(title)).slice(0, 6);
      for (const title of titles) {
        const kinds = el("div", { class: "bars" }), findings = el("div", { class: "bars" }), suffix = title ? ` · ${title}` : "";
        this.part("why").append(
          el("div", { class: "panel" }, el("h3", {}, `Errors by kind${suffix} `, el("small", {}, "darker: more severe; significant: severity 3 to 5")), kinds),
          el("div", { class: "panel" }, el("h3", {}, `Findings that cost most${suffix} `, el("small", {}, "sum of severities")), findings));
        this.whyPanels.push({ title, kinds, findings });
      }
      if (titles.length) this.part("why").after(el("p", { class: "caption" }, "Errors as the judge by rules reads them. Press a bar to list only its cases."));
    }
    drawWhy() {
      for (const panel of this.whyPanels) {
        const { kinds, findings } = panel, byKind = {}, byFinding = {};
        for (const row of this.order) for (const { kind, severity, finding, title } of this.errors[row]) {
          if (title !== panel.title) continue;
          (byKind[kind] ||= [0, 0, 0, 0, 0, 0])[severity] += 1;
          const own = (byFinding[finding] ||= { sum: 0 }); own[kind] = (own[kind] || 0) + severity; own.sum += severity;
        }
        const most = Math.max(1, ...Object.values(byKind).map((counts) => counts.reduce((a, b) => a + b)));
        kinds.replaceChildren(...Object.keys(KINDS).filter((kind) => byKind[kind]).map((kind) => {
          const total = byKind[kind].reduce((a, b) => a + b), severe = byKind[kind].slice(3).reduce((a, b) => a + b);
          const bar = el("span", { class: "bar", style: { width: `${(100 * total) / most}%` } }, ...byKind[kind].map((count, severity) => count ? el("i", { class: `fill-${kind} s${severity}`, style: { flex: String(count) }, title: `severity ${severity}: ${count}` }) : null));
          return this.barButton(el("span", {}, el("i", { class: `swatch fill-${kind}` }), KINDS[kind]), bar, `${total} (${severe} significant)`, this.filter.kind === kind, (filter) => { filter.kind = filter.kind === kind ? null : kind; });
        }));
        const top = Object.entries(byFinding).sort((a, b) => b[1].sum - a[1].sum).slice(0, 8), first = top.length ? top[0][1].sum : 1;
        findings.replaceChildren(...top.map(([finding, sums]) => {
          const bar = el("span", { class: "bar", style: { width: `${(100 * sums.sum) / first}%` } }, ...Object.keys(KINDS).filter((kind) => sums[kind]).map((kind) => el("i", { class: `fill-${kind}`, style: { flex: String(sums[kind]) }, title: `${KINDS[kind]}: ${sums[kind]}` })));
          return this.barButton(finding, bar, String(sums.sum), this.filter.finding === finding, (filter) => { filter.finding = filter.finding === finding ? null : finding; });
        }));
        if (!top.length) kinds.replaceChildren(el("span", {}, "No errors in these cases."));
      }
    }
    barButton(name, bar, count, pressed, change) {
      return el("button", { type: "button", "aria-pressed": String(pressed), onclick: () => this.change(change) }, typeof name === "string" ? el("span", {}, name) : name, bar, el("span", { class: "count" }, count));
    }

    // -- scatter
    makeScatter() {
      const numbers = this.columns.filter((column) => !column.text);
      if (!this.list.scatter || numbers.length < 2) return;
      const pick = (value) => { const select = el("select", { onchange: () => this.drawScatter() }, ...numbers.map((column) => el("option", { value: column.name }, column.name))); select.value = value; return select; };
      this.xPick = pick(this.list.scatter[0]); this.yPick = pick(this.list.scatter[1]);
      this.canvas = el("canvas", { role: "img", "aria-label": "Scatter of two columns; the list below has the same cases" });
      this.under = el("div", { class: "under" });
      this.part("scatter").append(el("div", { class: "panel" }, this.canvas, el("div", {}, el("h3", {}, "Two columns against each other"),
        el("label", {}, "across", this.xPick), el("label", {}, "up", this.yPick), this.under, el("p", { class: "caption" }, `A point is one of the ${this.list.what}; press it to open its case.${this.list.diagonal ? " Far from the diagonal, the two systems differ." : ""}`))));
      this.canvas.addEventListener("pointermove", (event) => { const row = this.nearest(event); this.under.textContent = row === null ? "" : `${this.nameOf(row)}: ${shown(this.values[this.xPick.value][row])}, ${shown(this.values[this.yPick.value][row])}`; });
      this.canvas.addEventListener("click", (event) => { const row = this.nearest(event); if (row !== null) this.open(row, true); });
      new ResizeObserver(() => this.drawScatter()).observe(this.canvas);
    }
    groupOf(name) { return this.columns.find((column) => column.name === name).group; }
    nameOf(row) { return String(this.values[this.columns[0].name][row]); }
    drawScatter() {
      if (!this.canvas) return;
      const box = this.canvas.getBoundingClientRect();
      if (!box.width) return;
      const dense = devicePixelRatio || 1, width = box.width, height = box.height;
      this.canvas.width = width * dense; this.canvas.height = height * dense;
      const pen = this.canvas.getContext("2d"); pen.scale(dense, dense);
      const xs = this.values[this.xPick.value], ys = this.values[this.yPick.value];
      let [x0, x1] = range(xs), [y0, y1] = range(ys);
      const together = this.list.diagonal && this.groupOf(this.xPick.value) && this.groupOf(this.xPick.value) === this.groupOf(this.yPick.value);
      if (together) { x0 = y0 = Math.min(x0, y0); x1 = y1 = Math.max(x1, y1); }
      const left = 54, right = width - 12, top = 10, bottom = height - 38;
      const x = (value) => left + 6 + ((value - x0) / (x1 - x0)) * (right - left - 12), y = (value) => bottom - 6 - ((value - y0) / (y1 - y0)) * (bottom - top - 12);
      pen.strokeStyle = css("--line"); pen.fillStyle = css("--soft"); pen.font = "12px system-ui, sans-serif"; pen.lineWidth = 1;
      pen.strokeRect(left, top, right - left, bottom - top);
      for (const part of [0, 0.25, 0.5, 0.75, 1]) {
        const a = x0 + part * (x1 - x0), b = y0 + part * (y1 - y0);
        pen.textAlign = "center"; pen.fillText(shown(a), x(a), bottom + 15);
        pen.textAlign = "right"; pen.fillText(shown(b), left - 6, y(b) + 4);
      }
      pen.textAlign = "center"; pen.fillStyle = css("--ink"); pen.fillText(this.xPick.value, (left + right) / 2, height - 5);
      pen.save(); pen.translate(11, (top + bottom) / 2); pen.rotate(-Math.PI / 2); pen.fillText(this.yPick.value, 0, 0); pen.restore();
      if (together) { pen.beginPath(); pen.moveTo(x(x0), y(y0)); pen.lineTo(x(x1), y(y1)); pen.stroke(); }
      const size = this.rows > 3000 ? 2 : this.rows > 300 ? 3 : 4.5;
      this.points = [];
      const dot = (row, color, alpha) => { if (!isNumber(xs[row]) || !isNumber(ys[row])) return; pen.globalAlpha = alpha; pen.fillStyle = color; pen.beginPath(); pen.arc(x(xs[row]), y(ys[row]), size, 0, 7); pen.fill(); };
      const accepted = new Set(this.order), soft = css("--line"), strong = css("--accent");
      if (accepted.size < this.rows) for (let row = 0; row < this.rows; row++) if (!accepted.has(row)) dot(row, soft, 0.7);
      for (const row of this.order) { dot(row, strong, this.rows > 1000 ? 0.4 : 0.7); if (isNumber(xs[row]) && isNumber(ys[row])) this.points.push([x(xs[row]), y(ys[row]), row]); }
      pen.globalAlpha = 1;
      if (this.opened !== null && isNumber(xs[this.opened]) && isNumber(ys[this.opened])) { pen.strokeStyle = css("--red"); pen.lineWidth = 2.5; pen.beginPath(); pen.arc(x(xs[this.opened]), y(ys[this.opened]), size + 4, 0, 7); pen.stroke(); }
    }
    nearest(event) {
      const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      let best = null, least = 15 ** 2;
      for (const [a, b, row] of this.points || []) { const far = (a - x) ** 2 + (b - y) ** 2; if (far < least) { least = far; best = row; } }
      return best;
    }

    // -- the list
    makeList() {
      this.count = el("span", { class: "count", role: "status" });
      this.search = el("input", { type: "search", placeholder: this.list.cases ? "Search texts and ids, or: rouge-l<0.2".replace("rouge-l", (this.main[0] || { name: "x" }).name) : "Search, or: NAME<0.2", "aria-label": "Search the list" });
      let waiting = 0;
      this.search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => this.change((filter) => { filter.words = this.search.value.trim(); }), 120); });
      this.selects = {};
      const tools = [this.search];
      for (const name of this.list.picks) {
        const values = [...new Set(this.values[name])].sort();
        this.selects[name] = el("select", { "aria-label": name, onchange: (event) => this.change((filter) => { if (event.target.value) filter.picks[name] = event.target.value; else delete filter.picks[name]; }) }, el("option", { value: "" }, `${name}: all`), ...values.map((value) => el("option", { value }, value)));
        tools.push(this.selects[name]);
      }
      if (this.columns.some((column, index) => index && !column.main)) tools.push(el("label", {}, el("input", { type: "checkbox", onchange: (event) => { this.wide = event.target.checked; this.drawHead(); this.drawRows(true); } }), "all columns"));
      this.sorts = el("select", { class: "phone", "aria-label": "Sort by", onchange: (event) => this.sortBy(this.columns.find((column) => column.name === event.target.value) || { name: "errors", better: -1 }) },
        ...[...this.columns.map((column) => column.name), ...(this.errors ? ["errors"] : [])].map((name) => el("option", { value: name }, `sort: ${name}`)));
      tools.push(this.sorts, this.count);
      this.chips = el("div", { class: "chips" });
      this.head = el("div", { class: "head", role: "row" }); this.body = el("div", { role: "rowgroup" }); this.inner = el("div", { class: "inner" }, this.head, this.body);
      this.grid = el("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": `List of ${this.list.what}` }, this.inner);
      this.panel = el("aside", { class: "case", tabindex: "-1", hidden: true, "aria-label": "Case" });
      this.split = el("div", { class: "split" }, this.grid, this.panel);
      this.part("list").append(el("div", { class: "tools" }, ...tools), this.chips, this.split,
        el("p", { class: "keys" }, el("kbd", {}, "↑"), " ", el("kbd", {}, "↓"), " move, ", el("kbd", {}, "Enter"), " opens a case, ", el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " next and previous, ", el("kbd", {}, "Esc"), " closes, ", el("kbd", {}, "/"), " searches. Tinted: the worst tenth of a column."));
      this.grid.addEventListener("scroll", () => this.drawRows(), { passive: true });
      this.grid.addEventListener("keydown", (event) => this.key(event));
      this.panel.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { this.close(); event.preventDefault(); }
        if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "j" || event.key === "ArrowRight") { this.step(1); event.preventDefault(); }
        if (event.key === "k" || event.key === "ArrowLeft") { this.step(-1); event.preventDefault(); }
      });
      this.body.addEventListener("click", (event) => { const row = event.target.closest("[data-row]"); if (row) this.open(Number(row.dataset.row), false); });
      new ResizeObserver(() => this.drawRows(true)).observe(this.grid);
    }
    get isPhone() { return innerWidth <= 620; }
    get height() { return this.isPhone ? 68 : 36; }
    shownColumns() {
      if (this.isPhone) return this.phoneColumns();
      const own = this.columns.filter((column, index) => index === 0 || this.wide || column.main || this.list.picks.includes(column.name));
      const narrow = this.opened !== null && !this.wide && innerWidth > 1000 ? own.slice(0, this.errors ? 2 : 4) : own;
      return this.errors ? [narrow[0], ...narrow.slice(1, 2), { name: "errors", text: true, better: 0 }, ...narrow.slice(2)] : narrow;
    }
    // A phone has room for the name, the column that the list is sorted by, and the errors below.
    phoneColumns() {
      const second = this.columns.find((column) => column.name === this.sortName && column !== this.columns[0]) || this.columns[1];
      const third = this.errors ? { name: "errors", text: true, better: 0 } : this.columns.filter((column) => column !== second)[1];
      return [this.columns[0], second, third].filter(Boolean);
    }
    drawHead() {
      const columns = this.shownColumns();
      this.sorts.value = this.sortName;
      const width = (column) => column.name === "errors" ? "minmax(230px, 3fr)" : column === columns[0] ? `minmax(${this.idWidth}ch, 1fr)` : column.text ? "minmax(110px, 1fr)" : `minmax(${Math.min(Math.max(column.name.length + 3, 9), 24)}ch, 1fr)`;
      this.inner.style.setProperty("--columns", columns.map(width).join(" "));
      this.head.replaceChildren(...columns.map((column) => {
        const active = column.name === this.sortName, direction = this.descending ? "descending" : "ascending";
        return el("div", { role: "columnheader", "aria-sort": active ? direction : "none", style: { display: "grid", "min-width": 0 } },
          el("button", { type: "button", class: column.text ? "" : "num", title: `Sort by ${column.name}${column.signed ? ", by size" : ""}`, "data-sort": column.name, onclick: () => this.sortBy(column) }, column.name + arrow(column.better) + (active ? (this.descending ? " ▾" : " ▴") : "")));
      }));
      this.grid.setAttribute("aria-rowcount", String(this.order.length + 1));
    }
    sortBy(column) {
      if (this.sortName === column.name) this.descending = !this.descending;
      else { this.sortName = column.name; this.descending = column.name === "errors" || column.better < 0 || Boolean(column.signed); }
      this.grid.scrollTop = 0;
      this.apply();
      if (!this.isPhone) this.head.querySelector(`[data-sort="${CSS.escape(column.name)}"]`).focus();
    }
    drawRows(anew) {
      const height = this.height, first = this.printing ? 0 : Math.max(Math.floor(this.grid.scrollTop / height) - 8, 0);
      const last = this.printing ? Math.min(PRINTED, this.order.length) : Math.min(Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / height) + 8, this.order.length);
      if (!anew && first === this.first && last === this.last) return;
      [this.first, this.last] = [first, last];
      this.inner.style.height = `${this.order.length * height + 36}px`;
      this.grid.style.height = this.order.length * height + 56 < Math.min(innerHeight * 0.72, 720) && this.opened === null ? `${Math.max(this.order.length, 1) * height + 56}px` : "";
      const columns = this.shownColumns(), nodes = [];
      for (let place = first; place < last; place++) nodes.push(this.drawRow(place, columns, height));
      this.body.replaceChildren(...nodes);
      const id = this.active >= 0 ? `row-${this.number}-${this.order[this.active]}` : "";
      if (id) this.grid.setAttribute("aria-activedescendant", id); else this.grid.removeAttribute("aria-activedescendant");
    }
    drawRow(place, columns, height) {
      const row = this.order[place];
      const cells = columns.map((column) => {
        if (column.name === "errors") return el("div", { role: "gridcell", class: "tags" }, ...this.errorTags(row));
        const value = this.values[column.name][row], limit = this.worst[column.name];
        const bad = limit !== undefined && isNumber(value) && (column.better > 0 ? value <= limit : value >= limit);
        return el("div", { role: "gridcell", class: (column.text ? "text" : "num") + (bad ? " worst" : ""), title: column.text ? value : null }, shown(value));
      });
      return el("div", { class: "row", role: "row", id: `row-${this.number}-${row}`, "data-row": row, "aria-rowindex": place + 2, "aria-selected": String(row === this.opened || (this.opened === null && place === this.active && document.activeElement === this.grid)), style: { transform: `translateY(${place * height}px)` } }, ...cells);
    }
    errorTags(row) {
      const own = [...this.errors[row]].sort((a, b) => b.severity - a.severity);
      if (!own.length) return this.list.cases[row].length ? [el("span", { class: "tag none" }, "no error found")] : [];
      return own.slice(0, 6).map(({ kind, severity, finding, title }) => el("span", { class: `tag ${kind}`, title: `${KINDS[kind]} ${finding}, severity ${severity}` }, el("b", {}, String(severity)), ` ${this.titled ? `${title} ` : ""}${KINDS[kind]}: ${finding}`));
    }
    key(event) {
      if (event.target.closest(".head")) return;
      const page = Math.max(Math.floor(this.grid.clientHeight / this.height) - 2, 1);
      const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.order.length, End: this.order.length, j: 1, k: -1 };
      if (event.key in moves) { this.move(moves[event.key]); event.preventDefault(); }
      else if ((event.key === "Enter" || event.key === " ") && this.active >= 0) { this.open(this.order[this.active], true); event.preventDefault(); }
      else if (event.key === "Escape") { this.close(); }
    }
    move(by) {
      if (!this.order.length) return;
      this.active = Math.min(Math.max(this.active + by, 0), this.order.length - 1);
      if (this.opened !== null) { this.open(this.order[this.active], false); return; }
      this.toActive(); this.drawRows(true);
    }
    toActive() {
      const top = this.active * this.height, box = this.grid.clientHeight - 36;
      if (top < this.grid.scrollTop) this.grid.scrollTop = top;
      else if (top + this.height > this.grid.scrollTop + box) this.grid.scrollTop = top + this.height - box;
    }
    step(by) { const place = this.order.indexOf(this.opened) + by; if (place >= 0 && place < this.order.length) this.open(this.order[place], true); }

    // -- a case
    open(row, focus) {
      this.opened = row; this.active = this.order.indexOf(row);
      this.split.classList.add("open"); this.panel.hidden = false;
      this.panel.replaceChildren(...this.drawCase(row)); this.panel.scrollTop = 0;
      this.drawHead(); this.toActive(); this.drawRows(true); this.drawScatter();
      const overlaid = innerWidth <= 1000;
      if (focus || overlaid) { this.panel.focus({ preventScroll: true }); if (!overlaid) this.panel.scrollIntoView({ block: "nearest" }); }
      try { history.replaceState(null, "", `#case=${this.number}/${row}`); } catch { /* some viewers forbid it */ }
    }
    close() {
      if (this.opened === null) return;
      this.opened = null; this.panel.hidden = true; this.split.classList.remove("open");
      this.drawHead(); this.drawRows(true); this.drawScatter(); this.grid.focus({ preventScroll: true });
      try { history.replaceState(null, "", `#run-${this.number}`); } catch { /* as above */ }
    }
    drawCase(row) {
      const place = this.order.indexOf(row);
      const button = (text, title, action, off) => el("button", { type: "button", title, "aria-label": title, onclick: action, disabled: off }, text);
      const bar = el("div", { class: "bar" }, el("h3", {}, this.nameOf(row), place >= 0 ? el("small", {}, ` ${place + 1} of ${this.order.length}`) : null),
        el("div", {}, button("←", "Previous case", () => this.step(-1), place <= 0), button("→", "Next case", () => this.step(1), place < 0 || place >= this.order.length - 1), button("×", "Close the case", () => this.close())));
      const numbers = el("div", { class: "numbers" }, ...this.columns.slice(1).filter((column) => (column.main || column.text) && this.values[column.name][row] !== null)
        .map((column) => el("div", {}, el("span", {}, `${column.name}${arrow(column.better)} `), shown(this.values[column.name][row]))));
      const images = (this.list.images || {})[row] || [];
      const own = this.list.cases ? this.list.cases[row] : [], blocks = own.map(drawBlock);
      const shots = images.map((source, index) => el("figure", {}, el("img", { src: source, alt: `Image ${index + 1} of ${this.nameOf(row)}` })));
      const triangles = own.filter((block) => block.triangle).map((block) => drawTriangle(block.triangle));
      const pictures = triangles.length ? el("div", { class: "pictures" }, ...triangles) : null;
      const nothing = blocks.length ? null : el("p", { class: "caption" }, this.list.cases ? "The reports of this case could not be read." : "This page holds no reports.");
      const rest = this.columns.slice(1).filter((column) => !column.main && !column.text && isNumber(this.values[column.name][row]));
      const more = rest.length ? el("details", {}, el("summary", {}, "All numbers"), el("dl", {}, ...rest.flatMap((column) => [el("dt", {}, column.name), el("dd", {}, shown(this.values[column.name][row]))]))) : null;
      const texts = [nothing, ...blocks, pictures, more].filter(Boolean);
      // Image and texts are next to each other, so that one is seen while the other is read.
      return [bar, numbers, ...(shots.length ? [el("div", { class: "reading" }, el("div", { class: "shots" }, ...shots), el("div", {}, ...texts))] : texts)];
    }
    print(on) { this.printing = on; this.drawRows(true); this.drawScatter(); }
  }

  // -- the page ---------------------------------------------------------------------------------

  async function unpacked() {
    const coded = document.getElementById("payload").textContent.trim();
    const bytes = Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  function theme(lists) {
    const button = document.getElementById("theme"), root = document.documentElement, wish = matchMedia("(prefers-color-scheme: dark)");
    const set = (dark) => { root.dataset.theme = dark ? "dark" : "light"; button.textContent = dark ? "Light" : "Dark"; lists.forEach((list) => list.drawScatter()); };
    button.addEventListener("click", () => set(root.dataset.theme !== "dark"));
    wish.addEventListener("change", () => set(wish.matches));
    button.hidden = false; set(wish.matches);
  }

  async function start() {
    const lists = [];
    theme(lists);
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the page (it has no DecompressionStream)");
    const data = await unpacked();
    data.runs.forEach((run, number) => {
      const section = document.querySelector(`[data-run="${number}"]`);
      section.querySelector('[data-part="forests"]').append(...run.forests.map(drawForest));
      section.querySelector('[data-part="curves"]').append(...run.curves.map(drawCurves));
      if (run.list && run.list.rows) lists.push(new CaseList(run.list, section, number));
      if (run.list && run.list.rows === 1) { section.classList.add("single"); lists[lists.length - 1].open(0, false); }
    });
    const wanted = /^#case=(\d+)\/(\d+)$/.exec(location.hash);
    if (wanted) {
      const list = lists.find((each) => each.number === Number(wanted[1]));
      if (list && Number(wanted[2]) < list.rows) list.open(Number(wanted[2]), true);
    }
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.closest("input, select, textarea") || !lists.length) return;
      const near = lists.find((list) => list.section.contains(event.target)) || lists[0];
      near.search.focus(); event.preventDefault();
    });
    addEventListener("beforeprint", () => { lists.forEach((list) => list.print(true)); document.querySelectorAll("details").forEach((each) => { each.open = true; }); });
    addEventListener("afterprint", () => lists.forEach((list) => list.print(false)));
    performance.mark("drawn");
    document.documentElement.dataset.ready = "yes";
  }
  start().catch((error) => {
    const place = document.getElementById("failed");
    place.hidden = false; place.textContent = `The lists and charts could not be drawn: ${error.message}. The tables below are complete.`;
    document.documentElement.dataset.ready = "no";
  });
})();
