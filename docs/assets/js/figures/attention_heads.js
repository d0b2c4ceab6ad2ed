// The attention heads of a trained translator.
figures.add("attention_heads", (box) => {
  const {make, shape, number} = figures;
  const data = figures.data.attention_heads;
  const kinds = {
    encoder: "encoder self-attention",
    decoder: "masked self-attention of the decoder",
    cross: "cross-attention: decoder to encoder",
  };
  box.append(make("h4", {}, "Heads of a trained translator"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const named = (texts) => Object.fromEntries(texts.map((text, i) => [i, text]));
  const sentence = figures.choice(
    controls, "sentence", named(data.map((d) => figures.words(d.source.slice(0, -1)))),
    0, () => (side(), show()),
  );
  const kind = figures.choice(
    controls, "attention", kinds, "cross", () => (side(), show()),
  );
  const layer = figures.choice(controls, "layer", {0: "1", 1: "2"}, 1, () => show());
  const head = figures.choice(controls, "head", {0: "1", 1: "2"}, 0, () => show());
  const direction = figures.choice(
    controls,
    "direction",
    {query: "from a query to the keys", key: "from a key to the queries"},
    "query",
    () => (side(), show()),
  );
  const token = figures.choice(controls, "token", {all: "all"}, "all", () => show());
  const picture = box.appendChild(make("div"));
  const status = figures.status(box);

  function read() {
    const chosen = data[sentence.value];
    const weights = chosen.weights[kind.value][layer.value][head.value];
    const queries = kind.value === "encoder" ? chosen.source : chosen.target;
    const keys = kind.value === "decoder" ? chosen.target : chosen.source;
    return {queries, keys, weights: weights.map((row) => row.map((w) => w / 1e4))};
  }

  // Lists the tokens that can be chosen.
  function side() {
    const {queries, keys} = read();
    const tokens = direction.value === "query" ? queries : keys;
    const options = [["all", "all"], ...tokens.map((t, i) => [i, `${i + 1} ${t}`])];
    token.replaceChildren(
      ...options.map(([value, text]) => make("option", {value}, text)),
    );
    token.value = "all";
  }

  function show() {
    const {queries, keys, weights} = read();
    const step = 30;
    const height = Math.max(queries.length, keys.length) * step + 44;
    const drawn = shape("svg", {
      class: "diagram",
      viewBox: `0 0 460 ${height}`,
      role: "img",
    });
    const text = (x, y, words, anchor, bold = false) =>
      shape(
        "text",
        {x, y, "text-anchor": anchor, "font-size": 16, ...(bold && {"font-weight": 700})},
        words,
      );
    const at = (i) => 52 + i * step;
    drawn.append(text(160, 20, "queries", "end", true), text(300, 20, "keys", "start", true));
    const chosen = token.value === "all" ? null : Number(token.value);
    const lit = (t, s) =>
      chosen === null || chosen === (direction.value === "query" ? t : s);
    weights.forEach((row, t) =>
      row.forEach((w, s) => {
        if (w < 0.005 || !lit(t, s)) return;
        drawn.append(
          shape("path", {
            class: "weight-stroke",
            d: `M168 ${at(t) - 5}L292 ${at(s) - 5}`,
            "stroke-width": (0.5 + 7 * w).toFixed(2),
            "stroke-opacity": Math.min(1, 0.15 + w).toFixed(2),
          }),
        );
      }),
    );
    const shown = (i, name) => (direction.value === name ? chosen === i : false);
    queries.forEach((word, t) =>
      drawn.append(text(160, at(t), word, "end", shown(t, "query"))),
    );
    keys.forEach((word, s) =>
      drawn.append(text(300, at(s), word, "start", shown(s, "key"))),
    );
    drawn.setAttribute("aria-label", `Lines from ${queries.length} queries to ${keys.length} keys`);
    picture.replaceChildren(drawn);
    status.textContent = sentenceOf(queries, keys, weights, chosen);
  }

  function sentenceOf(queries, keys, weights, chosen) {
    if (chosen === null) {
      return "The thicker a line, the larger the weight. Choose a token to see its numbers.";
    }
    const fromQuery = direction.value === "query";
    const row = fromQuery ? weights[chosen] : weights.map((one) => one[chosen]);
    const names = fromQuery ? keys : queries;
    const best = row
      .map((w, i) => [w, names[i]])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .map(([w, name]) => `“${name}” ${number(w)}`);
    const word = (fromQuery ? queries : keys)[chosen];
    return fromQuery
      ? `“${word}” looks most at ${best.join(", ")}; all its weights sum to 1.`
      : `Those that look most at “${word}”: ${best.join(", ")}.`;
  }

  side();
  show();
  return () => ({
    sentence: Number(sentence.value),
    kind: kind.value,
    layer: Number(layer.value),
    head: Number(head.value),
    ...read(),
  });
}, true);
