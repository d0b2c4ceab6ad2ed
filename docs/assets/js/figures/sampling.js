// Temperature, top-k and top-p on the distributions of a trained translator.
figures.add("sampling", (box) => {
  const {make, number} = figures;
  const names = figures.data.sampling.names.split(" ");
  const contexts = figures.data.sampling.contexts.map((context) => {
    const bytes = Uint8Array.from(atob(context.logProbs), (c) => c.charCodeAt(0));
    return {...context, logProbs: [...new Float32Array(bytes.buffer)]};
  });
  box.append(make("h4", {}, "Sampling the next token"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const context = figures.choice(
    controls,
    "translation so far",
    Object.fromEntries(
      contexts.map((c, i) => [i, `${figures.words([c.prefix])} …`]),
    ),
    0,
    () => begin(),
  );
  const temperature = figures.slider(
    controls,
    "temperature",
    {min: 0.1, max: 3, step: 0.1, value: 1, format: (x) => x.toFixed(1)},
    () => begin(),
  );
  const topK = figures.slider(
    controls,
    "top-k",
    {min: 1, max: 41, value: 41, format: (n) => (n > 40 ? "off" : n)},
    () => begin(),
  );
  const topP = figures.slider(
    controls,
    "top-p",
    {min: 0.05, max: 1, step: 0.05, value: 1, format: (x) => (x < 1 ? x.toFixed(2) : "off")},
    () => begin(),
  );
  const draw = figures.button(controls, "Draw 100 tokens", () => sample());
  const table = box.appendChild(make("div", {class: "figure-row"}));
  const status = figures.status(box);
  let counts = null;

  function compute() {
    const {logProbs} = contexts[context.value];
    const order = logProbs
      .map((_, id) => id)
      .sort((a, b) => logProbs[b] - logProbs[a] || a - b);
    const model = order.map((id) => Math.exp(logProbs[id]));
    const kept = topK.valueAsNumber > 40 ? order.length : topK.valueAsNumber;
    const powers = order.map((id, rank) =>
      rank < kept
        ? Math.exp((logProbs[id] - logProbs[order[0]]) / temperature.valueAsNumber)
        : 0,
    );
    let total = powers.reduce((a, b) => a + b, 0);
    if (topP.valueAsNumber < 1) {
      let before = 0;
      powers.forEach((power, rank) => {
        if (rank && before >= topP.valueAsNumber * total) powers[rank] = 0;
        before += power;
      });
      total = powers.reduce((a, b) => a + b, 0);
    }
    return {order, model, sampled: powers.map((power) => power / total)};
  }

  function begin() {
    counts = null;
    show();
  }

  function sample() {
    const {order, sampled} = compute();
    counts = new Map();
    for (let i = 0; i < 100; i++) {
      let left = Math.random(), rank = 0;
      while (rank < sampled.length - 1 && left >= sampled[rank]) {
        left -= sampled[rank++];
      }
      // Rounding must not reach a token of probability zero.
      while (sampled[rank] === 0) rank--;
      counts.set(order[rank], (counts.get(order[rank]) ?? 0) + 1);
    }
    show();
  }

  function show() {
    const {order, model, sampled} = compute();
    const rows = figures.table(`After: ${contexts[context.value].source}`);
    const heads = ["next token", "model", "sampled", ...(counts ? ["drawn"] : [])];
    rows.append(
      make("tr", {}, ...heads.map((text) => make("th", {scope: "col"}, text))),
    );
    order.slice(0, 12).forEach((id, rank) => {
      const p = sampled[rank];
      rows.append(
        make(
          "tr",
          {},
          make("td", {class: "figure-words"}, names[id]),
          figures.shaded("td", model[rank], number(model[rank], 3)),
          p
            ? figures.shaded("td", p, number(p, 3))
            : make("td", {class: "masked"}, "0"),
          ...(counts ? [make("td", {}, String(counts.get(id) ?? 0))] : []),
        ),
      );
    });
    table.replaceChildren(rows);
    const candidates = sampled.filter((p) => p > 0).length;
    const rest = sampled.slice(12).reduce((a, b) => a + b, 0);
    const drawn = counts
      ? ` Of 100 draws, ${[...counts.values()].length} different tokens.`
      : "";
    status.textContent =
      `${candidates.toLocaleString("en")} of ${order.length.toLocaleString("en")} tokens ` +
      `can be drawn; those not shown have ${number(rest, 3)} in all.${drawn}`;
  }

  show();
  return () => ({
    context: Number(context.value),
    temperature: temperature.valueAsNumber,
    topK: topK.valueAsNumber,
    topP: topP.valueAsNumber,
    drawn: counts ? [...counts.values()].reduce((a, b) => a + b, 0) : null,
    logProbs: contexts[context.value].logProbs,
    ...compute(),
  });
}, true);
