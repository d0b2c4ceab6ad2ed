"""HTML, CSS and JavaScript of `view_attention`."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body style="margin: 1.5rem; font-family: system-ui, sans-serif">
{body}
</body>
</html>
"""

# Colors follow the system's color scheme, or the theme of MkDocs Material or
# Jupyter.
STYLE = """<style>
#NAME { --ink: 63, 81, 181; --line: rgba(128, 128, 128, .5);
  font-family: inherit; line-height: 1.4; max-width: 60rem }
@media (prefers-color-scheme: dark) { #NAME { --ink: 140, 158, 255 } }
[data-md-color-scheme=default] #NAME, [data-jp-theme-light=true] #NAME {
  --ink: 63, 81, 181 }
[data-md-color-scheme=slate] #NAME, [data-jp-theme-light=false] #NAME {
  --ink: 140, 158, 255 }
#NAME select, #NAME button { font: inherit; color: inherit;
  background: transparent; border: 1px solid var(--line); border-radius: 4px }
#NAME select { padding: .15rem .3rem; margin-right: 1rem }
#NAME option { color: #000; background: #fff }
#NAME .sides { display: flex; flex-wrap: wrap; gap: 1rem; margin: .6rem 0 }
#NAME .side { flex: 1 1 16rem; min-width: 0 }
#NAME .tokens { display: flex; flex-wrap: wrap; gap: .25rem }
#NAME button { padding: .1rem .35rem; cursor: pointer; text-align: center;
  font-family: ui-monospace, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere }
#NAME button small { display: block; opacity: .85; min-height: 1.2em }
#NAME button:focus-visible, #NAME select:focus-visible {
  outline: 3px solid rgb(var(--ink)); outline-offset: 1px }
#NAME button[aria-pressed=true] { border: 2px solid rgb(var(--ink));
  font-weight: bold }
#NAME .say { min-height: 3em; margin: .4rem 0 0 }
#NAME .all { display: grid; grid-template-columns: max-content 1fr;
  gap: .3rem .6rem; align-items: center; margin: .6rem 0; font-size: .85em;
  max-height: 24rem; overflow: auto; padding: 3px }
#NAME .all div { display: flex; flex-wrap: wrap; gap: .25rem }
#NAME .all button { padding: 1px; line-height: 0 }
#NAME .all canvas { width: 2.6rem; height: 2.6rem;
  image-rendering: pixelated }
#NAME .all button[aria-current=true] { outline: 2px solid rgb(var(--ink)) }
@media (max-width: 30rem) { #NAME .all { grid-template-columns: 1fr } }
#NAME .vectors { margin: .6rem 0 }
#NAME .vectors summary { cursor: pointer }
#NAME .vectors > div { overflow: auto; max-height: 30rem }
#NAME .vectors table { border-collapse: collapse; font-size: .85em;
  width: 100% }
#NAME .vectors th, #NAME .vectors td { padding: .15rem .4rem;
  text-align: left; font-weight: normal }
#NAME .vectors thead th { font-weight: bold }
#NAME .vectors .number { text-align: right; font-variant-numeric: tabular-nums }
#NAME .vectors canvas { width: 100%; min-width: 4rem; height: 1.1rem;
  display: block; border: 1px solid var(--line); image-rendering: pixelated }
</style>"""

BODY = """<div id="{name}" role="group" aria-label="{title}">
<p><strong><bdi>{title}</bdi></strong></p>
<div class="all" role="group" aria-label="All layers and heads"></div>
<div><label>Layer <select class="layer"></select></label>
<label>Head <select class="head"></select></label></div>
<div class="sides">
<div class="side"><div>Looks</div><div class="tokens queries"></div></div>
<div class="side"><div>Is looked at</div><div class="tokens keys"></div></div>
</div>
<p class="say" aria-live="polite"></p>
<details class="vectors"><summary>Queries and keys</summary>
<div tabindex="0" role="group" aria-label="Queries and keys"></div></details>
</div>"""

SCRIPT = """<script>
(() => {
  const maps = DATA;
  const root = document.getElementById("NAME");
  const find = (name) => root.querySelector(name);
  const [layer, head, say] = [".layer", ".head", ".say"].map(find);
  const sides = [find(".queries"), find(".keys")];
  const bytes = maps.map((map) =>
    Uint8Array.from(atob(map.weights), (c) => c.charCodeAt(0)));
  let chosen = [0, 0];  // the side, 0 for queries, and the token
  const tokensOf = (side) =>
    side ? maps[layer.value].keys : maps[layer.value].queries;
  function weight(query, key) {
    const map = maps[layer.value], count = map.heads.length;
    const size = map.queries.length * map.keys.length;
    const at = (n) => bytes[layer.value][
      n * size + query * map.keys.length + key] / 255;
    if (head.value !== "mean") return at(Number(head.value));
    let sum = 0;
    for (let n = 0; n < count; n++) sum += at(n);
    return sum / count;
  }
  // A right-to-left token must not reorder its neighbors.
  function isolated(text) {
    const made = document.createElement("bdi");
    made.textContent = text;
    return made;
  }
  function option(select, value, text) {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = text;
    made.dir = "auto";
    select.append(made);
  }
  // Every head as a small picture: queries are rows, keys are columns.
  function picture(n, i) {
    const width = maps[n].keys.length, height = maps[n].queries.length;
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const pixels = new ImageData(width, height);
    const size = width * height;
    for (let p = 0; p < size; p++) {
      // Between the colors of the two themes.
      pixels.data.set([101, 119, 218, bytes[n][i * size + p]], 4 * p);
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }
  const all = find(".all");
  function fillAll() {
    maps.forEach((map, n) => {
      if (!map.queries.length || !map.keys.length) return;
      const row = document.createElement("div");
      map.heads.forEach((number, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.title = `${map.name}, head ${number}`;
        button.setAttribute("aria-label", button.title);
        button.dataset.head = `${n} ${i}`;
        button.append(picture(n, i));
        button.addEventListener("click", () => {
          layer.value = n;
          fill();
          head.value = i;
          show();
        });
        row.append(button);
      });
      all.append(isolated(map.name), row);
    });
    // One head has nothing to be compared with.
    if (all.querySelectorAll("button").length < 2) all.remove();
  }
  // The queries and keys of a layer, in this order, as side 0 and side 1.
  const vectors = maps.map((map) => map.vectors?.map((one) => ({...one,
    values: Int8Array.from(atob(one.values), (c) => c.charCodeAt(0))})));
  const drawer = find(".vectors");
  function vector(side, place) {
    const one = vectors[layer.value][side];
    const start = one.size * (
      Number(head.value) * tokensOf(side).length + place);
    return [...one.values.subarray(start, start + one.size)]
      .map((value) => value * one.step);
  }
  // One pixel per number: blue above 0, orange below.
  function strip(values, most) {
    const canvas = document.createElement("canvas");
    canvas.width = values.length;
    canvas.height = 1;
    const pixels = new ImageData(values.length, 1);
    values.forEach((value, i) => pixels.data.set([
      ...(value > 0 ? [80, 110, 230] : [225, 105, 20]),
      Math.round(255 * Math.abs(value) / (most || 1))], 4 * i));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }
  function cell(row, content, scope) {
    const made = document.createElement(scope ? "th" : "td");
    if (scope) made.scope = scope;
    made.append(content);
    row.append(made);
    return made;
  }
  function multiply() {
    drawer.hidden = !vectors[layer.value] || head.value === "mean";
    if (drawer.hidden || !drawer.open) return;
    const [side, place] = chosen, other = 1 - side;
    const fixed = vector(side, place);
    const rows = tokensOf(other).map((token, i) => {
      const values = vector(other, i);
      const product = values.map((value, j) => value * fixed[j]);
      const sum = product.reduce((a, b) => a + b, 0);
      return {token, values, product, score: sum / Math.sqrt(fixed.length),
        weight: side ? weight(i, place) : weight(place, i)};
    });
    const largest = (all) => Math.max(0, ...all.flat().map(Math.abs));
    const most = largest(rows.map((row) => row.values));
    const mostOf = largest(rows.map((row) => row.product));
    const table = document.createElement("table");
    const names = ["query", "key"];
    const top = table.createTHead().insertRow();
    for (const name of ["", names[other], "product", "sum / √H", "weight"]) {
      cell(top, name, "col");
    }
    const body = table.createTBody();
    const first = body.insertRow();
    cell(first, isolated(tokensOf(side)[place]), "row");
    cell(first, strip(fixed, largest(fixed))).title = names[side];
    cell(first, `the selected ${names[side]}`).colSpan = 3;
    for (const {token, values, product, score, weight} of rows) {
      const row = body.insertRow();
      cell(row, isolated(token), "row");
      cell(row, strip(values, most));
      cell(row, strip(product, mostOf));
      cell(row, score.toFixed(2)).className = "number";
      cell(row, weight.toFixed(2)).className = "number";
    }
    drawer.querySelector("div").replaceChildren(table);
  }
  drawer.addEventListener("toggle", multiply);
  if (!vectors.some(Boolean)) drawer.remove();
  function show() {
    multiply();
    for (const button of all.querySelectorAll("button")) {
      button.setAttribute("aria-current",
        String(button.dataset.head === `${layer.value} ${head.value}`));
    }
    const [side, place] = chosen, other = 1 - side;
    const found = [...sides[other].children].map((button, i) => {
      const w = side ? weight(i, place) : weight(place, i);
      button.style.background = `rgba(var(--ink), ${(0.55 * w).toFixed(3)})`;
      button.lastChild.textContent = w.toFixed(2);
      button.setAttribute("aria-pressed", "false");
      return [w, i];
    });
    [...sides[side].children].forEach((button, i) => {
      button.style.background = "";
      button.lastChild.textContent = "";
      button.setAttribute("aria-pressed", String(i === place));
      button.tabIndex = i === place ? 0 : -1;
    });
    const best = found.sort((a, b) => b[0] - a[0]).slice(0, 3)
      .filter(([w]) => w > 0)
      .flatMap(([w, i], n) =>
        [n ? ", " : ": ", isolated(tokensOf(other)[i]), ` ${w.toFixed(2)}`]);
    say.replaceChildren(isolated(tokensOf(side)[place]),
      side ? " is looked at by" : " looks at",
      ...(best.length ? best : [" nothing"]), ".");
  }
  function choose(side, place, focus) {
    chosen = [side, place];
    show();
    if (focus) sides[side].children[place].focus();
  }
  function fill() {
    const map = maps[layer.value], before = head.value;
    head.replaceChildren();
    map.heads.forEach((number, i) => option(head, i, number));
    if (map.heads.length > 1) option(head, "mean", "mean of all");
    if ([...head.options].some((o) => o.value === before)) head.value = before;
    sides.forEach((box, side) => {
      box.replaceChildren(...tokensOf(side).map((token, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.tabIndex = place ? -1 : 0;
        button.append(isolated(token), document.createElement("small"));
        button.addEventListener("mouseenter", () => choose(side, place));
        button.addEventListener("focus", () => choose(side, place));
        button.addEventListener("click", () => choose(side, place));
        return button;
      }));
    });
    let [side, place] = chosen;
    if (tokensOf(side).length === 0) side = 1 - side;
    const count = tokensOf(side).length;
    if (count > 0) choose(side, Math.min(place, count - 1));
    else say.textContent = "There are no tokens.";
  }
  sides.forEach((box, side) => box.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1,
      Home: -Infinity, End: Infinity}[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const buttons = [...box.children], last = buttons.length - 1;
    const at = Math.max(0, buttons.indexOf(event.target.closest("button")));
    choose(side, Math.max(0, Math.min(last, at + step)), true);
  }));
  maps.forEach((map, i) => option(layer, i, map.name));
  layer.addEventListener("change", fill);
  head.addEventListener("change", show);
  fillAll();
  fill();
})();
</script>"""
