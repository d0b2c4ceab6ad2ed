// The Transformer with the shape of every tensor, its parameters and its FLOPs.
figures.add("transformer_shapes", (box) => {
  const {make} = figures;
  box.append(make("h4", {}, "The Transformer in numbers"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const size = (name, options) =>
    figures.slider(controls, name, options, () => show());
  const sizes = {
    B: size("B, sentences", {min: 1, max: 64, value: 2}),
    S: size("S, source tokens", {min: 1, max: 512, value: 7}),
    T: size("T, target tokens", {min: 1, max: 512, value: 5}),
    D: size("D, width", {min: 64, max: 2048, step: 64, value: 512}),
    // Heads must divide the width.
    N: size("N, heads", {min: 0, max: 5, value: 3, format: (n) => 2 ** n}),
    L: size("L, blocks", {min: 1, max: 24, value: 6}),
    V: size("V, vocabulary", {min: 1000, max: 64000, step: 1000, value: 37000, format: (n) => n.toLocaleString("en")}),
  };
  const columns = box.appendChild(make("div", {class: "figure-row"}));
  const status = figures.status(box);

  function read() {
    const values = Object.fromEntries(
      Object.entries(sizes).map(([name, input]) => [name, input.valueAsNumber]),
    );
    values.N = 2 ** values.N;
    values.H = values.D / values.N;
    values.F = 4 * values.D;
    return values;
  }

  function compute() {
    const {B, S, T, D, N, L, V, H, F} = read();
    // A matrix product of n rows takes 2 n · in · out FLOPs.
    const dense = (n, from, to) => 2 * B * n * from * to;
    const attention = (queries, keys) => ({
      parameters: 4 * (D * D + D),
      flops:
        2 * dense(queries, D, D) +
        2 * dense(keys, D, D) +
        2 * dense(queries, keys, D),
      inside: [`q (${B}, ${queries}, ${N}, ${H})`,
        `weights (${B}, ${N}, ${queries}, ${keys})`],
    });
    const feedForward = (n) => ({
      parameters: 2 * D * F + F + D,
      flops: 2 * dense(n, D, F),
      inside: [`inner (${B}, ${n}, ${F})`],
    });
    const norm = {parameters: 2 * D, flops: 0, inside: []};
    const column = (n, ids, rows) => [
      {arrow: `${ids} (${B}, ${n})`},
      {name: "embedding + positions", role: "position", parameters: 0, flops: 0, inside: []},
      {arrow: `(${B}, ${n}, ${D})`},
      ...rows.flatMap(([name, role, part]) => [
        {name, role, times: L, ...part},
        {name: "add & norm", role: "norm", times: L, ...norm},
        {arrow: `(${B}, ${n}, ${D})`},
      ]),
    ];
    const encoder = column(S, "source ids", [
      ["self-attention", "weight", attention(S, S)],
      ["feed-forward", "layer", feedForward(S)],
    ]);
    encoder[encoder.length - 1].arrow = `memory (${B}, ${S}, ${D})`;
    const decoder = column(T, "target ids", [
      ["masked self-attention", "weight", attention(T, T)],
      ["cross-attention to the memory", "weight", attention(T, S)],
      ["feed-forward", "layer", feedForward(T)],
    ]);
    decoder.push(
      {
        name: "output: the embedding matrix, shared",
        role: "output",
        parameters: V * D,
        flops: dense(T, D, V),
        inside: [],
      },
      {arrow: `logits (${B}, ${T}, ${V})`},
    );
    const total = (key) =>
      [...encoder, ...decoder].reduce(
        (sum, part) => sum + (part[key] ?? 0) * (part.times ?? 1),
        0,
      );
    return {
      ...read(),
      encoder,
      decoder,
      parameters: total("parameters"),
      flops: total("flops"),
    };
  }

  function short(value, unit) {
    const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
    const [scale, letter] = units.find(([least]) => value >= least) ?? [1, ""];
    return `${Number((value / scale).toPrecision(3))} ${letter}${unit}`;
  }

  function drawn(title, parts, L) {
    const column = make("div", {class: "figure-column"}, make("strong", {}, title));
    for (const part of parts) {
      if (part.arrow) {
        column.append(make("div", {class: "figure-arrow"}, `↓ ${part.arrow}`));
        continue;
      }
      const numbers = [...part.inside];
      if (part.parameters) numbers.push(short(part.parameters, " parameters"));
      if (part.flops) numbers.push(short(part.flops, "FLOPs"));
      const times = part.times && L > 1 ? ` × ${L}` : "";
      column.append(
        make(
          "div",
          {
            class: "figure-box",
            style:
              `background:var(--d-${part.role});` +
              `border-color:var(--d-${part.role}-line)`,
          },
          make("b", {}, `${part.name}${times}`),
          ...numbers.map((line) => make("div", {}, line)),
        ),
      );
    }
    return column;
  }

  function show() {
    const values = compute();
    columns.replaceChildren(
      drawn("Encoder", values.encoder, values.L),
      drawn("Decoder", values.decoder, values.L),
    );
    status.textContent =
      `In all ${values.parameters.toLocaleString("en")} parameters, ` +
      `${short(4 * values.parameters, "B")} in float32. A forward pass takes ` +
      `${short(values.flops, "FLOPs")}. ` +
      `Each head is D / N = ${values.H} wide; the feed-forward layer is 4 D wide.`;
  }

  show();
  return () => {
    const {encoder, decoder, ...values} = compute();
    const arrows = [...encoder, ...decoder].map((part) => part.arrow);
    return {...values, arrows: arrows.filter(Boolean)};
  };
});
