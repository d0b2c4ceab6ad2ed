// Beam search over the probabilities of a trained translator.
figures.add("beam_search", (box) => {
  const {make, number} = figures;
  const data = figures.data.beam_search;
  box.append(make("h4", {}, "Beam search, step by step"));
  const controls = box.appendChild(make("div", {class: "figure-controls"}));
  const sentence = figures.choice(
    controls,
    "sentence",
    Object.fromEntries(data.map((d, i) => [i, d.source])),
    0,
    () => begin(),
  );
  const beams = figures.slider(
    controls, "beams", {min: 1, max: 5, value: 3}, () => begin(),
  );
  const penalty = figures.choice(
    controls,
    "length penalty",
    {0: "0", 0.6: "0.6", 1: "1", 2: "2"},
    0.6,
    () => begin(),
  );
  const back = figures.button(controls, "Back", () => go(-1));
  const next = figures.button(controls, "Next step", () => go(1));
  const end = figures.button(controls, "To the end", () => go(steps.length));
  const tables = box.appendChild(make("div", {class: "figure-row"}));
  const status = figures.status(box);
  let steps, shown;

  const divisor = (length) => ((5 + length) / 6) ** Number(penalty.value);

  // All steps of a search; each has its candidates, best first, with their fate,
  // and the finished hypotheses so far.
  function search() {
    const {nodes, end: endId, length} = data[sentence.value];
    const width = beams.valueAsNumber;
    const found = [];
    let active = [{tokens: [], score: 0}];
    let finished = [];
    for (let step = 0; step < length && active.length; step++) {
      const candidates = active
        .flatMap(({tokens, score}) =>
          nodes[tokens.join(" ")].map(([token, logProb]) => ({
            tokens: [...tokens, token],
            score: score + logProb,
            logProb,
          })),
        )
        .sort((a, b) => b.score - a.score)
        .slice(0, 2 * width);
      const last = step + 1 === length;
      active = [];
      candidates.forEach((one, rank) => {
        const ended = one.tokens.at(-1) === endId || last;
        one.fate = "dropped";
        if (ended && rank < width) {
          one.fate = "finished";
          finished = [...finished, {...one, normalized: one.score / divisor(step + 1)}];
        } else if (!ended && active.length < width) {
          one.fate = "kept";
          active.push(one);
        }
      });
      finished = finished.sort((a, b) => b.normalized - a.normalized);
      // Scores only fall: no active hypothesis can become better than this.
      const attainable = active.length ? active[0].score / divisor(length) : -Infinity;
      const best = finished.length ? finished[0].normalized : -Infinity;
      if (finished.length && (width === 1 || attainable <= best)) active = [];
      found.push({candidates, finished, done: !active.length});
    }
    return found;
  }

  function begin() {
    steps = search();
    shown = 0;
    show();
  }

  function go(by) {
    shown = Math.min(Math.max(shown + by, 0), steps.length - 1);
    show();
  }

  const pieces = (tokens) => tokens.map((id) => data[sentence.value].names[id]);
  const words = (tokens) => figures.words(pieces(tokens));

  function show() {
    const {candidates, finished, done} = steps[shown];
    const open = figures.table(`Step ${shown + 1}: the best continuations`);
    const head = (...texts) =>
      make("tr", {}, ...texts.map((text) => make("th", {scope: "col"}, text)));
    open.append(head("translation so far", "p of the last", "log p", ""));
    for (const one of candidates) {
      open.append(
        make(
          "tr",
          {class: `figure-${one.fate}`},
          make(
            "td",
            {class: "figure-words"},
            words(one.tokens.slice(0, -1)),
            // Most pieces begin a word, some continue one.
            /^[▁<]/.test(pieces(one.tokens).at(-1)) ? " " : "",
            make("b", {}, words(one.tokens.slice(-1))),
          ),
          figures.shaded("td", Math.exp(one.logProb), number(Math.exp(one.logProb), 3)),
          make("td", {}, number(one.score)),
          make("td", {}, one.fate),
        ),
      );
    }
    const closed = figures.table("Finished hypotheses");
    closed.append(head("translation", "log p", "score"));
    for (const one of finished.slice(0, 5)) {
      closed.append(
        make(
          "tr",
          {},
          make("td", {class: "figure-words"}, words(one.tokens.slice(0, -1))),
          make("td", {}, number(one.score)),
          make("td", {}, number(one.normalized)),
        ),
      );
    }
    tables.replaceChildren(open, ...(finished.length ? [closed] : []));
    back.disabled = shown === 0;
    next.disabled = end.disabled = shown === steps.length - 1;
    status.textContent = done
      ? `Done after ${shown + 1} steps: “${words(finished[0].tokens.slice(0, -1))}”, ` +
        `score ${number(finished[0].normalized)}. No open hypothesis can become better.`
      : `Step ${shown + 1} of ${steps.length}: of ${candidates.length} continuations, ` +
        `${candidates.filter((one) => one.fate === "kept").length} are kept.`;
  }

  begin();
  return () => {
    const {finished} = steps.at(-1);
    return {
      sentence: Number(sentence.value),
      beams: beams.valueAsNumber,
      penalty: Number(penalty.value),
      shown,
      steps: steps.length,
      tokens: finished[0].tokens,
      score: finished[0].normalized,
    };
  };
}, true);
