// A GPT over characters that computes in the page, with int8 weights.
figures.add("character_gpt", (box) => {
  const {make, shape, number} = figures;
  const {characters, length, sizes, weights} = figures.data.character_gpt;
  const {hidden_dim: width, num_heads: heads, num_layers: layers} = sizes;
  const shownAs = {"\n": "↵", " ": "␣"};

  // Matrices are int8 times one float32 per output channel; the channels of an
  // embedding are its rows, those of other matrices their columns.
  function decode(path) {
    const {float32, int8, scale, shape: size} = weights[path];
    const bytes = (text) =>
      Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
    if (float32) return Float64Array.from(new Float32Array(bytes(float32)));
    const factors = new Float32Array(bytes(scale));
    const rows = path.endsWith("embeddings");
    return Float64Array.from(
      new Int8Array(bytes(int8)),
      (x, i) => x * factors[rows ? Math.floor(i / size[1]) : i % size[1]],
    );
  }
  const w = Object.fromEntries(Object.keys(weights).map((p) => [p, decode(p)]));
  const embeddings = w["token_embedding/table/embeddings"];
  const positions = w["positions/table/embeddings"];

  const add = (a, b) => a.map((x, i) => x + b[i]);
  const gelu = (x) =>
    (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  function norm(x, name) {
    const mean = x.reduce((a, b) => a + b, 0) / width;
    const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / width;
    const [gamma, beta] = [w[`${name}/gamma`], w[`${name}/beta`]];
    return x.map(
      (v, i) => ((v - mean) / Math.sqrt(variance + 1e-5)) * gamma[i] + beta[i],
    );
  }

  function dense(x, name) {
    const kernel = w[`${name}/kernel`];
    const y = Float64Array.from(w[`${name}/bias`]);
    for (let i = 0; i < x.length; i++) {
      for (let j = 0; j < y.length; j++) y[j] += x[i] * kernel[i * y.length + j];
    }
    return y;
  }

  // The cache: what has been computed for each position of the text.
  const perLayer = (what) => Array.from({length: layers}, what);
  const [keys, values] = [perLayer(() => []), perLayer(() => [])];
  const maps = perLayer(() => Array.from({length: heads}, () => []));
  const logits = [];

  function attention(x, t, layer) {
    const name = `block_${layer}/self_attention`;
    const query = dense(x, `${name}/query`);
    keys[layer][t] = dense(x, `${name}/key`);
    values[layer][t] = dense(x, `${name}/value`);
    const mixed = new Float64Array(width);
    const size = width / heads;
    for (let head = 0; head < heads; head++) {
      const scores = [];
      for (let s = 0; s <= t; s++) {
        let score = 0;
        for (let i = head * size; i < (head + 1) * size; i++) {
          score += query[i] * keys[layer][s][i];
        }
        scores.push(score / Math.sqrt(size));
      }
      const row = figures.softmax(scores);
      maps[layer][head][t] = row;
      row.forEach((weight, s) => {
        for (let i = head * size; i < (head + 1) * size; i++) {
          mixed[i] += weight * values[layer][s][i];
        }
      });
    }
    return dense(mixed, `${name}/attention_output`);
  }

  // Computes position t of the text, with those before it from the cache.
  function step(id, t) {
    const row = (table, i) => table.slice(i * width, (i + 1) * width);
    let x = add(row(embeddings, id), row(positions, t));
    for (let layer = 0; layer < layers; layer++) {
      const name = `block_${layer}`;
      x = add(x, attention(norm(x, `${name}/around_attention/norm`), t, layer));
      const inner = dense(
        norm(x, `${name}/around_feed_forward/norm`),
        `${name}/feed_forward/inner`,
      );
      x = add(x, dense(inner.map(gelu), `${name}/feed_forward/outer`));
    }
    x = norm(x, "norm");
    logits[t] = [...characters].map((_, i) =>
      row(embeddings, i).reduce((sum, e, j) => sum + e * x[j], 0),
    );
  }

  box.append(make("h4", {}, "A GPT that runs in this page"));
  const text = figures.control(
    box.appendChild(make("div", {class: "figure-controls figure-wide"})),
    "text",
    make("input", {
      type: "text",
      value: "Each head computes the attention weights of ",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
    }),
    () => begin(),
  );
  const buttons = box.appendChild(make("div", {class: "figure-controls"}));
  figures.button(buttons, "Append the most likely", () => append(1, likely));
  figures.button(buttons, "Append a sample", () => append(1, sample));
  figures.button(buttons, "Append 20 samples", () => append(20, sample));
  const parts = box.appendChild(make("div", {class: "figure-row"}));
  const table = parts.appendChild(make("div"));
  const side = parts.appendChild(make("div", {class: "figure-column"}));
  let [layer, head] = [0, 0];
  const small = perLayer((_, l) => {
    const line = side.appendChild(
      make("div", {class: "figure-heads", role: "group"}, `layer ${l + 1}`),
    );
    line.setAttribute("aria-label", `heads of layer ${l + 1}`);
    return Array.from({length: heads}, (_, n) => {
      const button = figures.button(line, "", () => {
        [layer, head] = [l, n];
        showHead();
      });
      button.setAttribute("aria-label", `layer ${l + 1}, head ${n + 1}`);
      return button;
    });
  });
  const large = side.appendChild(make("div"));
  const sliders = box.appendChild(make("div", {class: "figure-controls"}));
  const query = figures.slider(
    sliders,
    "query: character",
    {min: 1, max: length, value: length},
    () => showHead(),
  );
  const words = box.appendChild(make("p", {class: "figure-text", role: "img"}));
  const status = figures.status(box);
  let known = [], skipped = [];

  // The characters that the model reads: the last ones of a line and its text.
  function read() {
    const all = ["\n", ...text.value.replaceAll("↵", "\n")];
    const found = all.filter((c) => characters.includes(c));
    skipped = [...new Set(all.filter((c) => !characters.includes(c)))];
    // Steps of 32, so that not each new character changes all positions.
    const start = 32 * Math.ceil(Math.max(0, found.length - length) / 32);
    return found.slice(start);
  }

  function compute() {
    const before = known;
    known = read();
    let same = 0;
    while (same < known.length && known[same] === before[same]) same++;
    for (let t = same; t < known.length; t++) {
      step(characters.indexOf(known[t]), t);
    }
  }

  const probabilities = () => figures.softmax(logits[known.length - 1]);

  function likely(p) {
    return p.indexOf(Math.max(...p));
  }

  function sample(p) {
    let left = Math.random(), id = 0;
    while (id < p.length - 1 && left >= p[id]) left -= p[id++];
    return id;
  }

  function append(count, choose) {
    for (let i = 0; i < count; i++) {
      const next = characters[choose(probabilities())];
      text.value += next.replace("\n", "↵");
      compute();
    }
    text.scrollLeft = text.scrollWidth;
    begin();
  }

  const name = (character) => shownAs[character] ?? character;

  // A map as paths of equal shade. Small weights are visible as well: the shade
  // is the square root of a weight.
  function drawn(rows) {
    const size = known.length;
    const levels = Array.from({length: 11}, () => []);
    rows.slice(0, size).forEach((row, t) =>
      row.forEach((weight, s) =>
        levels[Math.round(10 * Math.sqrt(weight))].push(`M${s} ${t}h1v1h-1z`),
      ),
    );
    const stairs = known.map((_, t) => `H${t + 1}V${t + 1}`).join("");
    return shape(
      "svg",
      {
        class: "diagram",
        viewBox: `0 0 ${size} ${size}`,
        "shape-rendering": "crispEdges",
        "aria-hidden": "true",
      },
      shape("path", {class: "figure-future", d: `M${size} 0${stairs}z`}),
      ...levels.slice(1).map((cells, i) =>
        shape("path", {
          class: "shade",
          d: cells.join(""),
          "fill-opacity": (i + 1) / 10,
        }),
      ),
    );
  }

  function begin() {
    compute();
    small.forEach((line, l) =>
      line.forEach((button, n) => button.replaceChildren(drawn(maps[l][n]))),
    );
    query.max = known.length;
    query.value = known.length;
    query.dispatchEvent(new Event("input"));
  }

  function showNext() {
    const p = probabilities();
    const rows = figures.table("Next character");
    const order = p.map((_, id) => id).sort((a, b) => p[b] - p[a] || a - b);
    for (const id of order.slice(0, 10)) {
      const bar = make("div", {style: `width:${(100 * p[id]).toFixed(1)}%`});
      rows.append(
        make(
          "tr",
          {},
          make("th", {scope: "row"}, name(characters[id])),
          make("td", {}, number(p[id], 3)),
          make("td", {class: "figure-bar", "aria-hidden": "true"}, bar),
        ),
      );
    }
    table.replaceChildren(rows);
    return order.slice(0, 3).map((id) => `“${name(characters[id])}” ${number(p[id])}`);
  }

  function showHead() {
    small.forEach((line, l) =>
      line.forEach((button, n) =>
        button.setAttribute("aria-pressed", String(l === layer && n === head)),
      ),
    );
    const t = query.valueAsNumber - 1;
    const picture = drawn(maps[layer][head]);
    picture.removeAttribute("aria-hidden");
    picture.setAttribute("role", "img");
    const title = `layer ${layer + 1}, head ${head + 1}`;
    picture.setAttribute(
      "aria-label",
      `Weights of ${title}: queries are rows, keys are columns`,
    );
    picture.append(
      shape("rect", {
        class: "query-stroke",
        x: 0,
        y: t,
        width: known.length,
        height: 1,
        "vector-effect": "non-scaling-stroke",
        "stroke-width": 1.5,
      }),
    );
    large.replaceChildren(
      make("p", {class: "figure-title"}, make("b", {}, title), ": a row per query"),
      picture,
    );
    const row = maps[layer][head][t];
    words.replaceChildren(
      ...known.map((c, s) => {
        const shown = c === "\n" ? "↵" : c;
        const cell = s > t ? make("span", {}, shown) : figures.shaded("span", row[s], shown);
        if (s === t) cell.className = "now";
        return cell;
      }),
    );
    const best = row
      .map((weight, s) => [weight, s])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .map(([weight, s]) => `“${name(known[s])}” at ${s + 1} ${number(weight)}`);
    const looks = `In ${title}, “${name(known[t])}” looks most at ${best.join(", ")}.`;
    words.setAttribute("aria-label", looks);
    const ignored = skipped.length
      ? ` Unknown characters are skipped: ${skipped.join(" ")}.`
      : "";
    status.textContent = `Most likely: ${showNext().join(", ")}. ${looks}${ignored}`;
  }

  begin();
  return () => ({
    text: text.value,
    read: known.join(""),
    layer,
    head,
    query: query.valueAsNumber,
    probabilities: probabilities(),
    weights: maps.map((one) => one.map((rows) => rows.slice(0, known.length))),
  });
}, true);
